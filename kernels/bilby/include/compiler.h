/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the compiler is not to see through.  None of these is an instruction, and the code
 * around them is right without them; but then it is code of which the analysis sees less.
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
 * What an outer loop computes and the loop inside of it tests: else the compiler may let both
 * begin at one instruction, and the analysis takes them for one loop, without a bound of its own.
 */
#define COMPUTED_IN_EACH_TURN(value) __asm__("" : "+r"(value))

/*
 * Behind a loop that is left in several places: else the compiler may put a return into the
 * loop, and to the analysis the loads of that POP are the loop's.
 */
#define ONE_WAY_OUT() __asm__ volatile("")

#endif
