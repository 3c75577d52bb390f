/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common case of call and of reply-and-receive, end to end.
 *
 * Conditions: the message fits in registers and has no capabilities; the root
 * CNode resolves the whole address; somebody waits for exactly this; and the
 * thread to run is at least as urgent as this one, so that no queue need be
 * looked at.  Otherwise false is returned, nothing has been changed, and the
 * general path does the work.  Both paths have the same effect.
 */
#include <kernel.h>
#include <endpoint_queue.h>

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

/* Give the message to a blocked thread and run it. */
static void hand_over(struct tcb *from, struct tcb *to, word_t message, word_t badge)
{
    to->regs[REG_BADGE] = badge;
    to->regs[REG_MESSAGE] = message_make(message_length(message), 0, 0,
                                         message_label(message));
    to->regs[REG_WORDS] = from->regs[REG_WORDS];
    to->regs[REG_WORDS + 1] = from->regs[REG_WORDS + 1];
    to->regs[REG_WORDS + 2] = from->regs[REG_WORDS + 2];
    to->regs[REG_WORDS + 3] = from->regs[REG_WORDS + 3];
    to->state = THREAD_RUNNING;
    sched_switch(to);
}

bool fastpath_call(word_t address, word_t message)
{
    struct tcb *caller = current_thread;
    const struct cap *cap;
    struct endpoint *endpoint;
    struct tcb *server;
    word_t badge;

    if (!is_short(message))
        return false;

    cap = direct_endpoint(address);
    if (cap == NULL || !endpoint_cap_can_send(cap))
        return false;

    endpoint = (struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state != EP_RECEIVING)
        return false;

    server = endpoint->head;
    if (server->priority < caller->priority)
        return false;

    badge = endpoint_cap_badge(cap);
    endpoint_dequeue(endpoint);
    reply_expect(caller, server, server->may_grant);
    hand_over(caller, server, message, badge);
    return true;
}

bool fastpath_reply_receive(word_t address, word_t message)
{
    struct tcb *server = current_thread;
    const struct cap *reply = &server->caller.cap;
    const struct cap *cap;
    struct endpoint *endpoint;
    struct tcb *caller;

    if (!is_short(message) || cap_type(reply) != CAP_REPLY)
        return false;

    cap = direct_endpoint(address);
    if (cap == NULL || !endpoint_cap_can_receive(cap))
        return false;

    endpoint = (struct endpoint *)endpoint_cap_object(cap);
    if (endpoint->state != EP_IDLE && endpoint->state != EP_RECEIVING)
        return false; /* somebody sends already, or it is being closed */

    caller = (struct tcb *)reply_cap_object(reply);
    if (caller->fault != 0 || caller->priority < server->priority)
        return false;

    slot_empty(&server->caller);
    server->may_grant = endpoint_cap_can_grant(cap);
    server->state = THREAD_BLOCKED_RECEIVE;
    endpoint->state = EP_RECEIVING;
    endpoint_enqueue(endpoint, server);
    hand_over(server, caller, message, 0);
    return true;
}
