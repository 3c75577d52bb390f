/* SPDX-License-Identifier: BSD-2-Clause */
/* The ARM1136 operations for assembly: state at boot, the MMU switch, waiting. */
#ifndef BILBY_MACHINE_ASM_H
#define BILBY_MACHINE_ASM_H

#define ID_VARIANT       0x00f00000 /* n of revision rn */
#define JOSCR_CLOSED     (1 << 1)   /* and no valid configuration */
#define SCTLR_MMU        (1 << 0)
#define SCTLR_DCACHE     (1 << 2)
#define SCTLR_PREDICT    (1 << 11)
#define SCTLR_ICACHE     (1 << 12)
#define SCTLR_HIGH_VECTORS (1 << 13)
#define SCTLR_UNALIGNED  (1 << 22)
#define SCTLR_EXTENDED   (1 << 23)  /* ARMv6 descriptors */
#define SCTLR_BITS (SCTLR_MMU | SCTLR_DCACHE | SCTLR_ICACHE | SCTLR_HIGH_VECTORS \
                    | SCTLR_UNALIGNED | SCTLR_EXTENDED)

    /* Caches and TLB may hold anything: forget it.  Leaves r0 = 0. */
    .macro machine_boot_invalidate
    mov     r0, #0
    mcr     p15, 0, r0, c7, c7, 0   /* both caches */
    mcr     p15, 0, r0, c8, c7, 0   /* the TLB */
    mcr     p15, 0, r0, c7, c10, 4
    .endm

    /*
     * Registers that users could reach and no thread needs: floating point is undefined, and so are
     * Jazelle and its registers (disabled in JMCR, closed to users in JOSCR).  From revision r1 on
     * there are thread registers, which are 0.  Leaves r0 = 0.
     */
    .macro machine_boot_close_coprocessors
    mov     r0, #JOSCR_CLOSED
    mcr     p14, 7, r0, c1, c0, 0
    mrc     p15, 0, r0, c0, c0, 0
    tst     r0, #ID_VARIANT
    mov     r0, #0
    mcrne   p15, 0, r0, c13, c0, 2
    mcrne   p15, 0, r0, c13, c0, 3
    mcr     p14, 7, r0, c2, c0, 0
    mcr     p15, 0, r0, c1, c0, 2
    .endm

    /* Wait until the tables are in memory; r0 = 0. */
    .macro machine_boot_drain
    mcr     p15, 0, r0, c7, c10, 4
    .endm

    /* MMU and caches on, branch prediction off, then to \target (in a register). */
    .macro machine_boot_mmu_on target, label
    mrc     p15, 0, r1, c1, c0, 0
    ldr     r2, =SCTLR_BITS
    orr     r1, r1, r2
    bic     r1, r1, #SCTLR_PREDICT
    ldr     \target, =\label
    mcr     p15, 0, r1, c1, c0, 0
    mcr     p15, 0, r0, c7, c5, 4
    bx      \target
    .endm

    /* Sleep until an interrupt is pending; r0 = 0. */
    .macro machine_wait
    mcr     p15, 0, r0, c7, c0, 4
    .endm

#endif
