/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking all threads that wait on an endpoint or a notification, or all that send
 * with one badge: in one go, as in 2011.  Each loop is as long as the queue.
 */
#include <kernel.h>
#include <endpoint_queue.h>

void abort_endpoint(struct endpoint *endpoint)
{
    /* parameter: queue_length + 1 */
    while (endpoint->head != NULL) {
        struct tcb *thread = endpoint->head;

        endpoint_unlink(endpoint, thread);
        thread_abort(thread);
    }
}

void abort_notification(struct notification *notification)
{
    /* parameter: queue_length + 1 */
    while (notification->head != NULL) {
        struct tcb *thread = notification->head;

        notification_cancel(thread);
        thread_abort(thread);
    }
}

/* What is closed stays so for one call only: nobody has to know who does it. */
void abort_claim_endpoint(struct endpoint *endpoint, bool recycle)
{
    (void)endpoint;
    (void)recycle;
}

void abort_claim_notification(struct notification *notification, bool recycle)
{
    (void)recycle;
    notification->pending = 0;
}

/* A thread leaves the queue: no abort is ever under way then. */
void abort_mend(struct endpoint *endpoint, const struct tcb *leaving)
{
    (void)endpoint;
    (void)leaving;
}

/* No thread ever comes back to an abort that it began. */
void abort_forget(struct tcb *thread)
{
    (void)thread;
}

/* Look at the next thread of the queue. */
static void abort_look(struct endpoint *endpoint, struct tcb *thread, bool matches)
{
    if (matches) {
        endpoint_unlink(endpoint, thread);
        thread_abort(thread);
    }
}

void abort_badge(struct endpoint *endpoint, word_t badge)
{
    struct tcb *thread = endpoint->state == EP_SENDING ? endpoint->head : NULL;

    /* parameter: queue_length + 1 */
    while (thread != NULL) {
        struct tcb *next = thread->wait_next;

        abort_look(endpoint, thread, thread->send_badge == badge);
        thread = next;
    }
}
