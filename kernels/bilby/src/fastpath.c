/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common case of call and of reply-and-receive, end to end.
 *
 * Conditions: the message fits in registers and has no capabilities; the root
 * CNode resolves the whole address; somebody waits for exactly this; and the
 * thread to run is at least as urgent as this one, so that no queue need be
 * looked at.  "applies" checks them and changes nothing; it gives the endpoint's
 * capability, or null: then the general path does the work.  Both paths have the same
 * effect.  (Two functions each, so that no path through the second reaches the general one.)
 */
#include <bound.h>
#include <endpoint_queue.h>
#include <timing.h>

/* The endpoint capability at an address that one CNode resolves; else null. */
static const struct cap *direct_endpoint(word_t address)
{
    const struct cap *root = &current_thread->cspace.cap;
    word_t radix = cnode_cap_radix(root);
    const struct cap *cap;

    if (cap_type(root) != CAP_CNODE
        || radix + cnode_cap_guard_size(root) != ADDRESS_BITS
        || address >> radix != cnode_cap_guard(root))
        return NULL;
    cap = &((struct slot *)cnode_cap_object(root))[address & ((1u << radix) - 1)].cap;
    return cap_type(cap) == CAP_ENDPOINT ? cap : NULL;
}

static bool is_short(word_t message)
{
    return message_length(message) <= MESSAGE_REGISTERS && message_extra(message) == 0;
}

/* Give the message to a blocked thread and run it; the call may have been preempted before. */
static void hand_over(struct tcb *from, struct tcb *to, word_t message, word_t badge)
{
    thread_end_call(from);
    to->regs[REG_BADGE] = badge;
    to->regs[REG_MESSAGE] = message_make(message_length(message), 0, 0,
                                         message_label(message));
    to->regs[REG_WORDS] = from->regs[REG_WORDS];
    to->regs[REG_WORDS + 1] = from->regs[REG_WORDS + 1];
    to->regs[REG_WORDS + 2] = from->regs[REG_WORDS + 2];
    to->regs[REG_WORDS + 3] = from->regs[REG_WORDS + 3];
    to->state = THREAD_RUNNING;
    sched_hand_over(to);
}

const struct cap *fastpath_call_applies(word_t address, word_t message)
{
    const struct cap *cap;
    const struct endpoint *endpoint;

    if (!is_short(message))
        return NULL;

    cap = direct_endpoint(address);
    if (cap == NULL || !endpoint_cap_can_send(cap))
        return NULL;

    endpoint = (const struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state != EP_RECEIVING)
        return NULL;

    return endpoint->head->priority < current_thread->priority
        || !donation_is_direct(current_thread, endpoint->head) ? NULL : cap;
}

void fastpath_call(const struct cap *cap, word_t message)
{
    struct tcb *caller = current_thread;
    word_t badge = endpoint_cap_badge(cap);
    struct tcb *server = endpoint_dequeue((struct endpoint *)endpoint_cap_object(cap));

    reply_expect(caller, server, server->may_grant);
    donation_hand_over(caller, server, true);
    hand_over(caller, server, message, badge);
}

const struct cap *fastpath_reply_receive_applies(word_t address, word_t message)
{
    const struct cap *reply = &current_thread->caller.cap;
    const struct cap *cap;
    const struct endpoint *endpoint;
    const struct tcb *caller;

    if (!is_short(message) || cap_type(reply) != CAP_REPLY)
        return NULL;

    cap = direct_endpoint(address);
    if (cap == NULL || !endpoint_cap_can_receive(cap))
        return NULL;

    endpoint = (const struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state != EP_IDLE && endpoint->state != EP_RECEIVING)
        return NULL; /* somebody sends already, or it is being closed */

    if (bound_has_signal(current_thread))
        return NULL;

    caller = (const struct tcb *)reply_cap_object(reply);
    return caller->fault != 0 || caller->priority < current_thread->priority
        || !donation_returns_directly(current_thread, caller) ? NULL : cap;
}

void fastpath_reply_receive(const struct cap *cap, word_t message)
{
    struct tcb *server = current_thread;
    struct tcb *caller = (struct tcb *)reply_cap_object(&server->caller.cap);
    struct endpoint *endpoint = (struct endpoint *)endpoint_cap_object(cap);

    slot_empty(&server->caller);
    server->may_grant = endpoint_cap_can_grant(cap);
    server->state = THREAD_BLOCKED_RECEIVE;
    endpoint->state = EP_RECEIVING;
    endpoint_enqueue(endpoint, server);
    donation_hand_over(server, caller, false);
    hand_over(server, caller, message, 0);
}
