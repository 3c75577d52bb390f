/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: senders and receivers meet, or queue in order of arrival; in mcs by priority (wait_order.h).
 *
 * Invariants: state EP_IDLE <=> the queue is empty; EP_SENDING: every thread in
 * it is THREAD_BLOCKED_SEND; EP_RECEIVING: THREAD_BLOCKED_RECEIVE; EP_CLOSED:
 * either, and nobody joins them.  Each points back with waits_on.  Every step is
 * constant time, except closing (abort_*.c).
 */
#include <kernel.h>
#include <endpoint_queue.h>
#include <timing.h>

/* The message itself: a fault, or the sender's registers. */
static void endpoint_transfer(struct tcb *from, struct tcb *to, const struct endpoint *endpoint,
                              word_t badge, const struct message_caps *caps, bool fault)
{
    if (fault)
        fault_write_message(from, to);
    else
        message_transfer(from, to, endpoint, caps);
    to->regs[REG_BADGE] = badge;
}

/* After the transfer: the sender waits for its answer, or goes on. */
static void settle_sender(struct tcb *sender, struct tcb *receiver, bool call)
{
    if (call) {
        reply_expect(sender, receiver, receiver->may_grant);
    } else {
        sender->regs[REG_BADGE] = 0;
        if (sender->state != THREAD_RUNNING)
            thread_wake(sender);
    }
}

void endpoint_send(struct tcb *sender, struct endpoint *endpoint, word_t badge, word_t how,
                   bool may_grant)
{
    bool blocking = (how & SEND_BLOCKING) != 0, call = (how & SEND_CALL) != 0;
    struct message_caps caps;
    struct tcb *receiver;

    if (endpoint->state == EP_CLOSED) {
        thread_abort_call(sender);
    } else if (endpoint->state == EP_RECEIVING && donation_is_refused(sender, endpoint->head, blocking, call)) {
        thread_fail_call(sender, ERROR_NO_CONTEXT);
    } else if (endpoint->state == EP_RECEIVING) {
        message_find_caps(&caps, sender, endpoint->head, may_grant);
        receiver = endpoint_dequeue(endpoint);
        endpoint_transfer(sender, receiver, endpoint, badge, &caps, (how & SEND_FAULT) != 0);
        donation_make(sender, receiver, call);
        thread_wake(receiver);
        settle_sender(sender, receiver, call);
    } else if (blocking && donation_may_not_wait(sender, call)) {
        thread_fail_call(sender, ERROR_NO_CONTEXT);
    } else if (blocking) {
        sender->state = THREAD_BLOCKED_SEND;
        sender->send_badge = badge;
        sender->send_call = call;
        sender->may_grant = may_grant;
        endpoint->state = EP_SENDING;
        endpoint_enqueue(endpoint, sender);
    } else {
        sender->regs[REG_BADGE] = 0;
    }
}

/* The receiver's slot for a reply capability is empty. */
void endpoint_receive(struct tcb *receiver, struct endpoint *endpoint, bool may_grant)
{
    struct message_caps caps;
    struct tcb *sender;

    receiver->may_grant = may_grant;
    if (endpoint->state == EP_CLOSED) {
        thread_abort_call(receiver);
    } else if (endpoint->state == EP_SENDING) {
        sender = endpoint->head;
        message_find_caps(&caps, sender, receiver, sender->may_grant && sender->fault == 0);
        abort_mend(endpoint, sender);
        endpoint_dequeue(endpoint);
        endpoint_transfer(sender, receiver, endpoint, sender->send_badge, &caps, sender->fault != 0);
        donation_end(receiver);
        donation_make(sender, receiver, sender->send_call);
        settle_sender(sender, receiver, sender->send_call);
    } else {
        receiver->state = THREAD_BLOCKED_RECEIVE;
        endpoint->state = EP_RECEIVING;
        endpoint_enqueue(endpoint, receiver);
        donation_end(receiver);
    }
}

static void close_endpoint(struct endpoint *endpoint, bool recycle)
{
    abort_claim_endpoint(endpoint, recycle);
    endpoint->state = EP_CLOSED;
    abort_endpoint(endpoint);
}

/* Wake all threads with an error, for an endpoint that no capability leads to. */
void endpoint_close(struct endpoint *endpoint)
{
    close_endpoint(endpoint, false);
}

/* Wake all threads with an error; then it can be used again. */
void endpoint_recycle(struct endpoint *endpoint)
{
    close_endpoint(endpoint, true);
    endpoint->state = EP_IDLE;
}
