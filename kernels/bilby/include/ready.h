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
extern struct queue ready[PRIORITIES];

void ready_append(struct tcb *thread);
void ready_prepend(struct tcb *thread);
void ready_remove(struct tcb *thread);
struct tcb *ready_highest(void); /* first of the highest queue that is not empty; null if none */

/* Links only: what else is known of the queues is for ready_*.c to keep. */
static inline void queue_append(struct queue *queue, struct tcb *thread)
{
    thread->queued = 1;
    thread->sched_next = NULL;
    thread->sched_prev = queue->tail;
    if (queue->tail != NULL)
        queue->tail->sched_next = thread;
    else
        queue->head = thread;
    queue->tail = thread;
}

static inline void queue_prepend(struct queue *queue, struct tcb *thread)
{
    thread->queued = 1;
    thread->sched_prev = NULL;
    thread->sched_next = queue->head;
    if (queue->head != NULL)
        queue->head->sched_prev = thread;
    else
        queue->tail = thread;
    queue->head = thread;
}

static inline void queue_remove(struct queue *queue, struct tcb *thread)
{
    thread->queued = 0;
    if (thread->sched_prev != NULL)
        thread->sched_prev->sched_next = thread->sched_next;
    else
        queue->head = thread->sched_next;
    if (thread->sched_next != NULL)
        thread->sched_next->sched_prev = thread->sched_prev;
    else
        queue->tail = thread->sched_prev;
}

#endif
