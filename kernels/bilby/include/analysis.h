/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All idioms for the analysis, with the purpose of each.
 *
 * The code around them is right without them; but then it is slower, or the compiler makes of it
 * code of which the analysis sees less.  Only in_window and the reads of lines are instructions.  No
 * other file restricts the compiler (volatile, assembly), except where devices and the machine need
 * it.
 *
 * Needs word_t: layout.h includes this.
 */
#ifndef BILBY_ANALYSIS_H
#define BILBY_ANALYSIS_H

#include <board.h>

/*
 * Before an object is read through a pointer: else the compiler may keep two addresses of it
 * in two registers, so that one more is saved on the stack, and the analysis need not see
 * that both lead to one cache line.
 */
#define ONE_REGISTER(pointer) __asm__("" : "+r"(pointer))

/* Brings a line into the cache; other accesses may come before or after it. */
#define FETCH_LINE(pointer) ((void)*(volatile const __typeof__(*(pointer)) *)(pointer))

/*
 * Before several words of a line are written.  Stores do not bring a line into the cache: without
 * this, each word would go to memory by itself.  The compiler moves no load or store across it, in
 * either direction.
 */
#define READ_LINE(pointer) __extension__({ \
    __asm__ volatile("" : : : "memory"); \
    FETCH_LINE(pointer); \
    __asm__ volatile("" : : : "memory"); \
})

/*
 * A value that an outer loop computes and the loop inside of it tests: else the compiler may let
 * both begin at one instruction, and the analysis takes them for one loop, without a bound of its
 * own.  An address computed from a counter is similar: the compiler would count addresses instead.
 */
#define COMPUTED_IN_EACH_TURN(value) __asm__("" : "+r"(value))

/*
 * Behind a loop that is left in several places: else the compiler may put a return into the
 * loop, and to the analysis the loads of that POP are the loop's.
 */
#define ONE_WAY_OUT() __asm__ volatile("")

/*
 * Of a pointer that was masked (in_window): the mask leaves no null, and the compiler need not test
 * for it.
 */
#define NEVER_NULL(pointer) __extension__({ \
    if ((pointer) == NULL) \
        __builtin_unreachable(); \
})

/* Variables that most calls use: in the line of the current thread's address, which each entry reads first. */
#define WITH_CURRENT __attribute__((section(".bss.current")))

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
