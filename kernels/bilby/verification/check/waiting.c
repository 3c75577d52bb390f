/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait, and their objects (section 2.2, first and fourth kind).
 *
 *   Q1  queues of endpoints and notifications are doubly linked and end
 *   Q2  an endpoint is idle <=> its queue is empty; each thread in it waits to
 *       send or to receive, as the endpoint's state says, and points back
 *       one that is closed is being emptied: its threads wait for either
 *   Q3  a notification that is signalled has no waiting thread; pending => signalled
 *   Q4  a thread waits to send or receive, or for a signal <=> it is in such a queue
 *   Q5  a thread and a notification are bound to each other or not at all; while a signal is
 *       pending, the bound thread does not wait to receive, if a context is bound to either
 *   R1  each thread that was ever configured has the master of its reply; nobody else has
 *   R2  a reply capability that is not a master names a thread that waits for an
 *       answer, stands right after that thread's master, and is the only one
 */
#include "invariants.h"

#define ANY 0xffu /* to send or to receive */

static word_t check_queue(struct tcb *head, const struct tcb *tail, const void *object,
                          word_t state)
{
    const struct tcb *prev = NULL;
    word_t count = 0;

    for (const struct tcb *thread = head; thread != NULL; thread = thread->wait_next) {
        require(thread->wait_prev == prev, "Q1 a queue is doubly linked", thread);
        require(thread->waits_on == object, "Q2 a waiting thread points back", thread);
        require(thread->state == state
                || (state == ANY && (thread->state == THREAD_BLOCKED_SEND
                                     || thread->state == THREAD_BLOCKED_RECEIVE)),
                "Q2 the states of thread and queue agree", thread);
        require(++count <= universe->threads.count, "Q1 a queue ends", object);
        prev = thread;
    }
    require(tail == prev, "Q1 the tail is the last", object);
    return count;
}

static word_t check_endpoint(const struct endpoint *endpoint)
{
    static const word_t waits[] = { ANY, THREAD_BLOCKED_SEND, THREAD_BLOCKED_RECEIVE, ANY };

    require(endpoint->state <= EP_CLOSED, "Q2 an endpoint's state is one listed", endpoint);
    time_check_endpoint(endpoint);
    require(endpoint->state == EP_CLOSED
            || (endpoint->state == EP_IDLE) == (endpoint->head == NULL),
            "Q2 idle <=> nobody waits", endpoint);
    return check_queue(endpoint->head, endpoint->tail, endpoint, waits[endpoint->state]);
}

static void check_bound(const struct notification *notification, const struct tcb *thread)
{
    require(universe_has_object(thread) && thread->bound == notification,
            "Q5 the bound thread is bound to it", notification);
    require(notification->signalled != 1 || thread->state != THREAD_BLOCKED_RECEIVE
            || !time_can_take_signal(notification, thread),
            "Q5 signalled => the bound thread does not wait to receive", notification);
}

static word_t check_notification(const struct notification *notification)
{
    require(notification->signalled <= NOTIFICATION_CLOSED,
            "Q3 signalled is one of those listed", notification);
    require(notification->signalled != 1 || notification->head == NULL,
            "Q3 signalled => nobody waits", notification);
    require(notification->signalled || notification->pending == 0,
            "Q3 pending => signalled", notification);
    if (notification->bound != NULL)
        check_bound(notification, notification->bound);
    time_check_notification(notification);
    return check_queue(notification->head, notification->tail, notification,
                       THREAD_BLOCKED_WAIT);
}

static void check_reply(const struct slot *slot)
{
    const struct tcb *thread = (const struct tcb *)reply_cap_object(&slot->cap);

    if (reply_cap_master(&slot->cap)) {
        require(slot == &thread->reply, "R1 only a thread has its master", slot);
        return;
    }
    require(thread->state == THREAD_BLOCKED_REPLY, "R2 the caller waits for an answer", slot);
    require((slot->prev & 0xf) == 0, "R2 a reply begins no family", slot);
    require(link_to(slot->prev) == &thread->reply, "R2 a reply stands after its master", slot);
}

void check_waiting(void)
{
    word_t in_queues = 0, waiting = 0;

    for (word_t i = 0; i < universe->endpoints.count; i++)
        in_queues += check_endpoint((const struct endpoint *)universe->endpoints.at[i]);
    for (word_t i = 0; i < universe->notifications.count; i++)
        in_queues += check_notification((const struct notification *)
                                        universe->notifications.at[i]);
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        require(thread->bound == NULL
                || (universe_has_object(thread->bound) && thread->bound->bound == thread),
                "Q5 the bound notification is bound to it", thread);
        waiting += thread->state == THREAD_BLOCKED_SEND
            || thread->state == THREAD_BLOCKED_RECEIVE
            || thread->state == THREAD_BLOCKED_WAIT;
        require(cap_type(&thread->cspace.cap) == CAP_REMAINS
                || (slot_is_empty(&thread->reply) && slot_is_empty(&thread->cspace)
                && thread->state == THREAD_INACTIVE)
                || (cap_type(&thread->reply.cap) == CAP_REPLY
                && reply_cap_master(&thread->reply.cap)
                && reply_cap_object(&thread->reply.cap) == (word_t)thread),
                "R1 a thread has the master of its reply", thread);
    }
    require(waiting == in_queues, "Q4 waiting <=> in a queue", NULL);
    for (word_t i = 0; i < universe->slot_count; i++)
        if (cap_type(&universe->slot[i]->cap) == CAP_REPLY)
            check_reply(universe->slot[i]);
}
