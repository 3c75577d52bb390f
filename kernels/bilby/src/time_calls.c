/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls and invocations of threads and CNodes that only exist where time is a capability:
 * the clock; calls that send and then receive; criticality, limits and timeouts of threads; reply
 * capabilities that are kept.
 */
#include <timing.h>
#include <endpoint_queue.h>

#define REG_SECOND 6 /* of a system call: the other address */

static void fail(word_t error)
{
    current_thread->regs[REG_BADGE] = SYSCALL_FAILED | error;
    current_thread->regs[REG_MESSAGE] = message_make(0, 0, 0, error);
}

static void tell_time(void)
{
    count_t now = clock_now();

    current_thread->regs[REG_BADGE] = 0;
    current_thread->regs[REG_MESSAGE] = 0;
    current_thread->regs[REG_WORDS] = (word_t)now;
    current_thread->regs[REG_WORDS + 1] = (word_t)(now >> 32);
}

/* The capability to send through, if it is of this type and permits it; else null, and the call fails. */
static const struct cap *second_cap(word_t type)
{
    const struct slot *slot = cspace_lookup(current_thread, current_thread->regs[REG_SECOND]);
    const struct cap *cap;

    if (slot == NULL) {
        fail(ERROR_LOOKUP_FAILED);
        return NULL;
    }
    cap = &slot_at(slot)->cap;
    if (cap_type(cap) != type) {
        fail(ERROR_INVALID_CAPABILITY);
        return NULL;
    }
    if (!(type == CAP_ENDPOINT ? endpoint_cap_can_send(cap) : notification_cap_can_send(cap))) {
        fail(ERROR_NO_RIGHT);
        return NULL;
    }
    return cap;
}

static void signal_receive(word_t address)
{
    const struct cap *cap = second_cap(CAP_NOTIFICATION);

    if (cap == NULL)
        return;
    notification_signal((struct notification *)notification_cap_object(cap),
                        notification_cap_badge(cap));
    syscall_receive(address);
}

/* To somebody who waits to receive; with the sender's time, if it has none; without capabilities. */
static void send_and_lend(struct endpoint *endpoint, word_t badge)
{
    const struct message_caps none = { .count = 0 };
    struct tcb *receiver = endpoint_dequeue(endpoint);

    message_transfer(current_thread, receiver, endpoint, &none);
    receiver->regs[REG_BADGE] = badge;
    loan_make(current_thread, receiver, false);
    thread_wake(receiver);
}

static void nb_send_receive(word_t address)
{
    const struct cap *cap = second_cap(CAP_ENDPOINT);
    struct endpoint *endpoint;

    if (cap == NULL)
        return;
    endpoint = (struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state == EP_RECEIVING)
        send_and_lend(endpoint, endpoint_cap_badge(cap));
    syscall_receive(address);
}

bool timing_syscall(word_t address, word_t message, word_t number)
{
    (void)message;
    switch (number) {
    case SYS_CLOCK:
        tell_time();
        return true;
    case SYS_SIGNAL_RECEIVE:
        signal_receive(address);
        return true;
    case SYS_NB_SEND_RECEIVE:
        nb_send_receive(address);
        return true;
    default:
        return false;
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

static word_t control_criticality(void)
{
    return current_thread->limited ? current_thread->control_criticality : 0;
}

static word_t decode_set_criticality(struct tcb *thread, const struct invocation *call)
{
    word_t criticality;
    bool is_ready = thread->queued || thread == current_thread;

    if (call->length < 1)
        return ERROR_TRUNCATED;

    criticality = message_word(current_thread, 0);
    if (criticality > control_criticality())
        return ERROR_RANGE;

    if (!timing_waits(thread))
        sched_remove(thread);
    thread->criticality = (byte_t)criticality;
    if (is_ready)
        sched_wake(thread);
    return ERROR_NONE;
}

static word_t decode_set_limits(struct tcb *thread, const struct invocation *call)
{
    word_t priority, criticality;

    if (call->length < 2)
        return ERROR_TRUNCATED;

    priority = message_word(current_thread, 0);
    criticality = message_word(current_thread, 1);
    if (priority > timing_control_priority(current_thread) || criticality > control_criticality())
        return ERROR_RANGE;

    thread->limited = 1;
    thread->control_priority = (byte_t)priority;
    thread->control_criticality = (byte_t)criticality;
    return ERROR_NONE;
}

static word_t decode_set_timeout(struct tcb *thread, const struct invocation *call)
{
    struct slot *from;
    struct cap cap;

    if (call->extra_count == 0) {
        delete_slot(&thread->timeout, false);
        return ERROR_NONE;
    }

    from = call->extra[0];
    if (cap_type(&from->cap) != CAP_ENDPOINT)
        return ERROR_INVALID_CAPABILITY;

    if (!endpoint_cap_can_send(&from->cap))
        return ERROR_NO_RIGHT;

    if (!slot_is_empty(&thread->timeout))
        return ERROR_SLOT_OCCUPIED;

    slot_derive(from, &cap);
    slot_copy(&thread->timeout, &cap, from);
    return ERROR_NONE;
}

static word_t decode_save_caller(struct tcb *thread, const struct invocation *call)
{
    struct slot *to = NULL;
    word_t error;

    if (call->length < 2 || call->extra_count < 1)
        return ERROR_TRUNCATED;

    if (slot_is_empty(&thread->caller))
        return ERROR_INVALID_CAPABILITY;

    error = cspace_find_empty(&call->extra[0]->cap, message_word(current_thread, 0),
                              message_word(current_thread, 1), &to);
    if (error != ERROR_NONE)
        return error;

    slot_move(to, &thread->caller);
    return ERROR_NONE;
}

word_t timing_decode_tcb(struct tcb *thread, const struct invocation *call)
{
    thread = tcb_at(thread);
    switch (call->label) {
    case LABEL_TCB_SET_CRITICALITY:
        return decode_set_criticality(thread, call);
    case LABEL_TCB_SET_LIMITS:
        return decode_set_limits(thread, call);
    case LABEL_TCB_SET_TIMEOUT:
        return decode_set_timeout(thread, call);
    case LABEL_TCB_SAVE_CALLER:
        return decode_save_caller(thread, call);
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}

/* ---- CNodes ----------------------------------------------------------------------------------- */

static bool is_answer(const struct cap *cap)
{
    return cap_type(cap) == CAP_REPLY && !reply_cap_master(cap);
}

static void swap(struct slot *one, struct slot *other)
{
    if (slot_is_empty(other) && slot_is_empty(one))
        return;
    if (slot_is_empty(other))
        slot_move(other, one);
    else if (slot_is_empty(one))
        slot_move(one, other);
    else
        slot_rotate(one, other, one);
}

word_t timing_decode_cnode(const struct invocation *call)
{
    struct slot *slot = NULL;
    word_t error;

    if (call->label != LABEL_CNODE_SWAP_CALLER)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < 2)
        return ERROR_TRUNCATED;

    error = cspace_find(&call->slot->cap, message_word(current_thread, 0),
                        message_word(current_thread, 1), &slot);
    if (error != ERROR_NONE)
        return error;

    if (!slot_is_empty(slot) && !is_answer(&slot->cap))
        return ERROR_INVALID_CAPABILITY;

    swap(&current_thread->caller, slot_at(slot));
    return ERROR_NONE;
}
