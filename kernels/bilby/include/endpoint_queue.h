/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of an endpoint: shared by endpoint.c and the fastpath. */
#ifndef BILBY_ENDPOINT_QUEUE_H
#define BILBY_ENDPOINT_QUEUE_H

#include <kernel.h>
#include <wait_order.h>

/* To its place in the queue; the caller sets both states. */
static inline void endpoint_enqueue(struct endpoint *endpoint, struct tcb *thread)
{
    thread->waits_on = endpoint;
    endpoint_link(endpoint, thread);
}

/* Take a thread out, wherever it stands. */
static inline void endpoint_unlink(struct endpoint *endpoint, struct tcb *thread)
{
    endpoint_cut(endpoint, thread);
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
        endpoint_begin_with(endpoint, thread, endpoint->head);
    } else {
        endpoint->tail = NULL;
        endpoint->state = EP_IDLE;
    }
    thread->waits_on = NULL;
    return thread;
}

#endif
