/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The time in 64 bits.  The board's counter has 32: its wraps are counted when it is read, and it
 * is read at least once in each half of a turn, for an alarm is never further away.
 */
#include <timing.h>
#include <clock.h>

static word_t clock_low, clock_high; /* when it was read last */

count_t clock_now(void)
{
    word_t ticks = clock_ticks();

    if (ticks < clock_low)
        clock_high++;
    clock_low = ticks;
    return (count_t)clock_high << 32 | ticks;
}
