/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock the lines of two tables (tools/pinned.py) in one way of each L1 cache, once, at the
 * end of boot, with interrupts masked: "Improving interrupt response time", section 4.
 *
 * The procedure for each cache: no line of the table is in it; the lines of this code itself are,
 * in other ways; only the one way can be filled; each line is brought in; only the other ways can
 * be filled, from here on for good.
 */
#include <lock.h>

    .section .boot.text, "ax"
    .arm
    .balign 32
    .global pin_lines
    .type pin_lines, %function
pin_lines:
    ldr     r2, =pinned_instructions
    ldr     r3, =pinned_data

    /* Instructions.  This code, and prefetches past it, go to the other ways. */
    machine_lock_forget_instructions r0
    machine_lock_instructions_keep r1
    adr     r0, pin_lines
    ldr     r12, =pin_lines_end + 64
1:  machine_lock_fetch r0           /* bound: its lines, and two */
    add     r0, r0, #32
    cmp     r0, r12
    blo     1b
    machine_lock_instructions_fill r1
    mov     r0, r2
2:  ldr     r1, [r0], #4            /* bound: 129, the end marker included */
    cmp     r1, #0
    beq     3f
    machine_lock_fetch r1
    b       2b
3:  machine_lock_instructions_keep r1

    /* Data.  The table goes to the other ways; no line of it is left in any. */
    machine_lock_data_keep r1
    mov     r0, r3
4:  ldr     r1, [r0], #4            /* bound: 129 */
    cmp     r1, #0
    beq     5f
    machine_lock_evict r1
    b       4b
5:  machine_lock_drain r1
    machine_lock_data_fill r1
    mov     r0, r3
6:  ldr     r1, [r0], #4            /* bound: 129 */
    cmp     r1, #0
    beq     7f
    ldr     r1, [r1]
    b       6b
7:  machine_lock_data_keep r1
    bx      lr
    .ltorg
pin_lines_end:
    .size pin_lines, . - pin_lines
