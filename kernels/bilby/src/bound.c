/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A notification that is bound to a thread: its signals also end the thread's wait for a message.
 *
 * So a server waits for clients and for interrupts in one receive, without a second thread.  A
 * thread that waits on the notification itself goes first; else the bound thread gets the signal
 * if it waits to receive from an endpoint, at once; else the signal is pending, and the bound
 * thread's next receive takes it, before any message.  Where time is a capability, a thread that
 * would never have any takes none: the signal is pending until it is given some (donation.c).
 *
 * Neither end keeps the other: binding ends when the last capability to one of them is deleted,
 * or when the notification is recycled.
 *
 * Invariants: thread->bound == notification  <=>  notification->bound == thread; while a signal is
 * pending, the bound thread does not wait to receive, if it has time.  Every step is constant time.
 */
#include <bound.h>
#include <endpoint_queue.h>
#include <timing.h>

word_t bound_bind(struct tcb *thread, const struct invocation *call)
{
    const struct cap *cap;
    struct notification *notification;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    cap = &call->extra[0]->cap;
    if (cap_type(cap) != CAP_NOTIFICATION)
        return ERROR_INVALID_CAPABILITY;

    if (!notification_cap_can_receive(cap))
        return ERROR_NO_RIGHT;

    notification = (struct notification *)notification_cap_object(cap);
    if (thread->bound != NULL || notification->bound != NULL
        || thread->state == THREAD_BLOCKED_RECEIVE)
        return ERROR_ILLEGAL_OPERATION;

    thread->bound = notification;
    notification->bound = thread;
    donation_offer(notification);
    return ERROR_NONE;
}

word_t bound_unbind(struct tcb *thread)
{
    if (thread->bound == NULL)
        return ERROR_ILLEGAL_OPERATION;

    bound_leave_thread(thread);
    return ERROR_NONE;
}

/* The thread is no more, or wants no more signals. */
void bound_leave_thread(struct tcb *thread)
{
    if (thread->bound == NULL)
        return;
    notification_at(thread->bound)->bound = NULL;
    thread->bound = NULL;
}

/* The notification is no more, or is to be as new. */
void bound_leave_notification(struct notification *notification)
{
    if (notification->bound == NULL)
        return;
    tcb_at(notification->bound)->bound = NULL;
    notification->bound = NULL;
}

/*
 * The thread to which a signal goes because it waits to receive, taken out of the endpoint's queue;
 * null if there is none.  No abort is under way where threads wait to receive (abort_preemptible.c).
 */
struct tcb *bound_dequeue(const struct notification *notification)
{
    struct tcb *thread = notification->bound;

    if (thread == NULL)
        return NULL;
    thread = tcb_at(thread);
    if (thread->state != THREAD_BLOCKED_RECEIVE || !donation_has_time_for(notification, thread))
        return NULL;
    endpoint_unlink((struct endpoint *)in_window((word_t)thread->waits_on, sizeof(struct endpoint)),
                    thread);
    return thread;
}
