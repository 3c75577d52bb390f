/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ready queues, one for each priority: offered by one of ready_*.c, used by
 * the schedulers.
 *
 * Invariant: queued == 1  <=>  the thread is in the ready queue of its priority.
 */
#ifndef BILBY_READY_H
#define BILBY_READY_H

#include <kernel.h>

struct queue { struct tcb *head, *tail; };
extern struct queue ready[];

void ready_append(struct tcb *thread);
void ready_prepend(struct tcb *thread);
void ready_remove(struct tcb *thread);
struct tcb *ready_take(word_t least); /* the first of the most urgent, of at least this priority or urgency; or null */

/*
 * Links only: ready_*.c keeps the other properties of the queues.  Each line of a thread is read
 * right before it is written, and not touched again.
 */
static inline void queue_link(struct tcb *thread, struct tcb *prev, struct tcb *next)
{
    READ_LINE(&thread->queued);
    thread->queued = 1;
    thread->sched_prev = prev;
    thread->sched_next = next;
}

static inline void queue_append(struct queue *queue, struct tcb *thread)
{
    struct tcb *last = queue->tail;

    queue->tail = thread;
    if (last == NULL) {
        queue->head = thread;
    } else {
        struct tcb *prev = tcb_at(last);

        READ_LINE(&prev->sched_next);
        prev->sched_next = thread;
    }
    queue_link(thread, last, NULL);
}

static inline void queue_prepend(struct queue *queue, struct tcb *thread)
{
    struct tcb *first = queue->head;

    queue->head = thread;
    if (first == NULL) {
        queue->tail = thread;
    } else {
        struct tcb *next = tcb_at(first);

        READ_LINE(&next->sched_prev);
        next->sched_prev = thread;
    }
    queue_link(thread, NULL, first);
}

/* Returns whether the queue is empty now. */
static inline bool queue_remove(struct queue *queue, struct tcb *thread)
{
    struct tcb *prev = thread->sched_prev;
    struct tcb *next = thread->sched_next;

    thread->queued = 0;
    if (prev != NULL) {
        struct tcb *before = tcb_at(prev);

        READ_LINE(&before->sched_next);
        before->sched_next = next;
    } else {
        queue->head = next;
    }
    if (next != NULL) {
        struct tcb *behind = tcb_at(next);

        READ_LINE(&behind->sched_prev);
        behind->sched_prev = prev;
    } else {
        queue->tail = prev;
    }
    return prev == next; /* both null */
}

#endif
