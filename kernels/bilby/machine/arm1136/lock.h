/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cache lockdown of the ARM1136, format C (TRM, register 9): a way whose bit is set is filled no
 * more; its lines stay until they are invalidated.  Bits 31:4 are ones.
 */
#ifndef BILBY_LOCK_H
#define BILBY_LOCK_H

#define LOCK_OTHERS 0x7 /* ways 0 to 2 */
#define LOCK_TARGET 0x8 /* way 3 */

    /* For assembly: each clobbers its register. */
    .macro machine_lock_ways register, ways, op2
    mvn     \register, #0xf
    orr     \register, \register, #\ways
    mcr     p15, 0, \register, c9, c0, \op2
    mov     \register, #0
    mcr     p15, 0, \register, c7, c5, 4    /* nothing that was fetched before counts */
    .endm

    /* Only the way of locked lines is filled, or only the others. */
    .macro machine_lock_instructions_fill register
    machine_lock_ways \register, LOCK_OTHERS, 1
    .endm
    .macro machine_lock_instructions_keep register
    machine_lock_ways \register, LOCK_TARGET, 1
    .endm
    .macro machine_lock_data_fill register
    machine_lock_ways \register, LOCK_OTHERS, 0
    .endm
    .macro machine_lock_data_keep register
    machine_lock_ways \register, LOCK_TARGET, 0
    .endm

    /* All instructions, four times as in machine.h. */
    .macro machine_lock_forget_instructions register
    mov     \register, #0
    .rept   4
    mcr     p15, 0, \register, c7, c5, 0
    .endr
    .rept   11
    nop
    .endr
    .endm

    /* Bring in the line of instructions at an address. */
    .macro machine_lock_fetch address
    mcr     p15, 0, \address, c7, c13, 1
    .endm

    /* Write back and drop the line of data at an address. */
    .macro machine_lock_evict address
    mcr     p15, 0, \address, c7, c14, 1
    .endm

    /* Write back and drop all lines of data. */
    .macro machine_lock_forget_data register
    mov     \register, #0
    mcr     p15, 0, \register, c7, c14, 0
    mcr     p15, 0, \register, c7, c10, 4
    .endm

    .macro machine_lock_drain register
    mov     \register, #0
    mcr     p15, 0, \register, c7, c10, 4
    .endm

#endif
