/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benno scheduling (sched_benno.c) of threads that need time to run.
 *
 * A thread runs on a context that has at least the minimum budget left: as much as the kernel
 * takes, at worst, from an entry to its first preemption point and out.  So whoever is chosen can
 * leave the kernel in time, and a call that is preempted gets further each time it is made.
 *
 * Time is charged when another context runs next, or an alarm came.  A thread that has less than the
 * minimum left then stays where it is until it would be chosen: then the idle thread runs instead,
 * and its system call deals with that one.  It waits in the release queue, or its timeout handler is
 * told.  So each entry is constant, and interrupts pay for none of it.
 *
 * Invariants:
 *   state == THREAD_RUNNING  =>  it has a context, and is current, or queued, or in the release queue
 *   queued == 1   =>  state == THREAD_RUNNING, and it is neither current nor idle
 *   in the release queue: contexts of threads that are runnable, not queued and not current
 *   between kernel entries: woken == null, "running" is the current thread's context, and no queued
 *   thread is more urgent than the current one; but one that cannot run, if the idle thread does
 */
#include <ready.h>
#include <timing.h>
#include <clock.h>

static bool idle_is_urged; /* it runs before everybody, as soon as budgets are looked at */
static struct tcb *woken WITH_CURRENT; /* runnable, not queued: the most urgent one woken since entry */

/* Take a thread out of the queue in which it waits for its turn, or for time, or from those just woken. */
void sched_remove(struct tcb *thread)
{
    if (thread == woken)
        woken = NULL;
    if (thread->queued)
        ready_remove(thread);
    if (timing_waits(thread))
        release_remove(context_at(thread->context));
}

/*
 * A thread that was woken does not run at once: it takes its turn, behind its equals.  If it waited in
 * the middle of a slice, that turn is over, and the rest is given away: the next is a whole one.
 */
static void take_place(struct tcb *thread)
{
    struct context *context = context_at(thread->context);

    if (context_is_full(context) && context != running && (int)context->left > 0)
        context->left = context->budget;
    ready_append(thread);
}

/*
 * The thread has just become runnable.  If it is less urgent than the current
 * one it cannot run at once.
 */
void sched_wake(struct tcb *thread)
{
    struct tcb *other = woken;

    thread = tcb_at(thread);
    if (urgency(thread) < urgency(current_thread)) {
        take_place(thread);
    } else if (other == NULL) {
        woken = thread;
    } else if (urgency(thread) > urgency(tcb_at(other))) {
        woken = thread;
        take_place(tcb_at(other));
    } else {
        take_place(thread);
    }
}

/* The thread has just become runnable, and takes its turn. */
void sched_queue(struct tcb *thread)
{
    ready_append(thread);
}

/* It stands in a ready queue, and is the next of its equals. */
void sched_put_first(struct tcb *thread)
{
    ready_remove(thread);
    ready_prepend(thread);
}

/* A runnable thread has no time left: it waits for more, or for its turn. */
void sched_exhaust(struct tcb *thread)
{
    struct context *context = context_at(thread->context);

    if (context_is_full(context)) {
        context->left = context->budget;
        ready_append(thread);
        return;
    }
    context_note_due(context);
    release_insert(context);
}

/* The current thread gives up the rest of its budget. */
void sched_yield(void)
{
    context_charge(clock_now());
    context_give_up();
    sched_exhaust(current_thread);
    alarm_is_old = true;
}

/* An alarm: release one context, if its time has come; the current one's rest is checked later. */
void sched_expire(void)
{
    struct context *context;
    count_t now = clock_now();

    clock_quiet();
    alarm_is_old = true;
    if (context_begin_turn(now))
        delete_take_turn();
    if (release_next_due() > now)
        return;
    context = release_first();
    release_remove(context);
    context->left += context->due;
    context->due = 0;
    context->begins = BEGINS_RELEASED;
    context->told = 0;
    sched_queue(context->thread);
}

/* There is work for it, at an alarm: it runs next. */
void sched_urge_idle(void)
{
    idle_is_urged = true;
}

/* It makes its call, and runs again when nobody else does.  True if it was urged. */
bool sched_calm_idle(void)
{
    bool was_urged = idle_is_urged;

    idle_is_urged = false;
    return was_urged;
}

/* The fastpath: the thread was blocked, so it is in no queue, and nobody is more urgent. */
void sched_hand_over(struct tcb *thread)
{
    sched_switch(thread);
}

/*
 * Of the current thread, the woken one and the first of the ready queues, the most urgent; in this
 * order if they are equal.  It is in no queue then.
 */
static struct tcb *choose(void)
{
    struct tcb *best = NULL;
    struct tcb *other = woken;
    struct tcb *first;

    if (current_thread->state == THREAD_RUNNING && !current_thread->queued && current_thread != other
        && !timing_waits(current_thread))
        best = current_thread;
    if (other != NULL) {
        woken = NULL;
        other = tcb_at(other);
        if (best == NULL || urgency(other) > urgency(best)) {
            if (best != NULL)
                ready_prepend(best);
            best = other;
        } else {
            take_place(other);
        }
    }
    first = ready_take(best == NULL ? 0 : urgency(best) + 1);
    if (first != NULL) {
        if (best != NULL)
            ready_prepend(best);
        best = first;
    }
    return best == NULL ? &idle_thread : best;
}

/* Whether its due amount gives it time enough, and no timeout is to be reported to it. */
bool sched_may_run(const struct tcb *thread, count_t now)
{
    struct context *context = thread->context;

    if (context == NULL)
        return true; /* the idle thread */
    context = context_at(context);
    context_begin(context, now);
    if (context_is_lacking(context))
        return false;
    context->told = 0;
    return !timeout_is_due(thread);
}

/*
 * Another context is to run, or the alarm is old: charge, and see whether the one that was chosen can.
 * It has to wait also while abandoned deletions have their turn.
 */
static struct tcb *account(struct tcb *best)
{
    count_t now = clock_now();

    context_charge(now);
    if (best != &idle_thread && (idle_is_urged || !sched_may_run(best, now))) {
        ready_prepend(best);
        idle_thread.regs[REG_PC] = (word_t)idle_loop;
        best = &idle_thread;
    }
    running = best->context;
    context_set_alarm(now);
    return best;
}

void sched_run(void)
{
    struct tcb *best = choose();

    if (best->context != running || alarm_is_old)
        best = account(best);
    if (best != current_thread)
        sched_switch(best);
}
