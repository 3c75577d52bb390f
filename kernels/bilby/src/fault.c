/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of user threads become calls to their fault handlers.
 *
 * The handler is an endpoint, named by an address in the thread's own capability
 * space.  A fault cannot be preempted.  Without a handler that can be sent to, the
 * thread stops for good.
 */
#include <timing.h>

/* The current thread cannot go on at its pc. */
void fault_raise(struct tcb *thread, word_t fault, word_t address, word_t status)
{
    struct slot *handler = cspace_resolve(&thread->cspace.cap, thread->fault_handler,
                                          ADDRESS_BITS);

    thread_end_call(thread); /* the handler may send it elsewhere */
    thread->fault = fault;
    thread->fault_info[0] = address;
    thread->fault_info[1] = status;
    if (handler == NULL || cap_type(&handler->cap) != CAP_ENDPOINT
        || !endpoint_cap_can_send(&handler->cap)) {
        thread->state = THREAD_INACTIVE;
        donation_stop(thread);
        return;
    }
    endpoint_send(thread, (struct endpoint *)endpoint_cap_object(&handler->cap),
                  endpoint_cap_badge(&handler->cap), SEND_BLOCKING | SEND_CALL | SEND_FAULT, false);
}
