/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timeouts: a thread whose time is used up tells its handler, as by a fault.
 *
 * The handler's endpoint stands in the thread, so that nothing is looked up.  The timeout comes
 * when the thread would be chosen to run; until then it stays where it is.  So a change of the
 * system's criticality need not look for those who work for less critical threads.
 */
#include <timing.h>
#include <endpoint_queue.h>

/* It is on time that was lent by a thread that does not count now, and was not told yet. */
static bool is_on_low_loan(const struct tcb *thread)
{
    const struct context *context = context_at(thread->context);
    const struct tcb *home = context->home;

    return home != NULL && home != thread && !context->excused
        && tcb_at(home)->criticality < system_level;
}

/* Its time is used up, and it was not told yet.  A full context only ends a turn. */
static bool is_used_up(const struct context *context)
{
    return context_is_lacking(context) && !context->told && !context_is_full(context);
}

/* A thread that is about to run is told instead. */
bool timeout_is_due(const struct tcb *thread)
{
    return timeout_has_handler(thread)
        && (is_used_up(context_at(thread->context)) || is_on_low_loan(thread));
}

/* The handler has the message, or the thread waits until it takes it. */
static void tell(struct tcb *thread, struct endpoint *endpoint, word_t badge)
{
    struct tcb *handler;

    thread->state = THREAD_BLOCKED_SEND;
    if (endpoint->state != EP_RECEIVING) {
        thread->send_badge = badge;
        thread->send_call = 1;
        thread->may_grant = 0;
        endpoint->state = EP_SENDING;
        endpoint_enqueue(endpoint, thread);
        return;
    }
    handler = endpoint_dequeue(endpoint);
    fault_write_message(thread, handler);
    handler->regs[REG_BADGE] = badge;
    loan_make(thread, handler, true);
    reply_expect(thread, handler, handler->may_grant);
    thread_wake(handler);
}

/* It is in no queue. */
void timeout_raise(struct tcb *thread)
{
    const struct cap *cap = &thread->timeout.cap;
    struct endpoint *endpoint = (struct endpoint *)endpoint_cap_object(cap);
    struct context *context = context_at(thread->context);
    bool by_budget = is_used_up(context);

    thread_end_call(thread); /* the handler may send it elsewhere */
    thread->fault = FAULT_TIMEOUT;
    thread->fault_info[0] = by_budget ? TIMEOUT_BUDGET : TIMEOUT_CRITICALITY;
    thread->fault_info[1] = 0;
    if (by_budget)
        context->told = 1;
    else
        context->excused = 1;
    if (endpoint->state == EP_CLOSED) {
        thread->state = THREAD_INACTIVE; /* nobody handles it */
        loan_stop(thread);
    } else {
        tell(thread, endpoint, endpoint_cap_badge(cap));
    }
}
