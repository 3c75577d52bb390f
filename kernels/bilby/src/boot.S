/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From reset state to C: build the kernel's page directory, turn on the MMU and
 * the caches, jump into the kernel window.  Linked high, runs low until then, so
 * it is position-independent: physical addresses are link addresses + r10.
 */
#include <board.h>
#include <machine_asm.h>

/* Descriptors: see vspace.h for the bits. */
#define SECTION          0x2
#define SECTION_CACHED   (3 << 2)
#define SECTION_KERNEL   (1 << 10)  /* privileged read and write, global */
#define SECTION_NEVER    (1 << 4)   /* no execution */
#define SECTION_THROUGH  (6 << 12)  /* written through L2; the first section, the kernel's, is not */
#define TABLE            0x1
#define PAGE_KERNEL_READ ((1 << 9) | (1 << 4))
#define PAGE_CACHED      (3 << 2)
#define PAGE             0x2
#define PAGE_DEVICE      ((1 << 4) | (1 << 2) | PAGE | 1) /* privileged read and write, no execution */
#define TTBR_WALK        0x18       /* walks: outer write-back */

    .section .boot.text, "ax"
    .arm
    .global _start
    .type _start, %function
_start:
    cpsid   aif, #0x13
    /* r10: the offset from a link address to its physical address. */
    ldr     r10, =KERNEL_PHYSICAL - (WINDOW_BASE + KERNEL_PHYSICAL - RAM_BASE)

    machine_boot_close_coprocessors
    machine_boot_invalidate

    /* Clear .bss, which holds the tables. */
    ldr     r1, =__bss_start
    ldr     r2, =__bss_end
    add     r1, r1, r10
    add     r2, r2, r10
1:  str     r0, [r1], #4            /* bound: .bss / 4 */
    cmp     r1, r2
    blo     1b

    /* r4: the kernel's page directory, physical. */
    ldr     r4, =kernel_directory
    add     r4, r4, r10

    /* The window: RAM in sections; only the first may be executed. */
    ldr     r1, =WINDOW_BASE
    add     r2, r4, r1, lsr #18
    ldr     r3, =RAM_BASE | SECTION | SECTION_CACHED | SECTION_KERNEL
    str     r3, [r2], #4
    orr     r3, r3, #SECTION_NEVER
#ifdef PIN_L2
    orr     r3, r3, #SECTION_THROUGH
#endif
    mov     r5, #(RAM_BYTES >> 20) - 1
2:  add     r3, r3, #1 << 20        /* bound: RAM_BYTES / 1 MiB */
    str     r3, [r2], #4
    subs    r5, r5, #1
    bne     2b

    /* Where this code runs now, until boot_main removes it. */
    ldr     r3, =RAM_BASE | SECTION | SECTION_CACHED | SECTION_KERNEL
    add     r2, r4, #RAM_BASE >> 18
    str     r3, [r2]

    /* The interrupt controller and the kernel's timer, through a table of their own. */
    ldr     r1, =DEVICE_WINDOW
    ldr     r5, =device_table
    add     r5, r5, r10
    orr     r3, r5, #TABLE
    str     r3, [r4, r1, lsr #18]
    ldr     r3, =INTERRUPTS_PAGE | PAGE_DEVICE
    str     r3, [r5, #(INTERRUPTS_WINDOW - DEVICE_WINDOW) >> 10]
    ldr     r3, =TICK_PAGE | PAGE_DEVICE
    str     r3, [r5, #(TICK_WINDOW - DEVICE_WINDOW) >> 10]
#ifdef TIME_CONTEXTS
    ldr     r3, =CLOCK_PAGE | PAGE_DEVICE
    str     r3, [r5, #(CLOCK_WINDOW - DEVICE_WINDOW) >> 10]
#endif
#ifdef PIN_L2
    ldr     r3, =OUTER_PAGE | PAGE_DEVICE
    str     r3, [r5, #(OUTER_WINDOW - DEVICE_WINDOW) >> 10]
#endif

    /* The vector page, through a table of its own. */
    ldr     r1, =VECTOR_PAGE
    ldr     r5, =vector_table
    add     r5, r5, r10
    orr     r3, r5, #TABLE
    add     r2, r4, r1, lsr #20 - 2
    bic     r2, r2, #3
    str     r3, [r2]
    ldr     r3, =__vectors_physical
    orr     r3, r3, #PAGE_CACHED | PAGE
    orr     r3, r3, #PAGE_KERNEL_READ & 0xff
    orr     r3, r3, #PAGE_KERNEL_READ & 0xff00
    add     r5, r5, #((VECTOR_PAGE >> 12) & 0xff) << 2
    str     r3, [r5]

    /* Walks start at kernel_directory; domain 0 is checked; number 0. */
    mov     r0, #0
    machine_boot_drain
    mcr     p15, 0, r0, c2, c0, 2
    orr     r1, r4, #TTBR_WALK
    mcr     p15, 0, r1, c2, c0, 0
    mov     r1, #1
    mcr     p15, 0, r1, c3, c0, 0
    mcr     p15, 0, r0, c13, c0, 1

    machine_boot_mmu_on r3, high
high:
    ldr     sp, =kernel_stack_top
    bl      boot_main
    b       return_to_current
    .size _start, . - _start
    .ltorg
