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
