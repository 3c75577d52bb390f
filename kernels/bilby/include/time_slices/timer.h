/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's timer, for entries.c and boot.c. */
#ifndef BILBY_TIMER_H
#define BILBY_TIMER_H

#include <kernel.h>
#include <tick.h>

/* Its line has interrupted: the slice of time is over. */
static inline void timer_interrupt(void)
{
    tick_clear();
    sched_expire();
}

static inline void timer_start(void)
{
    tick_start();
}

#endif
