/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a call: what every one of them leaves. */
#include <lookup.h>

/* Its call is over, or will not be made again: what it has begun, kept or was told of is forgotten. */
void thread_end_call(struct tcb *thread)
{
    abort_forget(thread);
    lookup_end(thread);
    thread->replied = 0;
}

/* It failed: the one way to say so, but for invocations, which answer with an error code. */
void thread_fail_call(struct tcb *thread, word_t error)
{
    thread->regs[REG_BADGE] = SYSCALL_FAILED | error;
    thread->regs[REG_MESSAGE] = message_make(0, 0, 0, error);
}
