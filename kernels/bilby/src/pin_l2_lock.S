/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Switch the L2 cache on with the kernel's image locked in it, once, at the end of boot, with
 * interrupts masked.  Way n is filled with the n-th 16 KiB of the image.
 *
 * An access to the image fills L2 only if L1 does not have the line.  So L1 is emptied first, no
 * constant and no stack is read later, and instructions fill no way.  The translations of the image
 * and of the controller are in the TLB from the first accesses on, so that no walk fills a way.
 */
#include <lock.h>
#include <outer.h>

    .section .boot.text, "ax"
    .arm
    .global pin_outer
    .type pin_outer, %function
pin_outer:
    ldr     r0, =OUTER_WINDOW
    ldr     r1, =__image_start
    ldr     r2, =__image_end
    ldr     r3, =OUTER_GEOMETRY
    ldr     r12, [r0, #OUTER_CONTROL]
    machine_lock_forget_data r4

    /* L2, off and empty; where a boot loader has left it on, its data goes to memory. */
    mov     r4, #0
    mov     r5, #OUTER_WAYS
    tst     r12, #1
    beq     2f
    str     r5, [r0, #OUTER_CLEAN_AND_FORGET_WAYS]
1:  ldr     r12, [r0, #OUTER_CLEAN_AND_FORGET_WAYS] /* bound: the controller's time */
    tst     r12, r5
    bne     1b
    str     r4, [r0, #OUTER_SYNC]
    str     r4, [r0, #OUTER_CONTROL]
2:  str     r3, [r0, #OUTER_AUXILIARY]
    str     r5, [r0, #OUTER_FORGET_WAYS]
3:  ldr     r12, [r0, #OUTER_FORGET_WAYS] /* bound: the controller's time */
    tst     r12, r5
    bne     3b
    str     r5, [r0, #OUTER_LOCK_INSTRUCTIONS]
    str     r5, [r0, #OUTER_LOCK_DATA]
    mov     r12, #1
    str     r12, [r0, #OUTER_CONTROL]

    /* r12: the bit of the way that is filled. */
4:  eor     r3, r5, r12             /* bound: its 7 ways (kernel.ld.S) */
    str     r3, [r0, #OUTER_LOCK_DATA]
    machine_lock_drain r3
    add     r4, r1, #OUTER_WAY_BYTES
    cmp     r4, r2
    movhi   r4, r2
5:  ldr     r3, [r1], #32           /* bound: its lines, 512 */
    cmp     r1, r4
    blo     5b
    machine_lock_drain r3
    mov     r12, r12, lsl #1
    cmp     r1, r2
    blo     4b

    /* Only the other ways are filled, from here on for good. */
    sub     r12, r12, #1
    str     r12, [r0, #OUTER_LOCK_DATA]
    str     r12, [r0, #OUTER_LOCK_INSTRUCTIONS]
    machine_lock_drain r3
    bx      lr
    .ltorg
    .size pin_outer, . - pin_outer
