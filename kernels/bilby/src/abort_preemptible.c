/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking all threads that wait on an endpoint or a notification, or all that send with one badge:
 * with a preemption point after each thread (section 3.3, 3.4). abort_record_preemptible.c holds
 * its records, and their readers.
 */
#include <abort_record.h>
#include <endpoint_queue.h>
#include <preemption.h>

PREEMPTIBLE void abort_endpoint(struct endpoint *endpoint)
{
    /* preempted: 2 */
    while (endpoint->head != NULL) {
        struct tcb *thread = endpoint->head;

        endpoint_unlink(endpoint, thread);
        thread_abort(thread);
        PREEMPTION_POINT(2);
    }
    endpoint->opens_to = EP_IDLE;
}

PREEMPTIBLE void abort_notification(struct notification *notification)
{
    /* preempted: 3 */
    while (notification->head != NULL) {
        struct tcb *thread = notification->head;

        notification_cancel(thread);
        thread_abort(thread);
        PREEMPTION_POINT(3);
    }
}

/* Look at the next thread of the abort that is under way. */
static void abort_look(struct endpoint *endpoint)
{
    struct tcb *thread = endpoint->abort_at;
    bool matches = thread->send_badge == endpoint->abort_badge;

    if (thread == endpoint->abort_last)
        abort_finish(endpoint);
    else
        endpoint->abort_at = thread->wait_next;
    if (matches) {
        endpoint_unlink(endpoint, thread);
        thread_abort(thread);
    }
}

/* Continue any abort that the endpoint records. */
static PREEMPTIBLE void abort_carry_on(struct endpoint *endpoint)
{
    /* preempted: 4 */
    while (endpoint->abort_at != NULL) {
        abort_look(endpoint);
        if (endpoint->abort_at == NULL)
            return; /* so that it is not begun again */
        PREEMPTION_POINT(4);
    }
}

/* Record a new one. */
static void abort_begin(struct endpoint *endpoint, word_t badge)
{
    abort_own(endpoint, CAP_ENDPOINT);
    endpoint->abort_at = endpoint->head;
    endpoint->abort_last = endpoint->tail;
    endpoint->abort_badge = badge;
    endpoint->abort_worker = current_thread;
}

/* The abort that this thread began was finished, by itself or for it. */
static bool abort_was_finished(const struct endpoint *endpoint, word_t badge)
{
    bool finished = current_thread->aborted == endpoint
        && current_thread->aborted_badge == badge;

    current_thread->aborted = NULL;
    return finished;
}

void abort_badge(struct endpoint *endpoint, word_t badge)
{
    bool own = endpoint->abort_at != NULL && endpoint->abort_worker == current_thread
        && endpoint->abort_badge == badge;

    abort_carry_on(endpoint);
    if (own || abort_was_finished(endpoint, badge) || endpoint->state != EP_SENDING)
        return;
    abort_begin(endpoint, badge);
    abort_carry_on(endpoint);
}
