/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notifications: signals that wait for a thread, or threads that wait for one.
 *
 * Invariants: a signal is pending => no thread waits; each waiting thread is
 * THREAD_BLOCKED_WAIT and points back with waits_on.  Constant time, except closing.
 * A thread that it is bound to gets signals elsewhere, too (bound.c).  A signal donates
 * the context of its notification to who has none (donation.c).
 */
#include <timing.h>
#include <wait_order.h>

static void notification_deliver(struct tcb *waiter, word_t badges)
{
    READ_LINE(&waiter->regs[REG_BADGE]);
    waiter->regs[REG_BADGE] = badges;
    waiter->regs[REG_MESSAGE] = 0;
}

/* Take the first out of the queue, which is not empty. */
static struct tcb *notification_dequeue(struct notification *notification)
{
    struct tcb *thread = tcb_at(notification->head);
    struct tcb *next = thread->wait_next;

    thread->waits_on = NULL;
    READ_LINE(&notification->head);
    notification->head = next;
    if (next == NULL)
        notification->tail = NULL;
    else
        notification_begin_with(notification, thread, tcb_at(next));
    return thread;
}

/* Wake the first waiting thread, or the bound one where it receives, or remember the badge. */
void notification_signal(struct notification *notification, word_t badge)
{
    struct tcb *waiter;

    if (notification->signalled == NOTIFICATION_CLOSED)
        return;
    if (notification->head != NULL) {
        waiter = notification_dequeue(notification);
    } else {
        waiter = bound_dequeue(notification);
        if (waiter == NULL) {
            notification->pending |= badge;
            notification->signalled = 1;
            donation_offer(notification);
            return;
        }
        badge |= BOUND_SIGNAL;
    }
    notification_deliver(waiter, badge);
    donation_for_signal(notification, waiter);
    thread_wake(waiter);
}

/* Wake all threads with an error; a signal that comes meanwhile is dropped. */
static void close_notification(struct notification *notification, bool recycle)
{
    bound_leave_notification(notification);
    donation_leave_notification(notification);
    abort_claim_notification(notification, recycle);
    notification->signalled = NOTIFICATION_CLOSED;
    abort_notification(notification);
}

/* For one that no capability leads to. */
void notification_close(struct notification *notification)
{
    close_notification(notification, false);
}

/* Then it can be used again. */
void notification_recycle(struct notification *notification)
{
    close_notification(notification, true);
    notification->pending = 0;
    notification->signalled = 0;
}

/* Take the pending signals, or wait. */
void notification_wait(struct tcb *waiter, struct notification *notification)
{
    if (notification->signalled == NOTIFICATION_CLOSED) {
        thread_fail_call(waiter, ERROR_ABORTED);
        return;
    }
    if (notification->signalled) {
        notification_deliver(waiter, notification->pending);
        notification->pending = 0;
        notification->signalled = 0;
        return;
    }
    waiter->state = THREAD_BLOCKED_WAIT;
    waiter->waits_on = notification;
    notification_link(notification, waiter);
    donation_end(waiter);
}
