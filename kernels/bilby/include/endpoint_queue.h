/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of an endpoint: shared by endpoint.c and the fastpath. */
#ifndef BILBY_ENDPOINT_QUEUE_H
#define BILBY_ENDPOINT_QUEUE_H

#include <kernel.h>

/* To the end of the queue; the caller sets both states. */
static inline void endpoint_enqueue(struct endpoint *endpoint, struct tcb *thread)
{
    thread->waits_on = endpoint;
    thread->wait_next = NULL;
    thread->wait_prev = endpoint->tail;
    if (endpoint->tail != NULL)
        endpoint->tail->wait_next = thread;
    else
        endpoint->head = thread;
    endpoint->tail = thread;
}

/* Take a thread out, wherever it stands. */
static inline void endpoint_unlink(struct endpoint *endpoint, struct tcb *thread)
{
    if (thread->wait_prev != NULL)
        thread->wait_prev->wait_next = thread->wait_next;
    else
        endpoint->head = thread->wait_next;
    if (thread->wait_next != NULL)
        thread->wait_next->wait_prev = thread->wait_prev;
    else
        endpoint->tail = thread->wait_prev;
    if (endpoint->head == NULL && endpoint->state != EP_CLOSED)
        endpoint->state = EP_IDLE;
    thread->waits_on = NULL;
}

/* The first of a queue that is not empty; who sends is also told to abort_mend. */
static inline struct tcb *endpoint_dequeue(struct endpoint *endpoint)
{
    struct tcb *thread = endpoint->head;

    endpoint->head = thread->wait_next;
    if (endpoint->head != NULL) {
        endpoint->head->wait_prev = NULL;
    } else {
        endpoint->tail = NULL;
        endpoint->state = EP_IDLE;
    }
    thread->waits_on = NULL;
    return thread;
}

#endif
