/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of time for the other files: a thread runs on a scheduling context, which limits
 * its time.  The same functions, except for the last parts, are in ../time_slices/timing.h; one of
 * the two is on the include path.
 *
 * Durations are ticks of the board's clock in 32 bits, in two's complement if they may be negative;
 * times are ticks since boot in 64 bits.
 */
#ifndef BILBY_TIMING_H
#define BILBY_TIMING_H

#include <kernel.h>
#include <space.h>
#include <budget.h>
#include <layout_sizes.h>

#define THREAD_SLOTS 7 /* of a thread, in the order in which they stand in its control block */

/* Kinds of capabilities to objects that only this kind of time has. */
#define TIMING_OBJECTS case CAP_CONTEXT:

/* The right to give time away stays where it is, or moves. */
static inline bool timing_has_copy(const struct cap *cap)
{
    return cap_type(cap) != CAP_SCHED_CONTROL;
}

extern struct context *running; /* the current thread's context; null: it has none */

/* context->begins, besides 0: its thread was woken; or it was released when something was due. */
#define BEGINS_WOKEN 1
#define BEGINS_RELEASED 2

#define TIMING_BOOT_BITS CONTEXT_SIZE_BITS
void timing_boot(struct tcb *root, struct slot *control, struct slot *own, word_t base);

/* ---- time_calls.c, time_threads.c, time_objects.c ---------------------------------------------------------- */
bool timing_syscall(word_t address, word_t message, word_t number);
word_t timing_decode(const struct invocation *call);
word_t timing_decode_tcb(struct tcb *thread, const struct invocation *call);
word_t timing_decode_cnode(const struct invocation *call);
void timing_finalise(const struct cap *cap, bool last);
void timing_set_priority(struct tcb *thread, word_t priority);

static inline word_t timing_size_bits(word_t type)
{
    return type == TYPE_CONTEXT ? CONTEXT_SIZE_BITS : 0;
}

static inline bool timing_create(struct cap *cap, word_t type, word_t base)
{
    if (type != TYPE_CONTEXT)
        return false;
    context_cap_make(cap, base);
    return true;
}

/* ---- idle.c, sched_contexts.c ----------------------------------------------------------------- */
bool timing_idle(void); /* the idle thread runs: there is nobody else, or somebody to be dealt with before */
bool sched_may_run(const struct tcb *thread, count_t now);
void sched_exhaust(struct tcb *thread);

/* The highest priority that a thread may give. */
static inline word_t timing_control_priority(const struct tcb *thread)
{
    return thread->limited ? thread->control_priority : thread->priority;
}

/* The same context, of which it can be seen that it is one; not for null. */
static inline struct context *context_at(const struct context *context)
{
    struct context *same = (struct context *)in_window((word_t)context, sizeof(struct context));

    NEVER_NULL(same);
    return same;
}

/*
 * Who holds a context: one of the first three, the states of the diagram in docs/guide.md.  A thread
 * that has it at home or donated, and waits for time, is queued besides.
 */
static inline bool context_is_free(const struct context *context)
{
    return context->thread == NULL;
}

static inline bool context_is_at_home(const struct context *context)
{
    return context->home != NULL && context->thread == context->home;
}

static inline bool context_is_donated(const struct context *context)
{
    return !context_is_free(context) && !context_is_at_home(context);
}

static inline bool context_is_queued(const struct context *context)
{
    return context->place != 0;
}

/* A runnable thread waits for time, as others for their turn. */
static inline bool timing_waits(const struct tcb *thread)
{
    return thread->context != NULL && context_is_queued(context_at(thread->context));
}

static inline void timing_init(struct tcb *thread)
{
    (void)thread;
}

bool donation_wait(struct tcb *thread);

/*
 * A thread becomes runnable if it is on a context.  Else it waits for one, and becomes runnable, and is
 * queued, when it is put on it (donation.c).  True if it is runnable, and is to be queued.
 */
static inline bool timing_make_runnable(struct tcb *thread)
{
    if (thread->context == NULL) {
        if (donation_wait(thread))
            sched_queue(thread);
        return false;
    }
    thread->state = THREAD_RUNNING;
    if (thread->context != running)
        context_at(thread->context)->begins = BEGINS_WOKEN;
    return true;
}

/* The call of the current thread ends, or is preempted, and may have left it without a context. */
static inline void timing_settle(void)
{
    if (current_thread->state == THREAD_RUNNING && current_thread->context == NULL)
        (void)donation_wait(current_thread);
}

/* ---- donation.c ---------------------------------------------------------------------------------- */
void donation_make(struct tcb *from, struct tcb *to, bool call);
void donation_return(struct tcb *server, struct tcb *caller);
void donation_end(struct tcb *thread);
void donation_stop(struct tcb *thread);
void donation_leave_thread(struct tcb *thread);
void donation_leave_notification(struct notification *notification);
void donation_lose(struct tcb *thread);
void donation_for_signal(const struct notification *notification, struct tcb *thread);
void donation_take_own(struct tcb *thread);
void donation_offer(const struct notification *notification);

/* Whether a signalled thread will run: on its own context, or on the bound one when it returns. */
static inline bool donation_has_time_for(const struct notification *notification,
                                     const struct tcb *thread)
{
    return thread->context != NULL || thread->home != NULL || notification->context != NULL;
}

/* It is on a context that was donated to it. */
static inline bool is_donee(const struct tcb *thread)
{
    return thread->context != thread->home;
}

/*
 * Who receives has no time of its own, and who sends donates none: it does not wait, or has itself
 * a donee, to whom it would not come back.
 */
static inline bool donation_is_refused(const struct tcb *sender, const struct tcb *receiver,
                                   bool blocking, bool call)
{
    return !call && receiver->context == NULL && (!blocking || is_donee(sender));
}

/* For the same reason: a message that it waits to send might be received so. */
static inline bool donation_may_not_wait(const struct tcb *sender, bool call)
{
    return !call && is_donee(sender);
}

/* ---- the fastpath: the context travels, so that nothing is charged ----------------------------- */
extern word_t system_level;

static inline bool donation_is_direct(const struct tcb *caller, const struct tcb *server)
{
    return server->context == NULL && system_level == 0
        && (caller->home == NULL || caller->home == caller->context);
}

static inline bool donation_returns_directly(const struct tcb *server, const struct tcb *caller)
{
    return caller->donated && caller->context == NULL && system_level == 0 && server->home == NULL;
}

/* Cache line after cache line.  Who waits to receive, or answers, has donated nothing already. */
static inline void donation_hand_over(struct tcb *from, struct tcb *to, bool donated)
{
    struct context *context = context_at(from->context);

    from->context = NULL;
    if (donated)
        from->donated = 1;
    else
        to->donated = 0;
    to->context = context;
    READ_LINE(&context->thread);
    context->thread = to;
    context->excused = 0;
    context->told = 0;
}

/* ---- clock.c ----------------------------------------------------------------------------------- */
count_t clock_now(void);

/* ---- context.c --------------------------------------------------------------------------------- */
extern count_t since;           /* up to here it was charged */
extern word_t contexts_bound;   /* to a thread or a notification, or on a thread */
extern bool alarm_is_old;       /* the input of the alarm has changed */
extern count_t turn_at;         /* when abandoned deletions have their next turn; 0 without any */
extern count_t turn_ends;       /* it comes before everybody until then, and one step */

void context_charge(count_t now);
void context_give_up(void);
void context_begin(struct context *context, count_t now);
bool context_begin_turn(count_t now);
void context_note_due(struct context *context);
void context_set_alarm(count_t now);

/* Something is left to delete, or not any more. */
static inline void timing_note_left(void)
{
    alarm_is_old = true;
}

static inline bool timing_turn_is_over(void)
{
    return clock_now() >= turn_ends;
}

/* Somebody has it for good: a thread, or a notification, whose signals donate it. */
static inline bool context_is_bound(const struct context *context)
{
    return context->home != NULL || context->notification != NULL;
}

/* Others have their turn when its budget is used up; it need not wait. */
static inline bool context_is_full(const struct context *context)
{
    return context->budget == context->period;
}

/* Who has this could not be sure to leave the kernel in time. */
static inline bool context_is_lacking(const struct context *context)
{
    return (int)context->left < BUDGET_MIN;
}

/* ---- release.c: contexts whose threads wait for time, the next to be released first ---------------- */
void release_insert(struct context *context);
void release_remove(struct context *context);
count_t release_next_due(void);
struct context *release_first(void);

/* ---- timeout.c ----------------------------------------------------------------------------------- */
bool timeout_is_due(const struct tcb *thread);
bool timeout_is_used_up(const struct context *context);

static inline bool timeout_has_handler(const struct tcb *thread)
{
    return !slot_is_empty(&thread->timeout);
}

/* ---- urgency ---------------------------------------------------------------------------------------- */

/* The scheduler's order: threads that are critical enough come before all others. */
static inline word_t urgency(const struct tcb *thread)
{
    return thread->priority + (thread->criticality >= system_level ? PRIORITIES : 0);
}

#endif
