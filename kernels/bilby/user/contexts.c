/* SPDX-License-Identifier: BSD-2-Clause */
/* See contexts.h. */
#include "contexts.h"

ticks_t clock_now(void)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    syscall(SYS_CLOCK, &m);
    return (ticks_t)m.w[1] << 32 | m.w[0];
}

/* A system call with two addresses, the second in r6. */
static word_t send_receive(word_t number, word_t to, word_t cap, struct message *message)
{
    register word_t r0 __asm__("r0") = cap;
    register word_t r1 __asm__("r1") = message->info;
    register word_t r2 __asm__("r2") = message->w[0];
    register word_t r3 __asm__("r3") = message->w[1];
    register word_t r4 __asm__("r4") = message->w[2];
    register word_t r5 __asm__("r5") = message->w[3];
    register word_t r6 __asm__("r6") = to;
    register word_t r7 __asm__("r7") = number;

    __asm__ volatile("svc 0"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5)
                     : "r"(r6), "r"(r7) : "memory");
    message->badge = r0;
    message->info = r1;
    message->w[0] = r2;
    message->w[1] = r3;
    message->w[2] = r4;
    message->w[3] = r5;
    return r0 & SYSCALL_FAILED ? r0 : ERROR_NONE;
}

word_t signal_receive(word_t notification, word_t cap, struct message *message)
{
    return send_receive(SYS_SIGNAL_RECEIVE, notification, cap, message);
}

word_t nb_send_receive(word_t to, word_t cap, struct message *message)
{
    return send_receive(SYS_NB_SEND_RECEIVE, to, cap, message);
}

word_t system_criticality(word_t level)
{
    return invoke(ROOT_SCHED_CONTROL, LABEL_SYSTEM_CRITICALITY, &level, 1, NULL, 0);
}

word_t context_configure(word_t context, word_t budget, word_t period)
{
    word_t words[] = { budget, period };

    return invoke(ROOT_SCHED_CONTROL, LABEL_CONTEXT_CONFIGURE, words, 2, &context, 1);
}

word_t context_bind(word_t context, word_t tcb)
{
    return invoke(context, LABEL_CONTEXT_BIND, NULL, 0, &tcb, 1);
}

word_t context_unbind(word_t context)
{
    return invoke(context, LABEL_CONTEXT_UNBIND, NULL, 0, NULL, 0);
}

static word_t ask_consumed(word_t context, word_t label, ticks_t *consumed)
{
    struct message m = { context, message_make(0, 0, 0, label), { 0, 0, 0, 0 } };

    syscall(SYS_CALL, &m);
    *consumed = (ticks_t)m.w[1] << 32 | m.w[0];
    return message_label(m.info);
}

word_t context_consumed(word_t context, ticks_t *consumed)
{
    return ask_consumed(context, LABEL_CONTEXT_CONSUMED, consumed);
}

word_t context_yield_to(word_t context, ticks_t *consumed)
{
    return ask_consumed(context, LABEL_CONTEXT_YIELD_TO, consumed);
}

word_t tcb_set_criticality(word_t tcb, word_t criticality)
{
    return invoke(tcb, LABEL_TCB_SET_CRITICALITY, &criticality, 1, NULL, 0);
}

word_t tcb_set_limits(word_t tcb, word_t priority, word_t criticality)
{
    word_t words[] = { priority, criticality };

    return invoke(tcb, LABEL_TCB_SET_LIMITS, words, 2, NULL, 0);
}

word_t tcb_set_timeout(word_t tcb, word_t endpoint)
{
    return invoke(tcb, LABEL_TCB_SET_TIMEOUT, NULL, 0, &endpoint, endpoint ? 1 : 0);
}

word_t tcb_save_caller(word_t tcb, word_t root, word_t index, word_t depth)
{
    word_t words[] = { index, depth };

    return invoke(tcb, LABEL_TCB_SAVE_CALLER, words, 2, &root, 1);
}

word_t cnode_swap_caller(word_t root, word_t index, word_t depth)
{
    word_t words[] = { index, depth };

    return invoke(root, LABEL_CNODE_SWAP_CALLER, words, 2, NULL, 0);
}
