/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notifications: signals that wait for a thread, or threads that wait for one.
 *
 * Invariants: a signal is pending => no thread waits; each waiting thread is
 * THREAD_BLOCKED_WAIT and points back with waits_on.  Constant time.
 */
#include <kernel.h>

static void deliver(struct tcb *waiter, word_t badges)
{
    waiter->regs[REG_BADGE] = badges;
    waiter->regs[REG_MESSAGE] = 0;
}

/* Wake the first waiting thread, or remember the badge. */
void notification_signal(struct notification *notification, word_t badge)
{
    struct tcb *waiter = notification->head;

    if (waiter == NULL) {
        notification->pending |= badge;
        notification->signalled = 1;
        return;
    }
    notification->head = waiter->wait_next;
    if (notification->head != NULL)
        notification->head->wait_prev = NULL;
    else
        notification->tail = NULL;
    waiter->waits_on = NULL;
    deliver(waiter, badge);
    thread_wake(waiter);
}

/* Take what is pending, or wait. */
void notification_wait(struct tcb *waiter, struct notification *notification)
{
    if (notification->signalled) {
        deliver(waiter, notification->pending);
        notification->pending = 0;
        notification->signalled = 0;
        return;
    }
    waiter->state = THREAD_BLOCKED_WAIT;
    waiter->waits_on = notification;
    waiter->wait_next = NULL;
    waiter->wait_prev = notification->tail;
    if (notification->tail != NULL)
        notification->tail->wait_next = waiter;
    else
        notification->head = waiter;
    notification->tail = waiter;
}
