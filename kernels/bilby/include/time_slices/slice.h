/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slices of time: the rest of each thread's own slice, in clocks of the kernel's timer.
 *
 * A thread keeps its slice until the slice is used up.  Yielding or waiting neither shortens nor
 * renews it.  The kernel charges the running thread when it chooses another one, and at each tick.
 * Because ticks are the finest grain, a slice counts as over from half a tick before its end; "left"
 * holds the clocks until that point.  The next slice is corrected by the excess or the rest.  So
 * threads that only run get equal shares, and an action just before a tick gains none.
 *
 * The fastpath charges nobody: whoever runs when somebody is charged next pays for both threads.  So
 * of threads that only run each other, one may pay for the others; together they have no more.
 */
#ifndef BILBY_SLICE_H
#define BILBY_SLICE_H

#include <kernel.h>
#include <tick.h>

extern word_t slice_since;     /* clocks there were until the next tick when somebody was charged last */
extern word_t slice_has_tick;  /* 1 if a tick was charged before its interrupt is handled */

/*
 * The current thread pays for the time since the last charge.  If the timer has begun again since,
 * a tick has come, and its interrupt is still to be handled.
 */
static inline void slice_charge(void)
{
    word_t left = tick_left();
    word_t used = slice_since - left;

    if ((int)used < 0) {
        used += TICK_CLOCKS;
        slice_has_tick = 1;
    }
    slice_since = left;
    current_thread->left -= used;
}

/* The same at a tick: where nobody was charged since the last one, the count alone does not show it. */
static inline void slice_charge_tick(void)
{
    word_t left = tick_left();
    word_t used = slice_since - left;

    if (slice_has_tick == 0)
        used += TICK_CLOCKS;
    slice_has_tick = 0;
    slice_since = left;
    current_thread->left -= used;
}

static inline bool slice_is_over(const struct tcb *thread)
{
    return (int)thread->left <= 0;
}

/* The thread goes to the end of its queue: another slice follows one that is over. */
static inline void slice_renew(struct tcb *thread)
{
    if (slice_is_over(thread))
        thread->left += TICK_CLOCKS;
}

#endif
