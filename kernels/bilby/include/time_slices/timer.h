/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's timer, for entries.c and boot.c. */
#ifndef BILBY_TIMER_H
#define BILBY_TIMER_H

#include <kernel.h>
#include <slice.h>
#include <tick.h>

/* Its line has interrupted: the slice of time is over, and abandoned deletions have their turn. */
static inline void timer_interrupt(void)
{
    tick_clear();
    sched_expire();
    delete_take_turn();
}

/* No tick has come yet: the count that the first charge finds was never 0. */
static inline void timer_start(void)
{
    slice_since = TICK_CLOCKS;
    tick_start();
}

#endif
