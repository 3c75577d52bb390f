/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benno scheduling: every thread in a ready queue is runnable, and the current
 * thread is in none.  A thread woken by IPC is not queued at once: it may run
 * directly, and then the thread that was current is queued instead.
 *
 * Invariants:
 *   queued == 1   =>  state == THREAD_RUNNING and it is not current
 *   (and the invariants of the ready queues, ready_*.c)
 *   between kernel entries: woken == null, and no queued thread is of higher
 *   priority than the current one
 *   the idle thread is THREAD_RUNNING, and of the highest priority, from when it is urged to its call
 */
#include <kernel.h>
#include <ready.h>
#include <slice.h>
#include <timing.h>

word_t slice_since WITH_CURRENT;
word_t slice_has_tick WITH_CURRENT;
static struct tcb *woken WITH_CURRENT; /* runnable, not queued: the most urgent one woken since entry */

/* Take a thread out of its ready queue, if it is in one, or from those just woken. */
void sched_remove(struct tcb *thread)
{
    if (thread == woken)
        woken = NULL;
    if (thread->queued)
        ready_remove(thread);
}

/* To the end of its queue. */
static void take_turn(struct tcb *thread)
{
    slice_renew(thread);
    ready_append(thread);
}

/* The current thread makes way for a more urgent one, and is the next of its equals. */
static void make_way(struct tcb *thread)
{
    if (slice_is_over(thread))
        take_turn(thread);
    else
        ready_prepend(thread);
}

/*
 * The thread has just become runnable.  If it is less urgent than the current
 * one, or its slice is over, it cannot run at once, and takes its turn.
 */
void sched_wake(struct tcb *thread)
{
    struct tcb *other = woken;

    thread = tcb_at(thread);
    if (thread->priority < current_thread->priority || slice_is_over(thread)) {
        take_turn(thread);
    } else if (other == NULL) {
        woken = thread;
    } else if (thread->priority > tcb_at(other)->priority) {
        woken = thread;
        ready_append(other);
    } else {
        ready_append(thread);
    }
}

/* The thread has just become runnable, and takes its turn. */
void sched_queue(struct tcb *thread)
{
    take_turn(thread);
}

void sched_yield(void)
{
    slice_charge();
    take_turn(current_thread);
}

/*
 * A tick: if the slice is over, the current thread takes its turn.  It may have blocked or yielded
 * just before, in the call that this interrupt came in, or have been woken since.
 */
void sched_expire(void)
{
    slice_charge_tick();
    if (current_thread->state == THREAD_RUNNING && !current_thread->queued
        && current_thread != woken && slice_is_over(current_thread))
        take_turn(current_thread);
}

/* There is work for it: it is the first of the most urgent. */
void sched_urge_idle(void)
{
    if (idle_thread.state == THREAD_RUNNING)
        return;
    (void)timing_make_runnable(&idle_thread);
    idle_thread.priority = PRIORITIES - 1;
    ready_prepend(&idle_thread);
}

/* It makes its call, and runs again when nobody else does.  True if it was urged. */
bool sched_calm_idle(void)
{
    bool was_urged = idle_thread.state == THREAD_RUNNING;

    idle_thread.state = THREAD_INACTIVE;
    idle_thread.priority = 0;
    return was_urged;
}

/* The fastpath: the thread was blocked, so it is in no queue, and nobody is more urgent. */
void sched_hand_over(struct tcb *thread)
{
    sched_switch(thread);
}

/*
 * Choose the current thread.  Of the old one, the woken one and the first of the
 * ready queues, the most urgent; in this order if they are equal.  The old one is the woken one
 * if it blocked and an interrupt woke it before another was chosen.
 */
void sched_run(void)
{
    struct tcb *best = NULL;
    struct tcb *other = woken;
    struct tcb *first;

    slice_charge();
    if (current_thread->state == THREAD_RUNNING && !current_thread->queued && current_thread != other)
        best = current_thread;
    if (other != NULL) {
        woken = NULL;
        other = tcb_at(other);
        if (best == NULL || other->priority > best->priority) {
            if (best != NULL)
                make_way(best);
            best = other;
        } else {
            ready_append(other);
        }
    }
    first = ready_take(best == NULL ? 0 : best->priority + 1);
    if (first != NULL) {
        if (best != NULL)
            ready_prepend(best);
        best = first;
    }
    if (best == NULL)
        best = &idle_thread;
    if (best != current_thread)
        sched_switch(best);
}
