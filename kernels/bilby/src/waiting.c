/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread leaves the queue in which it waits, wherever it stands.  Constant time. */
#include <endpoint_queue.h>

/* A thread that waits to send or to receive does so no more. */
void endpoint_cancel(struct tcb *thread)
{
    struct endpoint *endpoint = thread->waits_on;

    abort_mend(endpoint, thread);
    endpoint_unlink(endpoint, thread);
}

/* Take a waiting thread out of the queue. */
void notification_cancel(struct tcb *thread)
{
    struct notification *notification = thread->waits_on;

    if (thread->wait_prev != NULL)
        thread->wait_prev->wait_next = thread->wait_next;
    else
        notification->head = thread->wait_next;
    if (thread->wait_next != NULL)
        thread->wait_next->wait_prev = thread->wait_prev;
    else
        notification->tail = thread->wait_prev;
    thread->waits_on = NULL;
}
