/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue in which threads wait at an endpoint or a notification: in order of priority,
 * and threads of one priority in order of arrival.  ../time_slices/wait_order.h has the same
 * functions for an order of arrival alone.
 *
 * One list holds all of a queue.  An index (levels.c) leads to the last thread of each priority, so
 * that a thread enters and leaves in constant time.  It counts only while two threads wait or more:
 * one alone, as most servers and clients are, is entered into it by the next that comes.
 */
#ifndef BILBY_WAIT_ORDER_H
#define BILBY_WAIT_ORDER_H

#include <kernel.h>

/* levels.c */
struct tcb *levels_begin(struct levels *levels, struct tcb **last, struct tcb *alone, struct tcb *thread);
struct tcb *levels_enter(struct levels *levels, struct tcb **last, struct tcb *thread);
void levels_leave(struct levels *levels, struct tcb **last, word_t priority, struct tcb *before);

static inline void wait_link(struct tcb **head, struct tcb **tail, struct levels *levels, struct tcb **last,
                             struct tcb *thread)
{
    struct tcb *first = *head, *prev = NULL, *next = first;

    if (first != NULL)
        prev = first == *tail ? levels_begin(levels, last, first, thread) : levels_enter(levels, last, thread);
    thread->wait_prev = prev;
    if (prev == NULL) {
        *head = thread;
    } else {
        prev = tcb_at(prev);
        READ_LINE(&prev->wait_next);
        next = prev->wait_next;
        prev->wait_next = thread;
    }
    thread->wait_next = next;
    if (next == NULL)
        *tail = thread;
    else
        tcb_at(next)->wait_prev = thread;
}

static inline void wait_cut(struct tcb **head, struct tcb **tail, struct levels *levels, struct tcb **last,
                            const struct tcb *thread)
{
    struct tcb *prev = thread->wait_prev, *next = thread->wait_next;
    struct tcb *before = NULL; /* of the same priority */
    word_t priority = thread->priority;
    bool is_last = true;       /* of its priority */

    if (prev == NULL) {
        *head = next;
    } else {
        prev = tcb_at(prev);
        READ_LINE(&prev->wait_next);
        prev->wait_next = next;
        if (prev->priority == priority)
            before = prev;
    }
    if (next == NULL) {
        *tail = prev;
    } else {
        next = tcb_at(next);
        READ_LINE(&next->wait_prev);
        next->wait_prev = prev;
        is_last = next->priority != priority;
    }
    if (is_last && prev != next) /* not both null: others wait */
        levels_leave(levels, last, priority, before);
}

static inline void wait_begin_with(struct levels *levels, struct tcb **last, const struct tcb *left,
                                   struct tcb *next)
{
    next = tcb_at(next);
    READ_LINE(&next->wait_prev);
    next->wait_prev = NULL;
    if (next->priority != left->priority)
        levels_leave(levels, last, left->priority, NULL);
}

/* To its place in the queue. */
static inline void endpoint_link(struct endpoint *endpoint, struct tcb *thread)
{
    wait_link(&endpoint->head, &endpoint->tail, &endpoint->levels, endpoint->last, thread);
}

static inline void notification_link(struct notification *notification, struct tcb *thread)
{
    wait_link(&notification->head, &notification->tail, &notification->levels, notification->last, thread);
}

/* Out of it, wherever the thread stands. */
static inline void endpoint_cut(struct endpoint *endpoint, struct tcb *thread)
{
    wait_cut(&endpoint->head, &endpoint->tail, &endpoint->levels, endpoint->last, thread);
}

static inline void notification_cut(struct notification *notification, struct tcb *thread)
{
    wait_cut(&notification->head, &notification->tail, &notification->levels, notification->last, thread);
}

/* The first has left, and "next" is the first now. */
static inline void endpoint_begin_with(struct endpoint *endpoint, const struct tcb *left, struct tcb *next)
{
    wait_begin_with(&endpoint->levels, endpoint->last, left, next);
}

static inline void notification_begin_with(struct notification *notification, const struct tcb *left,
                                           struct tcb *next)
{
    wait_begin_with(&notification->levels, notification->last, left, next);
}

#endif
