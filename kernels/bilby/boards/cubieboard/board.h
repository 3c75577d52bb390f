/* SPDX-License-Identifier: BSD-2-Clause */
/* Cubieboard (Allwinner A10): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

/* Physical memory: the board has 512 MiB or more; the kernel window shows this much. */
#define RAM_BASE     0x40000000
#define RAM_BYTES    0x08000000
#define KERNEL_PHYSICAL 0x40010000 /* of the kernel's first byte */
#define BOOT_HEAP    0x40100000    /* objects of the first thread */
#define USER_IMAGE   0x40200000    /* where the first program is loaded */
#define ROOT_FRAME_1M_BASE  0x40300000
#define ROOT_FRAME_16M_BASE 0x41000000
#define DIRT         0x40400000    /* a program may leave data here, in untyped memory */
#define DIRT_BYTES   0x40000      /* boot does not clear this much of it */
#define UNTYPED_REGIONS { { 0x40400000, 22 }, { 0x40800000, 23 }, \
                          { 0x42000000, 25 }, { 0x44000000, LAST_REGION_BITS } }
#ifdef CHECKED
#define LAST_REGION_BITS 25
#define CHECK_MEMORY 0xf6000000    /* of the checks, behind the last region */
#else
#define LAST_REGION_BITS 26
#endif

/* The kernel window: the top 256 MiB of every address space. */
#define WINDOW_BASE  0xf0000000
#define DEVICE_WINDOW 0xf8000000   /* one 1 MiB section, uncached */
#define DEVICE_SECTION 0x01c00000  /* what it shows: the interrupt controller is in it */
#define VECTOR_PAGE  0xffff0000

/*
 * Devices mapped by users only.  The timer shares its page with the clock unit
 * and the interrupt controller: whoever has that frame is trusted.
 */
#define UART_BASE    0x01c28000    /* UART0 */
#define TIMER_BASE   0x01c20000    /* page of timer 0 */

#endif
