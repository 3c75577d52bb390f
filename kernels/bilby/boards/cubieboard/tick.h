/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own timer (timer 1): it interrupts at the end of each slice of time. */
#ifndef BILBY_TICK_H
#define BILBY_TICK_H

#include <board.h>
#include <layout.h>

#define TICK_CLOCKS 240000 /* of a slice: 10 ms */
#define TURN_CLOCKS (TICK_CLOCKS / 128) /* of abandoned deletions, after each tick */
#define TICK_REGISTER(offset) (*(volatile word_t *)(TICK_WINDOW + 0xc00 + (offset)))
#define TICK_ENABLE   0x00 /* bit 1, as in the next register */
#define TICK_STATUS   0x04
#define TICK_CONTROL  0x20
#define TICK_INTERVAL 0x24
#define TICK_COUNT    0x28

static inline void tick_clear(void)
{
    TICK_REGISTER(TICK_STATUS) = 2;
}

/* Clocks until the next. */
static inline word_t tick_left(void)
{
    return TICK_REGISTER(TICK_COUNT);
}

/* Boot: from now on. */
static inline void tick_start(void)
{
    TICK_REGISTER(TICK_CONTROL) = 0;
    tick_clear();
    TICK_REGISTER(TICK_ENABLE) = 2;
    TICK_REGISTER(TICK_INTERVAL) = TICK_CLOCKS;
    TICK_REGISTER(TICK_CONTROL) = 1u << 2 | 2 | 1; /* 24 MHz, reload, enable */
}

#endif
