/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the compiler is not to see through.  The code around these is right without them; but
 * then it is slower, or code of which the analysis sees less.  Only READ_LINE is an instruction.
 */
#ifndef BILBY_COMPILER_H
#define BILBY_COMPILER_H

/*
 * Before an object is read through a pointer: else the compiler may keep two addresses of it
 * in two registers, so that one more is saved on the stack, and the analysis need not see
 * that both lead to one cache line.
 */
#define ONE_REGISTER(pointer) __asm__("" : "+r"(pointer))

/*
 * Before several words of a line are written.  Stores do not bring a line into the cache: without
 * this each word would go to memory by itself.  What is read before stays before it, what is written
 * behind it.
 */
#define READ_LINE(pointer) __extension__({ \
    __asm__ volatile("" : : : "memory"); \
    (void)*(volatile const __typeof__(*(pointer)) *)(pointer); \
    __asm__ volatile("" : : : "memory"); \
})

/*
 * What an outer loop computes and the loop inside of it tests: else the compiler may let both
 * begin at one instruction, and the analysis takes them for one loop, without a bound of its own.
 * Or what is computed from a counter: else the compiler may count addresses, which have no bound.
 */
#define COMPUTED_IN_EACH_TURN(value) __asm__("" : "+r"(value))

/*
 * Behind a loop that is left in several places: else the compiler may put a return into the
 * loop, and to the analysis the loads of that POP are the loop's.
 */
#define ONE_WAY_OUT() __asm__ volatile("")

#endif
