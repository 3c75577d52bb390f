/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of objects, so that the analysis sees what they are.  Needs word_t: layout.h includes it. */
#ifndef BILBY_WINDOW_H
#define BILBY_WINDOW_H

#include <board.h>
#include <compiler.h>

/*
 * The same address, of which it can be seen that it is one of cached memory, and how aligned:
 * in this window nothing else is RAM.  It changes no address that is right.  Each step is an
 * instruction without a literal, and the bits of the alignment go from the lowest on: the
 * analysis knows multiples, no other patterns of bits.
 */
static inline word_t in_window(word_t address, word_t alignment)
{
    const word_t first = alignment < 256 ? alignment : 256;

    address |= WINDOW_BASE;
    ONE_REGISTER(address);
    address &= WINDOW_BASE | (RAM_BYTES - 1);
    ONE_REGISTER(address);
    address &= ~(first - 1);
    if (alignment > first) {
        ONE_REGISTER(address);
        address &= ~(alignment - first);
    }
    return address;
}

#endif
