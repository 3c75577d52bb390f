/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a thread as a whole: birth, waking, priority, becoming current. */
#include <kernel.h>
#include <lookup.h>
#include <machine.h>
#include <timing.h>

/*
 * The state a thread needs before it can run, besides capabilities: a user's flags, and its own end
 * of a reply.  A cleared TCB is an inactive thread without them.
 */
void thread_init(struct tcb *thread)
{
    thread->regs[REG_CPSR] |= CPSR_USER_FIXED;
    timing_init(thread);
    reply_cap_make(&thread->reply.cap, (word_t)thread, 1, 0);
    thread->reply.prev = 3; /* alone in its list, revocable, first of its kind */
}

/* Its next address, and its flags; bits that a user may not choose are forced. */
void thread_set_pc(struct tcb *thread, word_t pc, word_t cpsr)
{
    cpsr = (cpsr & CPSR_USER_MASK) | CPSR_USER_FIXED;
    if (!(cpsr & CPSR_THUMB))
        cpsr &= ~MACHINE_CPSR_IT;
    thread->regs[REG_CPSR] = cpsr;
    thread->regs[REG_PC] = pc & ((cpsr & CPSR_THUMB) ? ~1u : ~3u);
}

/* A blocked or inactive thread, in no queue, may run again, if it has time. */
void thread_wake(struct tcb *thread)
{
    if (timing_make_runnable(thread))
        sched_wake(thread);
}

/* It runs no more, and waits for nothing. */
void thread_suspend(struct tcb *thread)
{
    switch (thread->state) {
    case THREAD_BLOCKED_SEND:
    case THREAD_BLOCKED_RECEIVE:
        endpoint_cancel(thread);
        break;
    case THREAD_BLOCKED_WAIT:
        notification_cancel(thread);
        break;
    case THREAD_BLOCKED_REPLY:
        reply_revoke(thread);
        break;
    default:
        break;
    }
    sched_remove(thread);
    thread_end_call(thread);
    thread->fault = 0;
    thread->state = THREAD_INACTIVE;
    donation_stop(thread);
}

/* The object its call waits on, or would, is gone. False if it stops: nobody handles its fault. */
bool thread_abort_call(struct tcb *thread)
{
    if (thread->fault != 0) {
        thread->state = THREAD_INACTIVE;
        donation_stop(thread);
        return false;
    }
    thread_fail_call(thread, ERROR_ABORTED);
    return true;
}

/*
 * The same of one that waited, and was taken out of the queue already.  Of several
 * none goes first, so that they are queued in the same order if the call that
 * aborts them is preempted between two.
 */
void thread_abort(struct tcb *thread)
{
    if (thread_abort_call(thread) && timing_make_runnable(thread))
        sched_queue(thread);
}

/* The current thread may have to make way; it is in no queue, or need not be. */
static void move_to_priority(struct tcb *thread, word_t priority)
{
    bool is_ready = thread->queued || thread == current_thread;

    sched_remove(thread);
    lookup_set_priority(thread, priority);
    thread->priority = priority;
    if (is_ready)
        sched_wake(thread);
}

void thread_set_priority(struct tcb *thread, word_t priority)
{
    if (timing_waits(thread))
        thread->priority = priority; /* it goes on waiting */
    else
        move_to_priority(thread, priority);
}
