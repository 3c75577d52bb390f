/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contexts, and threads that run on them (context.c, release.c, donation.c, timeout.c).
 *
 *   T1  a thread is on a context  <=>  the context names it; the same of a home, and of a notification
 *       to which it is bound; it is bound to one of the two at most
 *   T2  a donee runs, waits for an answer, or waits to send a call;
 *       a thread without a context has none at home that is on nobody
 *   T3  left + used + due == budget; of a full context nothing is used or due, and no more is
 *       left than its budget
 *   T4  the release queue is a heap of fours: each entry is due when its context says, no earlier
 *       than the one above; its context names its place; entries behind the last are clear
 *   T5  in the release queue  =>  lacking and not full; its thread is runnable, neither queued
 *       nor current
 *   T6  the current thread is on the running context, which had time enough when it was
 *       charged last; the idle thread is on none
 *   T7  there are as many contexts that are bound or have a thread as were counted, and no
 *       more than there are places
 *   T8  a thread donated its context  =>  it waits for the answer
 *   T9  the handler of timeouts is an endpoint that may be sent to, or nobody
 *   T10 levels and flags are in their range; only a donee is excused
 *   T11 who is runnable or waits to send has a context; who waits for one has none, and no pending
 *       signal donates it one.  Who is runnable is current, or in a ready queue, or in the release queue:
 *       nowhere else
 *   T12 who waits at an endpoint or a notification stands before all that are less urgent; while two
 *       wait or more, the index has the last of each priority, and no other priority
 */
#include <timing.h>

#include "invariants.h"

struct release_entry { count_t earliness; struct context *context; word_t unused; };
struct release_group { struct release_entry child[RELEASE_CHILDREN]; };
extern struct release_group release_groups[RELEASE_PLACES / RELEASE_CHILDREN + 1]; /* release.c */
extern word_t release_count;

/* Entry 0 is the last of the first four. */
static const struct release_entry *entry(word_t index)
{
    word_t place = index + RELEASE_CHILDREN - 1;

    return &release_groups[place / RELEASE_CHILDREN].child[place % RELEASE_CHILDREN];
}

static void add_context(struct context *context)
{
    if (context == NULL || !universe_add_context(context))
        return;
    universe_add_thread(context->home);
    universe_add_thread(context->thread);
}

void time_reach(void)
{
    require(release_count <= RELEASE_PLACES, "T4 the release queue has room", NULL);
    add_context(running);
    for (word_t i = 0; i < release_count; i++)
        add_context(entry(i)->context);
}

void time_reach_from_thread(const struct tcb *thread)
{
    universe_add_slot((struct slot *)&thread->timeout);
    add_context(thread->context);
    add_context(thread->home);
}

void time_reach_from_cap(const struct cap *cap)
{
    if (cap_type(cap) == CAP_CONTEXT)
        add_context((struct context *)context_cap_object(cap));
}

word_t time_object_bytes(const struct cap *cap)
{
    return cap_type(cap) == CAP_CONTEXT ? 1u << CONTEXT_SIZE_BITS : 0;
}

word_t time_queue_of(const struct tcb *thread)
{
    return thread->criticality * PRIORITIES + thread->priority;
}

word_t time_urgency(const struct tcb *thread)
{
    return thread->priority + (thread->criticality >= system_level ? PRIORITIES : 0);
}

bool time_is_waited_for(const struct tcb *thread)
{
    return thread->context != NULL && thread->context->place != 0;
}

bool time_can_take_signal(const struct notification *notification, const struct tcb *thread)
{
    return thread->context != NULL || thread->home != NULL || notification->context != NULL;
}

static bool is_in_index(const struct levels *levels, word_t rank)
{
    return (levels->words >> rank / 32 & 1) && (levels->bits[rank / 32] >> rank % 32 & 1);
}

static void check_index(const struct levels *levels, struct tcb *const *last, const struct tcb *head)
{
    const struct tcb *thread = head;

    for (word_t rank = 0; rank < PRIORITIES; rank++) {
        const struct tcb *found = NULL;

        for (; thread != NULL && thread->priority + rank == PRIORITIES - 1; thread = thread->wait_next)
            found = thread;
        require(is_in_index(levels, rank) == (found != NULL), "T12 a bit <=> threads of a priority wait", head);
        require(found == NULL || last[rank] == found, "T12 the index has the last of a priority", head);
    }
    for (word_t word = 0; word < PRIORITY_WORDS; word++)
        require(!(levels->words >> word & 1) || levels->bits[word] != 0, "T12 a word that counts is not 0", head);
}

static void check_order(const struct levels *levels, struct tcb *const *last, const struct tcb *head)
{
    for (const struct tcb *thread = head; thread != NULL; thread = thread->wait_next)
        require(thread->wait_next == NULL || thread->wait_next->priority <= thread->priority,
                "T12 who waits stands before the less urgent", thread);
    if (head != NULL && head->wait_next != NULL)
        check_index(levels, last, head);
}

void time_check_endpoint(const struct endpoint *endpoint)
{
    check_order(&endpoint->levels, endpoint->last, endpoint->head);
}

void time_check_notification(const struct notification *notification)
{
    const struct context *context = notification->context;

    require(context == NULL
            || (universe_has_object(context) && context->notification == notification),
            "T1 the context of a notification names it", notification);
    check_order(&notification->levels, notification->last, notification->head);
}

bool time_may_be_queued(const struct tcb *thread)
{
    return thread->context != NULL;
}

bool time_has_somebody_to_deal_with(void)
{
    return current_thread == &idle_thread && idle_thread.regs[REG_PC] <= (word_t)idle_loop + 4;
}

static int left_of(const struct context *context)
{
    return (int)context->left;
}

static void check_amounts(const struct context *context)
{
    bool is_full = context->budget == context->period;

    if (is_full)
        require(context->used == 0 && context->due == 0 && left_of(context) <= (int)context->budget,
                "T3 of a full context nothing is used or due", context);
    else
        require(context->left + context->used + context->due == context->budget,
                "T3 left + used + due == budget", context);
}

static void check_context(const struct context *context)
{
    const struct tcb *thread = context->thread, *home = context->home;
    const struct notification *notification = context->notification;

    require(notification == NULL
            || (home == NULL && universe_has_object(notification)
                && notification->context == context),
            "T1 the notification of a context has it", context);
    require(thread == NULL || (universe_has_object(thread) && thread->context == context),
            "T1 the thread on a context is on it", context);
    require(home == NULL || (universe_has_object(home) && home->home == context),
            "T1 the home of a context has it", context);
    require(context->budget <= context->period && context->period <= PERIOD_TICKS_MAX
            && (context->budget == 0 || context->budget >= BUDGET_LEAST),
            "T10 budget and period are in their range", context);
    require(context->excused <= 1 && context->told <= 1 && context->begins <= BEGINS_RELEASED,
            "T10 flags are in their range", context);
    require(!context->excused || (thread != NULL && thread != home),
            "T10 only a donee is excused", context);
    require(context->place <= release_count
            && (context->place == 0 || entry(context->place - 1)->context == context),
            "T4 a place is that of the context", context);
    check_amounts(context);
}

static void check_released(word_t index)
{
    const struct release_entry *own = entry(index);
    const struct context *context = own->context;
    const struct tcb *thread = context->thread;

    require(context->place == index + 1, "T4 the context names its place", context);
    require(own->earliness == ~context->due_at, "T4 it is due when it says", context);
    require(index == 0 || entry((index - 1) / RELEASE_CHILDREN)->earliness >= own->earliness,
            "T4 none is due before the one above", context);
    require(left_of(context) < BUDGET_MIN && context->budget != context->period,
            "T5 who has time does not wait for it", context);
    require(thread != NULL && thread->state == THREAD_RUNNING && !thread->queued
            && thread != current_thread, "T5 who waits for time is runnable, and nowhere else",
            context);
}

static void check_release_queue(void)
{
    for (word_t i = 0; i < release_count; i++)
        check_released(i);
    for (word_t i = release_count; i < RELEASE_PLACES; i++)
        require(entry(i)->context == NULL && entry(i)->earliness == 0,
                "T4 what is behind the last is clear", entry(i));
}

/* It may wait so, on time that another thread has to have back. */
static bool may_be_donee(const struct tcb *thread)
{
    return thread->state == THREAD_RUNNING || thread->state == THREAD_BLOCKED_REPLY
        || (thread->state == THREAD_BLOCKED_SEND && thread->send_call);
}

/* A signal is pending, and its notification has a context for it. */
static bool is_offered(const struct tcb *thread)
{
    const struct notification *notification = thread->bound;

    return notification != NULL && notification->signalled == 1 && notification->context != NULL
        && notification->context->thread == NULL;
}

static void check_donation(const struct tcb *thread)
{
    const struct context *context = thread->context, *own = thread->home;

    require(context == NULL || (universe_has_object(context) && context->thread == thread),
            "T1 the context that a thread is on names it", thread);
    require(own == NULL || (universe_has_object(own) && own->home == thread),
            "T1 the context at home in a thread names it", thread);
    require(context == NULL || context == own || may_be_donee(thread),
            "T2 a donee works, or waits for an answer", thread);
    require(context != NULL || own == NULL || own->thread != NULL,
            "T2 nobody's own context is idle", thread);
    require((thread->state != THREAD_RUNNING && thread->state != THREAD_BLOCKED_SEND)
            || context != NULL, "T11 who is runnable or waits to send has a context", thread);
    require(thread->state != THREAD_RUNNING
            || (thread == current_thread) + thread->queued + (context->place != 0) == 1,
            "T11 who is runnable is in one queue or current", thread);
    require(thread->state != THREAD_WITHOUT_CONTEXT || (context == NULL && !thread->queued),
            "T11 who waits for a context has none", thread);
    require(thread->state != THREAD_WITHOUT_CONTEXT || !is_offered(thread),
            "T11 who waits for a context has no pending signal that donates one", thread);
    require(!thread->donated || thread->state == THREAD_BLOCKED_REPLY,
            "T8 who donated its context waits for the answer", thread);
}

static void check_thread(const struct tcb *thread)
{
    const struct cap *timeout = &thread->timeout.cap;

    check_donation(thread);
    require(thread->criticality < CRITICALITIES && thread->donated <= 1 && thread->limited <= 1
            && thread->control_criticality < CRITICALITIES, "T10 levels are in their range", thread);
    require(cap_type(&thread->cspace.cap) == CAP_REMAINS || cap_type(timeout) == CAP_NULL
            || (cap_type(timeout) == CAP_ENDPOINT && endpoint_cap_can_send(timeout)),
            "T9 the handler of timeouts is an endpoint", thread);
}

static void check_running(void)
{
    require(current_thread != &idle_thread || (idle_thread.context == NULL && idle_thread.home == NULL),
            "T6 the idle thread is on no context", &idle_thread);
    require(running == current_thread->context, "T6 the current thread is on the running context",
            running);
    require(current_thread == &idle_thread || (running != NULL && left_of(running) >= BUDGET_MIN),
            "T6 who runs has time enough", running);
}

void check_time(void)
{
    word_t bound = 0;

    for (word_t i = 0; i < universe->contexts.count; i++) {
        const struct context *context = (const struct context *)universe->contexts.at[i];

        check_context(context);
        bound += context_is_bound(context) || context->thread != NULL;
    }
    for (word_t i = 0; i < universe->threads.count; i++)
        check_thread((const struct tcb *)universe->threads.at[i]);
    check_release_queue();
    check_running();
    require(bound == contexts_bound && bound <= RELEASE_PLACES,
            "T7 as many contexts are bound as were counted", NULL);
    require(system_level < CRITICALITIES, "T10 the level of the system is in its range", NULL);
}
