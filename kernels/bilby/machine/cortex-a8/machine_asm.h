/* SPDX-License-Identifier: BSD-2-Clause */
/* The Cortex-A8 operations for assembly: state at boot, the MMU switch, waiting. */
#ifndef BILBY_MACHINE_ASM_H
#define BILBY_MACHINE_ASM_H

#define ACTLR_L2         (1 << 1)
#define TEECR_CLOSED     (1 << 0)   /* TEEHBR is undefined for users */
#define SCTLR_MMU        (1 << 0)
#define SCTLR_ALIGNMENT  (1 << 1)   /* fault on any unaligned access */
#define SCTLR_DCACHE     (1 << 2)
#define SCTLR_PREDICT    (1 << 11)
#define SCTLR_ICACHE     (1 << 12)
#define SCTLR_HIGH_VECTORS (1 << 13)
#define SCTLR_REMAP      (1 << 28)  /* memory types by the remap registers */
#define SCTLR_ACCESS     (1 << 29)  /* access flag in descriptors */
#define SCTLR_THUMB      (1 << 30)  /* exceptions in Thumb state */
#define SCTLR_SET   (SCTLR_MMU | SCTLR_DCACHE | SCTLR_ICACHE | SCTLR_HIGH_VECTORS)
#define SCTLR_CLEAR (SCTLR_ALIGNMENT | SCTLR_PREDICT | SCTLR_REMAP | SCTLR_ACCESS | SCTLR_THUMB)

    /*
     * Caches and TLB may hold anything: forget it.  There is no operation for a
     * whole data cache: every set and way of every level that CLIDR lists, in the
     * geometry that CCSIDR gives.  Clobbers r1-r9 and r11, leaves r0 = 0.
     */
    .macro machine_boot_invalidate
    mrc     p15, 1, r0, c0, c0, 1   /* CLIDR */
    mov     r3, #0                  /* level, shifted left by 1 */
90: add     r2, r3, r3, lsr #1
    mov     r1, r0, lsr r2
    and     r1, r1, #7
    cmp     r1, #2
    blo     93f                     /* no data in this level */
    mcr     p15, 2, r3, c0, c0, 0   /* CSSELR */
    isb
    mrc     p15, 1, r1, c0, c0, 0   /* CCSIDR */
    and     r2, r1, #7
    add     r2, r2, #4              /* log2 of the bytes of a line */
    ubfx    r4, r1, #3, #10         /* ways - 1 */
    clz     r5, r4                  /* where the way stands; 32 if there is one way */
    ubfx    r6, r1, #13, #15        /* sets - 1 */
91: mov     r7, r4                  /* bound: sets of the cache */
92: orr     r8, r3, r6, lsl r2      /* bound: ways of the cache */
    orr     r8, r8, r7, lsl r5
    mcr     p15, 0, r8, c7, c6, 2   /* DCISW */
    subs    r7, r7, #1
    bge     92b
    subs    r6, r6, #1
    bge     91b
93: add     r3, r3, #2
    cmp     r3, #14                 /* bound: 7 levels */
    blo     90b
    mov     r0, #0
    mcr     p15, 0, r0, c7, c5, 0   /* instruction cache */
    mcr     p15, 0, r0, c7, c5, 6   /* branch predictor */
    mcr     p15, 0, r0, c8, c7, 0   /* TLBs */
    dsb
    isb
    .endm

    /*
     * State that users could reach and no thread needs: floating point, the base of ThumbEE's
     * handlers and the counters become undefined, TPIDRURO becomes 0. Jazelle is only BX here.
     * Leaves r0 = 0.
     */
    .macro machine_boot_close_coprocessors
    mov     r0, #TEECR_CLOSED
    mcr     p14, 6, r0, c0, c0, 0
    mov     r0, #0
    mcr     p15, 0, r0, c1, c0, 2
    mcr     p15, 0, r0, c9, c14, 0
    mcr     p15, 0, r0, c13, c0, 2
    mcr     p15, 0, r0, c13, c0, 3
    isb
    .endm

    /* Wait until the tables are in memory; r0 = 0. */
    .macro machine_boot_drain
    dsb
    .endm

    /*
     * MMU, L1 and L2 on, branch prediction off, then to \target (in a register).
     * The vectors stand at 0xffff0000 as on the ARM1136: VBAR is not used.
     */
    .macro machine_boot_mmu_on target, label
    mrc     p15, 0, r1, c1, c0, 1
    orr     r1, r1, #ACTLR_L2
    mcr     p15, 0, r1, c1, c0, 1
    mrc     p15, 0, r1, c1, c0, 0
    ldr     r2, =SCTLR_SET
    orr     r1, r1, r2
    ldr     r2, =SCTLR_CLEAR
    bic     r1, r1, r2
    ldr     \target, =\label
    isb
    mcr     p15, 0, r1, c1, c0, 0
    isb
    bx      \target
    .endm

    /* Sleep until an interrupt is pending. */
    .macro machine_wait
    dsb
    wfi
    .endm

#endif
