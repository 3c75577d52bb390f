/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own timer: whoever drives the host build says when a slice of time ends. */
#ifndef BILBY_TICK_H
#define BILBY_TICK_H

static inline void tick_clear(void)
{
}

static inline void tick_start(void)
{
}

#endif
