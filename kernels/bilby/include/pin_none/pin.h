/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing is locked in caches. */
#ifndef BILBY_PIN_H
#define BILBY_PIN_H

#include <machine.h>

/* At the end of boot. */
static inline void pin_outer(void)
{
}

static inline void pin_lines(void)
{
}

/* No L2 cache is in use: cleaned lines are in memory, and mappings need no attributes for it. */
#define PIN_THROUGH_SMALL 0u
#define PIN_THROUGH_LARGE 0u

static inline void pin_reach_memory(word_t base, word_t bytes)
{
    (void)base;
    (void)bytes;
}

/* Before memory that may have been executed is cleared: its cached instructions go. */
static inline void pin_forget_before(void)
{
    machine_forget_instructions();
}

/* Instructions were written there, and have reached memory: cached ones go. */
static inline void pin_forget_written(word_t base, word_t bytes)
{
    (void)base;
    (void)bytes;
    machine_forget_instructions();
    machine_drain();
}

/* After some of it was cleared. */
static inline void pin_forget_after(word_t base, word_t bytes)
{
    (void)base;
    (void)bytes;
}

#endif
