/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own timer (EPIT 2): it interrupts at the end of each slice of time. */
#ifndef BILBY_TICK_H
#define BILBY_TICK_H

#include <board.h>
#include <layout.h>

#define TICK_CLOCKS 400000 /* of a slice: 10 ms in QEMU, 6 ms with a peripheral clock of 66.5 MHz */
#define TURN_CLOCKS (TICK_CLOCKS / 128) /* of abandoned deletions, after each tick */
#define EPIT_REGISTER(offset) (*(volatile word_t *)(TICK_WINDOW + (offset)))
#define EPIT_CONTROL 0x00
#define EPIT_STATUS  0x04
#define EPIT_LOAD    0x08
#define EPIT_COMPARE 0x0c
#define EPIT_COUNT   0x10

static inline void tick_clear(void)
{
    EPIT_REGISTER(EPIT_STATUS) = 1;
}

/* Clocks until the next. */
static inline word_t tick_left(void)
{
    return EPIT_REGISTER(EPIT_COUNT);
}

/* Boot: from now on. */
static inline void tick_start(void)
{
    EPIT_REGISTER(EPIT_CONTROL) = 0;
    tick_clear();
    EPIT_REGISTER(EPIT_LOAD) = TICK_CLOCKS;
    EPIT_REGISTER(EPIT_COMPARE) = 0;
    EPIT_REGISTER(EPIT_CONTROL) = 1u << 24 | 8 | 4 | 2 | 1; /* peripheral clock, reload, run */
}

#endif
