/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lazy scheduling: a thread that blocks stays in its ready queue, in the hope that
 * it is woken soon.  Whoever looks for the next thread takes those out that cannot
 * run (section 3.1, figure 2).  The current thread is in a queue too, at its front.
 *
 * Invariants:
 *   state == THREAD_RUNNING  =>  queued == 1, but for one that the fastpath made current
 *   the idle thread is THREAD_RUNNING, and of the highest priority, from when it is urged to its call
 *   (and the invariants of the ready queues, ready_*.c)
 *   between kernel entries: the current thread can run and is the first of its queue
 *   that can if it is in one, no thread that can run is of higher priority,
 *   woken == null
 */
#include <kernel.h>
#include <machine.h>
#include <ready.h>
#include <slice.h>
#include <timing.h>

word_t slice_since WITH_CURRENT;
word_t slice_has_tick WITH_CURRENT;
static struct tcb *woken WITH_CURRENT; /* runnable: the most urgent one woken since entry */
static bool look;         /* who is most urgent is not known: it has to be looked for */

void sched_remove(struct tcb *thread)
{
    if (thread == woken) { /* others woken may be more urgent than the current one, too */
        woken = NULL;
        look = true;
    }
    if (thread->queued)
        ready_remove(thread);
}

/* To the end of its queue; true if its slice was over, so that it does not run at once. */
static bool take_turn(struct tcb *thread)
{
    bool is_over = slice_is_over(thread);

    if (thread->queued)
        ready_remove(thread);
    slice_renew(thread);
    ready_append(thread);
    return is_over;
}

/* The thread has just become runnable, or moves to another queue. */
void sched_wake(struct tcb *thread)
{
    if (thread->state != THREAD_RUNNING || thread == current_thread) { /* its priority has changed */
        if (thread->queued)
            ready_remove(thread);
        if (thread->state != THREAD_RUNNING)
            return;
        ready_prepend(thread);
        look = true;
        return;
    }
    if (take_turn(thread)) {
        look = true;
        return;
    }
    if (woken == NULL || thread->priority > woken->priority)
        woken = thread;
}

/* Threads that wake together are queued in this order already. */
void sched_queue(struct tcb *thread)
{
    sched_wake(thread);
}

void sched_yield(void)
{
    slice_charge();
    take_turn(current_thread);
    look = true;
}

/* A tick: if the slice is over, the current thread takes its turn, if it can run. */
void sched_expire(void)
{
    slice_charge_tick();
    if (current_thread->state != THREAD_RUNNING || !slice_is_over(current_thread))
        return;
    take_turn(current_thread);
    look = true;
}

/* There is work for it: it is the first of the most urgent. */
void sched_urge_idle(void)
{
    if (idle_thread.state == THREAD_RUNNING)
        return;
    (void)timing_make_runnable(&idle_thread);
    idle_thread.priority = PRIORITIES - 1;
    ready_prepend(&idle_thread);
    look = true;
}

/* It makes its call, and runs again when nobody else does.  True if it was urged. */
bool sched_calm_idle(void)
{
    bool was_urged = idle_thread.state == THREAD_RUNNING;

    sched_remove(&idle_thread);
    idle_thread.state = THREAD_INACTIVE;
    idle_thread.priority = 0;
    return was_urged;
}

/* The first thread of the highest priority that can run; blocked threads are taken out. */
static struct tcb *sched_choose(void)
{
    /* bound: PRIORITIES + 1 */
    for (word_t left = PRIORITIES; left != 0; left--) {
        struct queue *queue = &ready[left - 1];

        COMPUTED_IN_EACH_TURN(queue);
        /* counted: blocked_thread */
        while (queue->head != NULL) {
            struct tcb *thread = queue->head;

            if (thread->state == THREAD_RUNNING)
                return thread;
            /* fact: blocked_thread executes at most blocked_threads times */
            MACHINE_LABEL("blocked_thread");
            ready_remove(thread);
        }
    }
    return &idle_thread;
}

/* First in its queue, whether it is in one or not. */
static void put_first(struct tcb *thread)
{
    if (thread->queued)
        ready_remove(thread);
    ready_prepend(thread);
}

/* The fastpath: it leaves the queue that it has stayed in when it blocked, perhaps behind others. */
void sched_hand_over(struct tcb *thread)
{
    if (thread->queued)
        ready_remove(thread);
    sched_switch(thread);
}

/*
 * Choose the current thread.  Without a look at the queues if it can go on, or if
 * the one just woken is at least as urgent: then nobody else is more urgent.
 */
void sched_run(void)
{
    struct tcb *best = NULL;

    slice_charge();
    if (current_thread->state == THREAD_RUNNING && !current_thread->queued)
        ready_prepend(current_thread); /* the fastpath made it current */
    if (current_thread->state == THREAD_RUNNING && !look)
        best = current_thread;
    if (woken != NULL && !look
        && woken->priority >= current_thread->priority + (best != NULL))
        best = woken;
    if (best == NULL)
        best = sched_choose();
    woken = NULL;
    look = false;
    if (best == current_thread)
        return;
    if (current_thread->state == THREAD_RUNNING && slice_is_over(current_thread))
        take_turn(current_thread);
    if (best != &idle_thread)
        put_first(best);
    sched_switch(best);
}
