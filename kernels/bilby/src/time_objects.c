/* SPDX-License-Identifier: BSD-2-Clause */
/* Invocations of contexts and of schedule control; a context that is no more. */
#include <timing.h>
#include <bound.h>

/* Budget and period, of a context that has used some of the old ones, or of a new one. */
static void set_budget(struct context *context, word_t budget, word_t period)
{
    bool was_full = context_is_full(context);

    context->left += budget - context->budget;
    context->budget = budget;
    context->period = period;
    if (was_full || context_is_full(context)) {
        context->left = budget;
        context->used = 0;
        context->due = 0;
    }
    context->told = 0;
    alarm_is_old = true;
    if (context->place == 0 || context_is_lacking(context))
        return;
    release_remove(context);
    sched_wake(context->thread);
}

static word_t decode_configure(const struct invocation *call)
{
    const struct cap *cap;
    word_t budget, period;

    if (call->length < 2 || call->extra_count < 1)
        return ERROR_TRUNCATED;

    cap = &call->extra[0]->cap;
    if (cap_type(cap) != CAP_CONTEXT)
        return ERROR_INVALID_CAPABILITY;

    budget = message_word(current_thread, 0);
    period = message_word(current_thread, 1);
    if (budget < 2 * BUDGET_MIN || budget > period || period > PERIOD_TICKS_MAX)
        return ERROR_RANGE;

    set_budget(context_at((struct context *)context_cap_object(cap)), budget, period);
    return ERROR_NONE;
}

/* One word and another choice: no thread is looked for. */
static word_t decode_level(const struct invocation *call)
{
    word_t level;

    if (call->length < 1)
        return ERROR_TRUNCATED;

    level = message_word(current_thread, 0);
    if (level >= CRITICALITIES)
        return ERROR_RANGE;

    system_level = level;
    alarm_is_old = true;
    return ERROR_NONE;
}

static word_t decode_sched_control(const struct invocation *call)
{
    switch (call->label) {
    case LABEL_CONTEXT_CONFIGURE:
        return decode_configure(call);
    case LABEL_SYSTEM_CRITICALITY:
        return decode_level(call);
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}

/* A signal that waited because the thread had no time. */
static void take_signal(const struct tcb *thread)
{
    struct notification *notification;
    word_t badge;

    if (thread->state != THREAD_BLOCKED_RECEIVE || !bound_has_signal(thread))
        return;
    notification = notification_at(thread->bound);
    badge = notification->pending;
    notification->pending = 0;
    notification->signalled = 0;
    notification_signal(notification, badge);
}

static word_t decode_bind(struct context *context, const struct invocation *call)
{
    struct tcb *thread;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    if (cap_type(&call->extra[0]->cap) != CAP_TCB)
        return ERROR_INVALID_CAPABILITY;

    thread = tcb_at((struct tcb *)tcb_cap_object(&call->extra[0]->cap));
    if (context->budget == 0 || context->home != NULL || context->thread != NULL
        || thread->home != NULL)
        return ERROR_ILLEGAL_OPERATION;

    if (contexts_bound == RELEASE_PLACES)
        return ERROR_NO_PLACE;

    contexts_bound++;
    context->home = thread;
    thread->home = context;
    loan_take_own(thread);
    take_signal(thread);
    return ERROR_NONE;
}

static word_t decode_unbind(const struct context *context)
{
    if (context->home == NULL)
        return ERROR_ILLEGAL_OPERATION;

    if (context->thread == context->home)
        sched_remove(context->home);
    loan_leave_thread(tcb_at(context->home));
    return ERROR_NONE;
}

/* The answer is in the caller's message. */
static word_t tell_consumed(struct context *context)
{
    if (context == running) {
        context_charge(clock_now());
        alarm_is_old = true;
    }
    current_thread->regs[REG_WORDS] = (word_t)context->consumed;
    current_thread->regs[REG_WORDS + 1] = (word_t)(context->consumed >> 32);
    context->consumed = 0;
    return (word_t)2 << ANSWER_SHIFT;
}

static word_t decode_yield_to(struct context *context)
{
    struct tcb *thread = context->thread;

    if (thread == NULL)
        return ERROR_ILLEGAL_OPERATION;

    thread = tcb_at(thread);
    if (thread->priority > timing_control_priority(current_thread))
        return ERROR_RANGE;

    if (thread->queued)
        sched_put_first(thread);
    return tell_consumed(context);
}

static word_t decode_context(const struct invocation *call)
{
    struct context *context = context_at((struct context *)context_cap_object(&call->slot->cap));

    switch (call->label) {
    case LABEL_CONTEXT_BIND:
        return decode_bind(context, call);
    case LABEL_CONTEXT_UNBIND:
        return decode_unbind(context);
    case LABEL_CONTEXT_CONSUMED:
        return tell_consumed(context);
    case LABEL_CONTEXT_YIELD_TO:
        return decode_yield_to(context);
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}

word_t timing_decode(const struct invocation *call)
{
    switch (cap_type(&call->slot->cap)) {
    case CAP_SCHED_CONTROL:
        return decode_sched_control(call);
    case CAP_CONTEXT:
        return decode_context(call);
    default:
        return space_decode(call);
    }
}

/* Who is on it has no time from now on. */
static void delete_context(struct context *context)
{
    struct tcb *thread = context->thread;
    struct tcb *home = context->home;

    if (thread != NULL)
        sched_remove(tcb_at(thread));
    if (thread != NULL || home != NULL)
        contexts_bound--;
    context->thread = NULL;
    context->home = NULL;
    if (home != NULL)
        tcb_at(home)->home = NULL;
    if (thread != NULL) {
        thread = tcb_at(thread);
        thread->context = NULL;
        loan_take_own(thread);
    }
    if (context == running) {
        context_charge(clock_now());
        running = NULL;
        alarm_is_old = true;
    }
}

void timing_finalise(const struct cap *cap, bool last)
{
    if (cap_type(cap) != CAP_CONTEXT)
        space_finalise(cap, last);
    else if (last)
        delete_context(context_at((struct context *)context_cap_object(cap)));
}
