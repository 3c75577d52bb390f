/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benno scheduling: every thread in a ready queue is runnable, and the current
 * thread is in none.  A thread woken by IPC is not queued at once: it may run
 * directly, and then the thread that was current is queued instead.
 *
 * Invariants:
 *   queued == 1   =>  state == THREAD_RUNNING and it is neither current nor idle
 *   (and those of the ready queues, ready_*.c)
 *   between kernel entries: woken == null, and no queued thread is of higher
 *   priority than the current one
 */
#include <kernel.h>
#include <ready.h>

static struct tcb *woken; /* runnable, not queued: the most urgent one woken since entry */

/* Take a thread out of its ready queue, if it is in one, or from those just woken. */
void sched_remove(struct tcb *thread)
{
    if (thread == woken)
        woken = NULL;
    if (thread->queued)
        ready_remove(thread);
}

/*
 * The thread has just become runnable.  If it is less urgent than the current
 * one it cannot run at once, and takes its turn.
 */
void sched_wake(struct tcb *thread)
{
    struct tcb *other = woken;

    thread = tcb_at(thread);
    if (thread->priority < current_thread->priority) {
        ready_append(thread);
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
    ready_append(thread);
}

void sched_yield(void)
{
    ready_append(current_thread);
}

/*
 * Its slice of time is over: it takes its turn.  It may have blocked or yielded just before, in
 * the call that this interrupt came in, or have been woken since.
 */
void sched_expire(void)
{
    if (current_thread->state == THREAD_RUNNING && !current_thread->queued
        && current_thread != woken)
        ready_append(current_thread);
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

    if (current_thread->state == THREAD_RUNNING && !current_thread->queued && current_thread != other)
        best = current_thread;
    if (other != NULL) {
        woken = NULL;
        other = tcb_at(other);
        if (best == NULL || other->priority > best->priority) {
            if (best != NULL)
                ready_prepend(best);
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
