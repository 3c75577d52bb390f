/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With instructions locked in L1, cached instructions of memory that is cleared are
 * dropped line by line: an operation on one line never takes another one along.
 *
 * Invariant: no operation of the kernel drops all cached instructions, or by set and way.
 */
#include <kernel.h>
#include <pin.h>

/* Of at most a chunk, which was cleaned to memory. */
void pin_forget_after(word_t base, word_t bytes)
{
    word_t line = base & ~(LINE_BYTES - 1);

    /* bound: CHUNK_LINES + 2 */
    for (word_t left = (bytes & (2 * CHUNK_BYTES - 1)) / LINE_BYTES + 1; left != 0; left--) {
        machine_forget_line((const void *)line);
        line += LINE_BYTES;
    }
    machine_drain();
}
