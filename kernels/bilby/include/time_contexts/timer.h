/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's timer, for entries.c and boot.c. */
#ifndef BILBY_TIMER_H
#define BILBY_TIMER_H

#include <kernel.h>

/* Its line has interrupted: a context is released, or a budget is used up. */
static inline void timer_interrupt(void)
{
    sched_expire();
}

/* The clock runs already, and the first alarm was set when the first thread was chosen. */
static inline void timer_start(void)
{
}

#endif
