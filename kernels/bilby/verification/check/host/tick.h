/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own timer: whoever drives the host build says when a slice of time ends. */
#ifndef BILBY_TICK_H
#define BILBY_TICK_H

#include <layout.h>

#define TICK_CLOCKS 1000
#define TURN_CLOCKS 0 /* a step each */

extern word_t slice_since; /* of the kernel */

static inline void tick_clear(void)
{
}

/* Time stands still, but for a whole slice that ends with each tick. */
static inline word_t tick_left(void)
{
    return slice_since;
}

static inline void tick_start(void)
{
}

#endif
