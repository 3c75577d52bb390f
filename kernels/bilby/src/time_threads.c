/* SPDX-License-Identifier: BSD-2-Clause */
/* Invocations of threads and CNodes that only this kind of time has. */
#include <bound.h>
#include <endpoint_queue.h>
#include <timing.h>

/* ---- threads -------------------------------------------------------------------------------- */

/*
 * Of a thread that waits at an endpoint: it goes behind its equals of the new priority.  If its badge
 * is being aborted, that comes first: in its new place the abort might have passed it.
 */
static void move_at_endpoint(struct tcb *thread, word_t priority)
{
    struct endpoint *endpoint = (struct endpoint *)in_window((word_t)thread->waits_on, sizeof(struct endpoint));
    word_t state = endpoint->state;
    bool aborts = endpoint->abort_at != NULL && endpoint->abort_badge == thread->send_badge;

    endpoint_cancel(thread);
    thread_set_priority(thread, priority);
    if (aborts) {
        thread_abort(thread);
    } else {
        endpoint->state = state;
        endpoint_enqueue(endpoint, thread);
    }
}

static void move_at_notification(struct tcb *thread, word_t priority)
{
    struct notification *notification = notification_at(thread->waits_on);

    notification_cancel(thread);
    thread_set_priority(thread, priority);
    thread->waits_on = notification;
    notification_link(notification, thread);
}

void timing_set_priority(struct tcb *thread, word_t priority)
{
    switch (thread->state) {
    case THREAD_BLOCKED_SEND:
    case THREAD_BLOCKED_RECEIVE:
        move_at_endpoint(thread, priority);
        break;
    case THREAD_BLOCKED_WAIT:
        move_at_notification(thread, priority);
        break;
    default:
        thread_set_priority(thread, priority);
        break;
    }
}

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
