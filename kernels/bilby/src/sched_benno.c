/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benno scheduling: every thread in a ready queue is runnable, and the current
 * thread is in none.  A thread woken by IPC is not queued at once: it may run
 * directly, and then the thread that was current is queued instead.
 *
 * Invariants:
 *   queued == 1  <=>  the thread is in the ready queue of its priority
 *   queued == 1   =>  state == THREAD_RUNNING and it is neither current nor idle
 *   ready_words has bit w  <=>  ready_bits[w] != 0
 *   ready_bits[w] has bit b  <=>  queue 32 w + b is not empty
 *   between kernel entries: woken == null, and no queued thread is of higher
 *   priority than the current one
 */
#include <kernel.h>

struct queue { struct tcb *head, *tail; };

static struct queue ready[PRIORITIES];
static word_t ready_bits[PRIORITY_WORDS];
static word_t ready_words;
static struct tcb *woken; /* runnable, not queued: the most urgent one woken since entry */

static void mark_ready(word_t priority)
{
    ready_words |= 1u << (priority / 32);
    ready_bits[priority / 32] |= 1u << (priority % 32);
}

static void mark_empty(word_t priority)
{
    word_t word = priority / 32;

    ready_bits[word] &= ~(1u << (priority % 32));
    if (ready_bits[word] == 0)
        ready_words &= ~(1u << word);
}

static void append(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];

    thread->queued = 1;
    thread->sched_next = NULL;
    thread->sched_prev = queue->tail;
    if (queue->tail != NULL) {
        queue->tail->sched_next = thread;
    } else {
        queue->head = thread;
        mark_ready(thread->priority);
    }
    queue->tail = thread;
}

static void prepend(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];

    thread->queued = 1;
    thread->sched_prev = NULL;
    thread->sched_next = queue->head;
    if (queue->head != NULL) {
        queue->head->sched_prev = thread;
    } else {
        queue->tail = thread;
        mark_ready(thread->priority);
    }
    queue->head = thread;
}

/* Take a thread out of its ready queue, if it is in one. */
void sched_remove(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];

    if (!thread->queued)
        return;
    thread->queued = 0;
    if (thread->sched_prev != NULL)
        thread->sched_prev->sched_next = thread->sched_next;
    else
        queue->head = thread->sched_next;
    if (thread->sched_next != NULL)
        thread->sched_next->sched_prev = thread->sched_prev;
    else
        queue->tail = thread->sched_prev;
    if (queue->head == NULL)
        mark_empty(thread->priority);
}

/* First thread of the highest non-empty queue; some queue is not empty. */
static struct tcb *highest_ready(void)
{
    word_t word = 31 - (word_t)__builtin_clz(ready_words);
    word_t bit = 31 - (word_t)__builtin_clz(ready_bits[word]);

    return ready[word * 32 + bit].head;
}

/*
 * The thread has just become runnable.  If it is less urgent than the current
 * one it cannot run at once, and takes its turn.
 */
void sched_wake(struct tcb *thread)
{
    if (thread->priority < current_thread->priority) {
        append(thread);
    } else if (woken == NULL) {
        woken = thread;
    } else if (thread->priority > woken->priority) {
        append(woken);
        woken = thread;
    } else {
        append(thread);
    }
}

void sched_yield(void)
{
    append(current_thread);
}

/*
 * Choose the current thread.  Of the old one, the woken one and the first of the
 * ready queues, the most urgent; in this order if they are equal.
 */
void sched_run(void)
{
    struct tcb *best = NULL;

    if (current_thread->state == THREAD_RUNNING && !current_thread->queued)
        best = current_thread;
    if (woken != NULL) {
        if (best == NULL || woken->priority > best->priority) {
            if (best != NULL)
                prepend(best);
            best = woken;
        } else {
            append(woken);
        }
        woken = NULL;
    }
    if (ready_words != 0) {
        struct tcb *first = highest_ready();

        if (best == NULL || first->priority > best->priority) {
            if (best != NULL)
                prepend(best);
            sched_remove(first);
            best = first;
        }
    }
    if (best == NULL)
        best = &idle_thread;
    if (best != current_thread)
        sched_switch(best);
}
