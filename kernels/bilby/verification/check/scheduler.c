/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The scheduler's assumptions (section 2.2, third kind; sections 3.1, 3.2).
 *
 *   S1  ready queues are doubly linked and hold threads of their priority and criticality
 *   S2  queued  <=>  in a ready queue;  queued  =>  runnable, with a context, and not current
 *   S3  a runnable thread is current or queued, or has no time
 *   S4  a bit of the bitmaps is set  <=>  its queues are not empty
 *   S5  between operations nothing waits to be queued, and no runnable thread is more
 *       urgent than the current one, but one that the idle thread is about to stop
 *   S6  registers of a thread are a user's: mode, masked FIQ and aborts
 *   S7  the idle thread is runnable  =>  it is of the highest priority, queued or current, and has
 *       something to delete;  else it is in no queue, and of the lowest priority
 *
 * With a lazy scheduler queued threads may be blocked or current: of S2 only "queued
 * <=> in a ready queue" holds.
 */
#include "invariants.h"

struct queue { struct tcb *head, *tail; };
extern struct queue ready[READY_QUEUES] __attribute__((weak));
extern word_t ready_bits[READY_QUEUES / 32] __attribute__((weak));
extern word_t ready_words[READY_QUEUE_WORDS] __attribute__((weak));
extern struct tcb *woken __attribute__((weak));

#ifdef SCHEDULER_LAZY
const bool scheduler_is_lazy = true;
#else
static const bool scheduler_is_lazy = false;
#endif

static word_t check_queue(word_t index)
{
    struct tcb *prev = NULL;
    word_t count = 0;

    for (struct tcb *thread = ready[index].head; thread != NULL;
         thread = thread->sched_next) {
        require(thread->sched_prev == prev, "S1 a ready queue is doubly linked", thread);
        require(time_queue_of(thread) == index, "S1 a ready queue has one priority", thread);
        require(thread->queued == 1, "S2 in a ready queue => queued", thread);
        require(scheduler_is_lazy || (thread->state == THREAD_RUNNING && thread != current_thread),
                "S2 queued => runnable and not current", thread);
        require(time_may_be_queued(thread), "S2 queued => it has a context", thread);
        require(++count <= universe->threads.count + 1, "S1 a ready queue ends", thread);
        prev = thread;
    }
    require(ready[index].tail == prev, "S1 the tail is the last", &ready[index]);
    return count;
}

static void check_bits(word_t index)
{
    bool is_empty = ready[index].head == NULL;
    word_t word = index % PRIORITIES / 32;

    if (ready_bits == NULL)
        return;
    require((ready_bits[index / 32] >> index % 32 & 1) == !is_empty,
            "S4 a bit <=> a queue that is not empty", &ready[index]);
    require((ready_words[index / PRIORITIES] >> word & 1) == (ready_bits[index / 32] != 0),
            "S4 a bit <=> a word that is not zero", &ready_bits[index / 32]);
}

/* It has work, at a tick: then it is as urgent as a thread can be. */
static bool idle_is_urged(void)
{
    return idle_thread.state == THREAD_RUNNING;
}

static void check_idle(void)
{
    require(idle_thread.queued <= idle_is_urged(), "S7 the idle thread is in no queue", &idle_thread);
    require(idle_is_urged() || idle_thread.priority == 0, "S7 the idle thread is the least urgent",
            &idle_thread);
    if (!idle_is_urged())
        return;
    require(idle_thread.priority == PRIORITIES - 1 && delete_is_left(),
            "S7 the idle thread is urged to delete", &idle_thread);
    require(idle_thread.queued || current_thread == &idle_thread,
            "S7 the idle thread is urged: current or queued", &idle_thread);
    require(current_thread == &idle_thread || current_thread->priority == PRIORITIES - 1,
            "S7 nobody runs who is less urgent than the idle thread", current_thread);
}

/* Whether it is the most urgent runnable thread, unless the idle thread is to stop another. */
static bool is_most_urgent(const struct tcb *current)
{
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        if (thread->state != THREAD_RUNNING || time_is_waited_for(thread))
            continue;
        if ((current == &idle_thread && !idle_is_urged())
            || time_urgency(thread) > time_urgency(current))
            return false;
    }
    return true;
}

static void check_thread(const struct tcb *thread)
{
    require(thread->state <= THREAD_WITHOUT_CONTEXT, "S6 the state is one of those listed", thread);
    require(thread->queued <= 1, "S2 queued is 0 or 1", thread);
    require(thread->state != THREAD_RUNNING || thread->queued || thread == current_thread
            || time_is_waited_for(thread), "S3 a runnable thread is current or queued", thread);
    require((thread->regs[REG_CPSR] & ~CPSR_USER_MASK) == CPSR_USER_FIXED
            || (thread->regs[REG_CPSR] == 0 && slot_is_empty(&thread->reply)),
            "S6 registers are a user's, but before it is configured", thread);
}

/* A lazy scheduler's current thread is queued: nobody who can run stands before it. */
static void check_first(void)
{
    struct tcb *thread = ready[current_thread->priority].head;

    while (thread != NULL && thread->state != THREAD_RUNNING)
        thread = thread->sched_next;
    require(!current_thread->queued || thread == current_thread,
            "S5 the current thread is the first of its queue", current_thread);
}

void check_scheduler(void)
{
    word_t in_queues = 0, queued = 0;

    for (word_t index = 0; index < READY_QUEUES; index++) {
        in_queues += check_queue(index);
        check_bits(index);
    }
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        check_thread(thread);
        queued += thread->queued;
    }
    check_idle();
    queued += idle_thread.queued;
    require(queued == in_queues, "S2 queued => in a ready queue", NULL);
    require(is_most_urgent(current_thread) || time_has_somebody_to_deal_with(),
            "S5 the current thread is the most urgent", current_thread);
    require(woken == NULL, "S5 nothing waits to be queued", woken);
    require(current_thread == &idle_thread || current_thread->state == THREAD_RUNNING,
            "S5 the current thread is runnable", current_thread);
    if (scheduler_is_lazy)
        check_first();
}
