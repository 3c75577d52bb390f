/* SPDX-License-Identifier: BSD-2-Clause */
/* Invocations of contexts and of schedule control; a context that is no more. */
#include <timing.h>
#include <bound.h>

/*
 * Budget and period, of a context that has used some of the old ones, or of a new one.  One that shared
 * its time by turns begins its first amount now, or when it runs next.
 */
static void set_budget(struct context *context, word_t budget, word_t period)
{
    bool was_full = context_is_full(context);

    if (context == running)
        context_charge(clock_now());
    context->left += budget - context->budget;
    context->budget = budget;
    context->period = period;
    if (was_full || context_is_full(context)) {
        context->left = budget;
        context->used = 0;
        context->due = 0;
        context->anchor = since;
        if (context != running)
            context->begins = BEGINS_WOKEN;
    }
    context->told = 0;
    alarm_is_old = true;
    if (!context_is_queued(context) || context_is_lacking(context))
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
    if (budget < BUDGET_LEAST || budget > period || period > PERIOD_TICKS_MAX)
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

/* A signal that is pending because the bound thread had no time is given again. */
static void signal_again(struct notification *notification)
{
    word_t badges;

    if (notification == NULL || notification_at(notification)->signalled != 1)
        return;
    notification = notification_at(notification);
    badges = notification->pending;
    notification->pending = 0;
    notification->signalled = 0;
    notification_signal(notification, badges);
}

static word_t bind_to_thread(struct context *context, struct tcb *thread)
{
    if (thread->home != NULL)
        return ERROR_ILLEGAL_OPERATION;

    if (contexts_bound == RELEASE_PLACES)
        return ERROR_NO_PLACE;

    contexts_bound++;
    context->home = thread;
    thread->home = context;
    donation_take_own(thread);
    signal_again(thread->bound);
    return ERROR_NONE;
}

/* As for binding to a thread, whoever does it needs the right to receive. */
static word_t bind_to_notification(struct context *context, const struct cap *cap)
{
    struct notification *notification = (struct notification *)notification_cap_object(cap);

    if (!notification_cap_can_receive(cap))
        return ERROR_NO_RIGHT;

    if (notification->context != NULL)
        return ERROR_ILLEGAL_OPERATION;

    if (contexts_bound == RELEASE_PLACES)
        return ERROR_NO_PLACE;

    contexts_bound++;
    context->notification = notification;
    notification->context = context;
    donation_offer(notification);
    signal_again(notification);
    return ERROR_NONE;
}

static word_t decode_bind(struct context *context, const struct invocation *call)
{
    const struct cap *cap;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    cap = &call->extra[0]->cap;
    if (cap_type(cap) != CAP_TCB && cap_type(cap) != CAP_NOTIFICATION)
        return ERROR_INVALID_CAPABILITY;

    if (context->budget == 0 || context_is_bound(context) || !context_is_free(context))
        return ERROR_ILLEGAL_OPERATION;

    if (cap_type(cap) == CAP_NOTIFICATION)
        return bind_to_notification(context, cap);
    return bind_to_thread(context, tcb_at((struct tcb *)tcb_cap_object(cap)));
}

static word_t decode_unbind(const struct context *context)
{
    if (!context_is_bound(context))
        return ERROR_ILLEGAL_OPERATION;

    if (context->notification != NULL) {
        donation_leave_notification(context->notification);
        return ERROR_NONE;
    }
    if (context_is_at_home(context))
        sched_remove(context->home);
    donation_leave_thread(tcb_at(context->home));
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

/* The thread on it has no time from now on, except on its own context. */
static void delete_context(struct context *context)
{
    struct tcb *thread = context->thread;

    if (thread != NULL)
        sched_remove(tcb_at(thread));
    if (thread != NULL || context_is_bound(context))
        contexts_bound--;
    context->thread = NULL;
    if (context->home != NULL)
        tcb_at(context->home)->home = NULL;
    if (context->notification != NULL)
        notification_at(context->notification)->context = NULL;
    context->home = NULL;
    context->notification = NULL;
    if (thread != NULL)
        donation_lose(tcb_at(thread));
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
