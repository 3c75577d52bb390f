/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rest of a context's budget, and the time it is charged.
 *
 * A context is a sporadic server with one replenishment: the time used after "anchor", when its
 * thread last began to run after it had waited, returns a period later.  When the thread waits and
 * runs again, that amount is due at that time, and a new amount begins.  If another amount is due
 * already, the new one joins the growing one, with the later anchor.  So the thread takes no more
 * time from others than a periodic one with this budget, except for the kernel's time until an
 * alarm is handled; that is taken from the next budget.
 *
 * Time is charged where the context changes, not where threads do.  Alarms come when the running
 * context has used up its budget or the first of the release queue is due, while anything is left to
 * delete once in each slice, and at least once in half a turn of the clock.
 *
 * Invariants: left + used + due == budget, unless the context is full: then used == due == 0.
 */
#include <timing.h>
#include <clock.h>

#define HALF_TURN 0x7fffffffu

struct context *running;
count_t since;
word_t system_level WITH_CURRENT;
word_t contexts_bound;
bool alarm_is_old;
count_t turn_at, turn_ends;

/* The time since the last charge, to whoever has run. */
void context_charge(count_t now)
{
    count_t elapsed = now - since;
    struct context *context = running;
    int room;
    word_t amount;

    since = now;
    if (context == NULL)
        return;
    context = context_at(context);
    context->consumed += elapsed;
    room = (int)(context->left + context->budget); /* not reached: the alarm comes before */
    if (room < 0)
        room = 0;
    amount = elapsed < (count_t)room ? (word_t)elapsed : (word_t)room;
    context->left -= amount;
    if (!context_is_full(context))
        context->used += amount;
}

/* The running context gives up the rest of its budget. */
void context_give_up(void)
{
    struct context *context = context_at(running);

    if ((int)context->left <= 0)
        return;
    if (!context_is_full(context))
        context->used += context->left;
    context->left = 0;
}

/* The due amount returns. */
static void take_due(struct context *context, count_t now)
{
    if (context->due == 0 || context->due_at > now)
        return;
    context->left += context->due;
    context->due = 0;
}

/* A period has passed since its thread became runnable, and it has not run. */
static void take_used(struct context *context, count_t now)
{
    if (context->due != 0 || context->used == 0 || context->anchor + context->period > now)
        return;
    context->left += context->used;
    context->used = 0;
    context->anchor = now;
}

/*
 * Its thread is about to run, perhaps for the first time since it became runnable: then a new amount
 * begins, when it was released or now; a thread that was released a period ago has missed that one.
 */
void context_begin(struct context *context, count_t now)
{
    word_t begins = context->begins;
    count_t anchor = now;

    if (begins == BEGINS_RELEASED && now - context->due_at < context->period)
        anchor = context->due_at;
    context->begins = 0;
    if (context_is_full(context))
        return;
    take_due(context, now);
    take_used(context, now);
    if (begins == 0)
        return;
    if (context->used != 0 && context->due == 0) {
        context->due = context->used;
        context->due_at = context->anchor + context->period;
        context->used = 0;
    }
    context->anchor = anchor;
}

/*
 * It waits for its due amount: if nothing is due, for the amount that it has used.  An overrun is
 * not due: it is taken from the next budget, which begins when the rest is due.
 */
void context_note_due(struct context *context)
{
    word_t beyond = (int)context->left < 0 ? 0 - context->left : 0;

    if (beyond > context->used)
        beyond = context->used;
    if (context->due != 0 && beyond == 0)
        return;
    context->due += context->used - beyond;
    context->used = beyond;
    context->due_at = context->anchor + context->period;
    context->anchor = context->due_at;
}

/* An alarm: whether the time has come at which abandoned deletions have their turn. */
bool context_begin_turn(count_t now)
{
    if (turn_at == 0 || now < turn_at)
        return false;
    turn_at = now + SLICE_TICKS;
    turn_ends = now + TURN_TICKS;
    return true;
}

/* When an alarm is needed besides those of the running context. */
static count_t next_event(count_t now)
{
    count_t next = release_next_due();

    if (!delete_is_left())
        turn_at = 0;
    else if (turn_at == 0)
        turn_at = now + SLICE_TICKS;
    return turn_at != 0 && turn_at < next ? turn_at : next;
}

/* For the running context, just charged, the release queue, and abandoned deletions. */
void context_set_alarm(count_t now)
{
    count_t next = next_event(now);
    word_t ticks = HALF_TURN;

    if (running != NULL) {
        int left = (int)context_at(running)->left;

        ticks = left > 0 ? (word_t)left : 1;
    }
    if (next < now + ticks)
        ticks = next > now ? (word_t)(next - now) : 1;
    clock_alarm(ticks);
    alarm_is_old = false;
}

/* Boot: the first thread shares its time with its equals, and controls all of it. */
BOOT_CODE void timing_boot(struct tcb *root, struct slot *control, struct slot *own, word_t base)
{
    struct context *context = (struct context *)base;

    clock_start();
    sched_control_cap_make(&control->cap);
    context_cap_make(&own->cap, base);
    context->budget = SLICE_TICKS;
    context->period = SLICE_TICKS;
    context->left = SLICE_TICKS;
    context->home = root;
    context->thread = root;
    root->home = context;
    root->context = context;
    root->limited = 1;
    root->control_priority = PRIORITIES - 1;
    root->control_criticality = CRITICALITIES - 1;
    contexts_bound = 1;
}
