/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's clock and its alarm: the GPT counts up, for ever; EPIT 2 counts down to an interrupt.
 * Both count the peripheral clock.  An alarm cannot be missed, for it is set by how far away it is;
 * one that nobody answers comes again.
 */
#ifndef BILBY_CLOCK_H
#define BILBY_CLOCK_H

#include <board.h>
#include <layout.h>

#define SLICE_TICKS 400000 /* 10 ms in QEMU, 6 ms with a peripheral clock of 66.5 MHz */
#define TURN_TICKS (SLICE_TICKS / 128) /* of abandoned deletions, in each slice */
#define GPT_REGISTER(offset) (*(volatile word_t *)(CLOCK_WINDOW + (offset)))
#define GPT_CONTROL   0x00
#define GPT_PRESCALER 0x04
#define GPT_COUNT     0x24
#define EPIT_REGISTER(offset) (*(volatile word_t *)(TICK_WINDOW + (offset)))
#define EPIT_CONTROL 0x00
#define EPIT_STATUS  0x04
#define EPIT_LOAD    0x08
#define EPIT_COMPARE 0x0c

/* Boot: from now on. */
static inline void clock_start(void)
{
    GPT_REGISTER(GPT_CONTROL) = 0;
    GPT_REGISTER(GPT_PRESCALER) = 0;
    GPT_REGISTER(GPT_CONTROL) = 1u << 9 | 1u << 6 | 1; /* free-running, peripheral clock, run */
    EPIT_REGISTER(EPIT_CONTROL) = 0;
    EPIT_REGISTER(EPIT_STATUS) = 1;
    EPIT_REGISTER(EPIT_LOAD) = 0xffffffff;
    EPIT_REGISTER(EPIT_COMPARE) = 0;
    EPIT_REGISTER(EPIT_CONTROL) = 1u << 24 | 1u << 17 | 8 | 4 | 2 | 1; /* peripheral clock, loads at once, reload, run */
}

static inline word_t clock_ticks(void)
{
    return GPT_REGISTER(GPT_COUNT);
}

/* So many ticks from now, and one: QEMU misses the compare if the count is there when it looks. */
static inline void clock_alarm(word_t ticks)
{
    EPIT_REGISTER(EPIT_LOAD) = ticks + 1;
}

/* It has interrupted. */
static inline void clock_quiet(void)
{
    EPIT_REGISTER(EPIT_STATUS) = 1;
}

#endif
