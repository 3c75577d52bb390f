/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of time for the other files: a tick of the kernel's timer ends each slice, and
 * every runnable thread gets its turn.  The same functions are in ../time_contexts/timing.h; one of
 * the two is on the include path.
 */
#ifndef BILBY_TIMING_H
#define BILBY_TIMING_H

#include <kernel.h>
#include <space.h>
#include <tick.h>

#define THREAD_SLOTS 6 /* of a thread, in the order in which they stand in its control block */

/* Kinds of capabilities to objects that only the other kind of time has. */
#define TIMING_OBJECTS

static inline bool timing_has_copy(const struct cap *cap)
{
    (void)cap;
    return true;
}

/* Boot makes no time object for the first thread. */
#define TIMING_BOOT_BITS 0

static inline void timing_boot(struct tcb *root, struct slot *control, struct slot *own, word_t base)
{
    (void)root;
    (void)control;
    (void)own;
    (void)base;
}

static inline bool timing_syscall(word_t address, word_t message, word_t number)
{
    (void)address;
    (void)message;
    (void)number;
    return false;
}

static inline word_t timing_size_bits(word_t type)
{
    (void)type;
    return 0;
}

static inline bool timing_create(struct cap *cap, word_t type, word_t base)
{
    (void)cap;
    (void)type;
    (void)base;
    return false;
}

static inline word_t timing_decode(const struct invocation *call)
{
    return space_decode(call);
}

static inline word_t timing_decode_tcb(struct tcb *thread, const struct invocation *call)
{
    (void)thread;
    (void)call;
    return ERROR_ILLEGAL_OPERATION;
}

static inline word_t timing_decode_cnode(const struct invocation *call)
{
    (void)call;
    return ERROR_ILLEGAL_OPERATION;
}

static inline void timing_finalise(const struct cap *cap, bool last)
{
    space_finalise(cap, last);
}

/* Something is left to delete, or not any more: each tick looks. */
static inline void timing_note_left(void)
{
}

/* What is left of deletions comes before everybody from a tick on for TURN_CLOCKS, and one step. */
static inline bool timing_turn_is_over(void)
{
    return tick_left() <= TICK_CLOCKS - TURN_CLOCKS;
}

/* The idle thread runs: there is nobody else, or somebody to be dealt with before. */
static inline bool timing_idle(void)
{
    return false;
}

/* The highest priority that a thread may give. */
static inline word_t timing_control_priority(const struct tcb *thread)
{
    return thread->priority;
}

/* Also of a thread that waits: others came before it all the same. */
static inline void timing_set_priority(struct tcb *thread, word_t priority)
{
    thread_set_priority(thread, priority);
}

/* A thread waits for time, as others for their turn. */
static inline bool timing_waits(const struct tcb *thread)
{
    (void)thread;
    return false;
}

/* A new thread has a slice (slice.h). */
static inline void timing_init(struct tcb *thread)
{
    thread->left = TICK_CLOCKS / 2;
}

/* The one place where a thread becomes runnable: every one that would run is. */
static inline bool timing_make_runnable(struct tcb *thread)
{
    thread->state = THREAD_RUNNING;
    return true;
}

/* The call of the current thread ends, which goes on if it can. */
static inline void timing_settle(void)
{
}

/* ---- donation of time ---------------------------------------------------------------------- */

static inline bool donation_is_refused(const struct tcb *sender, const struct tcb *receiver,
                                   bool blocking, bool call)
{
    (void)sender;
    (void)receiver;
    (void)blocking;
    (void)call;
    return false;
}

static inline bool donation_may_not_wait(const struct tcb *sender, bool call)
{
    (void)sender;
    (void)call;
    return false;
}

static inline void donation_make(struct tcb *from, struct tcb *to, bool call)
{
    (void)from;
    (void)to;
    (void)call;
}

static inline void donation_return(struct tcb *server, struct tcb *caller)
{
    (void)server;
    (void)caller;
}

static inline void donation_end(struct tcb *thread)
{
    (void)thread;
}

static inline void donation_offer(const struct notification *notification)
{
    (void)notification;
}

static inline void donation_stop(struct tcb *thread)
{
    (void)thread;
}

static inline void donation_leave_thread(struct tcb *thread)
{
    (void)thread;
}

static inline void donation_leave_notification(struct notification *notification)
{
    (void)notification;
}

static inline void donation_for_signal(const struct notification *notification, struct tcb *thread)
{
    (void)notification;
    (void)thread;
}

static inline bool donation_has_time_for(const struct notification *notification,
                                     const struct tcb *thread)
{
    (void)notification;
    (void)thread;
    return true;
}

/* ---- the fastpath ------------------------------------------------------------------------ */

static inline bool donation_is_direct(const struct tcb *caller, const struct tcb *server)
{
    (void)caller;
    (void)server;
    return true;
}

static inline bool donation_returns_directly(const struct tcb *server, const struct tcb *caller)
{
    (void)server;
    (void)caller;
    return true;
}

static inline void donation_hand_over(struct tcb *from, struct tcb *to, bool donated)
{
    (void)from;
    (void)to;
    (void)donated;
}

#endif
