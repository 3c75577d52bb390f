/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's clock and its alarm, of the same unit: timer 2 counts down, for ever; timer 1 counts
 * down to an interrupt.  Both count 24 MHz.  An alarm cannot be missed, for it is set by how far away
 * it is; one that nobody answers comes again.
 */
#ifndef BILBY_CLOCK_H
#define BILBY_CLOCK_H

#include <board.h>
#include <layout.h>

#define SLICE_TICKS 240000 /* 10 ms */
#define TURN_TICKS (SLICE_TICKS / 128) /* of abandoned deletions, in each slice */
#define TIMER_REGISTER(offset) (*(volatile word_t *)(TICK_WINDOW + 0xc00 + (offset)))
#define TIMERS_ENABLE  0x00 /* bit 1: interrupts of timer 1, as in the next register */
#define TIMERS_STATUS  0x04
#define ALARM_CONTROL  0x20
#define ALARM_INTERVAL 0x24
#define CLOCK_CONTROL  0x30
#define CLOCK_INTERVAL 0x34
#define CLOCK_COUNT    0x38
#define COMPANION_CONTROL  0x40 /* without an interrupt: see README.md */
#define COMPANION_INTERVAL 0x44
#define COMPANION_TICKS    24000 /* 1 ms */
#define TIMER_RUNS (1u << 2 | 2 | 1) /* 24 MHz, reload, enable */

/* Boot: from now on. */
static inline void clock_start(void)
{
    TIMER_REGISTER(CLOCK_CONTROL) = 0;
    TIMER_REGISTER(CLOCK_INTERVAL) = 0xffffffff;
    TIMER_REGISTER(CLOCK_CONTROL) = TIMER_RUNS;
    TIMER_REGISTER(COMPANION_CONTROL) = 0;
    TIMER_REGISTER(COMPANION_INTERVAL) = COMPANION_TICKS;
    TIMER_REGISTER(COMPANION_CONTROL) = TIMER_RUNS;
    TIMER_REGISTER(ALARM_CONTROL) = 0;
    TIMER_REGISTER(TIMERS_STATUS) = 2;
    TIMER_REGISTER(TIMERS_ENABLE) = 2;
}

static inline word_t clock_ticks(void)
{
    return ~TIMER_REGISTER(CLOCK_COUNT);
}

/* So many ticks from now. */
static inline void clock_alarm(word_t ticks)
{
    TIMER_REGISTER(ALARM_INTERVAL) = ticks;
    TIMER_REGISTER(ALARM_CONTROL) = TIMER_RUNS;
}

/* It has interrupted. */
static inline void clock_quiet(void)
{
    TIMER_REGISTER(TIMERS_STATUS) = 2;
}

#endif
