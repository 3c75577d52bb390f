/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With an L2 cache, memory that is cleaned out of L1 is in memory, too, for L2 is written through
 * (PIN_THROUGH_SMALL). But L2 still has its lines, which devices and uncached mappings bypass: what
 * they write would not be seen. So a user's operation to clean a frame drops them, line by line.
 *
 * Invariant: no operation of the kernel concerns all lines of L2, and none a line of the kernel.
 */
#include <kernel.h>
#include <outer.h>
#include <pin.h>

/* Of at most a chunk, which was cleaned out of L1; whole lines. */
void pin_reach_memory(word_t base, word_t bytes)
{
    word_t line = to_physical(base);
    word_t left = bytes / LINE_BYTES;

    /* bound: CHUNK_LINES + 1 */
    for (left = left < CHUNK_LINES ? left : CHUNK_LINES; left != 0; left--) {
        OUTER_REGISTER(OUTER_CLEAN_AND_FORGET_LINE) = line;
        line += LINE_BYTES;
    }
    OUTER_REGISTER(OUTER_SYNC) = 0;
}
