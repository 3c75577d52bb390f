/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own timer: whoever drives the host build says when a slice of time ends. */
#ifndef BILBY_TICK_H
#define BILBY_TICK_H

#include <stdbool.h>

#include <layout.h>

#define TICK_CLOCKS 1000

extern word_t slice_since; /* of the kernel */
extern bool tick_has_come; /* of the model: before the kernel looks at its timer next */

static inline void tick_clear(void)
{
    tick_has_come = true;
}

/* Time stands still, but for a whole slice that ends with each tick. */
static inline word_t tick_left(void)
{
    word_t used = tick_has_come ? TICK_CLOCKS : 0;

    tick_has_come = false;
    return slice_since - used;
}

static inline void tick_start(void)
{
}

#endif
