/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The idle thread runs because whoever would be chosen cannot: it waits for time, or its timeout
 * handler is told, as by a fault.
 */
#include <ready.h>
#include <timing.h>
#include <clock.h>
#include <endpoint_queue.h>

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
    donation_make(thread, handler, true);
    reply_expect(thread, handler, handler->may_grant);
    thread_wake(handler);
}

/* It is in no queue. */
static void raise_timeout(struct tcb *thread)
{
    const struct cap *cap = &thread->timeout.cap;
    struct endpoint *endpoint = (struct endpoint *)endpoint_cap_object(cap);
    struct context *context = context_at(thread->context);
    bool by_budget = timeout_is_used_up(context);

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
        donation_stop(thread);
    } else {
        tell(thread, endpoint, endpoint_cap_badge(cap));
    }
}

/*
 * The idle thread runs: who would be chosen and cannot run waits for time, or is told.  False if nobody
 * would be; else there may be another, or something that was left: it makes its call again.
 */
bool timing_idle(void)
{
    struct tcb *thread = ready_take(0);

    if (thread == NULL)
        return false;
    if (sched_may_run(thread, clock_now()))
        ready_prepend(thread);
    else if (timeout_is_due(thread))
        raise_timeout(thread);
    else
        sched_exhaust(thread);
    idle_thread.regs[REG_PC] = (word_t)idle_loop;
    return true;
}
