/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines are locked in one way of each L1 cache: pin_l1.c, pin_l1_lock.S. */
#ifndef BILBY_PIN_H
#define BILBY_PIN_H

#include <machine.h>

void pin_lines(void);
void pin_forget_after(word_t base, word_t bytes);

/* Dropping all cached instructions would drop the locked ones too, so it is done line by line. */
static inline void pin_forget_before(void)
{
}

/* Instructions were written there, and have reached memory. */
static inline void pin_forget_written(word_t base, word_t bytes)
{
    pin_forget_after(base, bytes);
}

#ifndef PIN_OUTER
/* No L2 cache is in use: cleaned lines are in memory, and mappings need no attributes for it. */
#define PIN_THROUGH_SMALL 0u
#define PIN_THROUGH_LARGE 0u

static inline void pin_outer(void)
{
}

static inline void pin_reach_memory(word_t base, word_t bytes)
{
    (void)base;
    (void)bytes;
}
#endif

#endif
