/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue in which threads wait at an endpoint or a notification: in order of arrival.  The same
 * functions, for an order by priority, are in ../time_contexts/wait_order.h.
 */
#ifndef BILBY_WAIT_ORDER_H
#define BILBY_WAIT_ORDER_H

#include <kernel.h>

/* To the end of the queue. */
static inline void endpoint_link(struct endpoint *endpoint, struct tcb *thread)
{
    thread->wait_next = NULL;
    thread->wait_prev = endpoint->tail;
    if (endpoint->tail != NULL)
        endpoint->tail->wait_next = thread;
    else
        endpoint->head = thread;
    endpoint->tail = thread;
}

static inline void notification_link(struct notification *notification, struct tcb *thread)
{
    thread->wait_next = NULL;
    thread->wait_prev = notification->tail;
    if (notification->tail != NULL)
        notification->tail->wait_next = thread;
    else
        notification->head = thread;
    notification->tail = thread;
}

/* Out of it, wherever the thread stands. */
static inline void endpoint_cut(struct endpoint *endpoint, struct tcb *thread)
{
    if (thread->wait_prev != NULL)
        thread->wait_prev->wait_next = thread->wait_next;
    else
        endpoint->head = thread->wait_next;
    if (thread->wait_next != NULL)
        thread->wait_next->wait_prev = thread->wait_prev;
    else
        endpoint->tail = thread->wait_prev;
}

static inline void notification_cut(struct notification *notification, struct tcb *thread)
{
    if (thread->wait_prev != NULL)
        thread->wait_prev->wait_next = thread->wait_next;
    else
        notification->head = thread->wait_next;
    if (thread->wait_next != NULL)
        thread->wait_next->wait_prev = thread->wait_prev;
    else
        notification->tail = thread->wait_prev;
}

/* The first has left, and "next" is the first now. */
static inline void endpoint_begin_with(struct endpoint *endpoint, const struct tcb *left, struct tcb *next)
{
    (void)endpoint;
    (void)left;
    next->wait_prev = NULL;
}

static inline void notification_begin_with(struct notification *notification, const struct tcb *left,
                                           struct tcb *next)
{
    (void)notification;
    (void)left;
    next->wait_prev = NULL;
}

#endif
