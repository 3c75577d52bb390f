/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bits of cpsr that a user may choose, and the state of an IT block in it: bits 7:2 of that
 * state are in 15:10, bits 1:0 in 26:25. Bits 7:4 are the condition of the next instruction, whose
 * low bit changes within a block; each instruction shifts 4:0 to the left.
 */
#ifndef BILBY_FLAGS_H
#define BILBY_FLAGS_H

#include <layout.h>

#define MACHINE_CPSR_IT   0x0600fc00u
#define MACHINE_CPSR_USER (0xf80f0220u | MACHINE_CPSR_IT) /* flags, GE, byte order, Thumb */

/* For each three high bits of a condition: whether it holds, by N, Z, C and V as a number. */
static const unsigned short machine_conditions[8] = {
    0xf0f0, 0xcccc, 0xff00, 0xaaaa, 0x0c0c, 0xaa55, 0x0a05, 0xffff,
};

/*
 * The cpsr before an SVC, from the one after it.  It has been executed, so its condition held:
 * that tells the bit that was shifted out.
 */
static inline word_t machine_cpsr_of_svc(word_t cpsr)
{
    word_t after = (cpsr >> 8 & 0xfc) | (cpsr >> 25 & 3);
    word_t low, before;

    if (after == 0)
        return cpsr; /* in no block, or its last: the SVC alone is unconditional */
    low = !(machine_conditions[after >> 5] >> (cpsr >> 28) & 1);
    before = (after & 0xe0) | low << 4 | (after >> 1 & 0xf);
    return (cpsr & ~MACHINE_CPSR_IT) | (before & 0xfc) << 8 | (before & 3) << 25;
}

#endif
