/* SPDX-License-Identifier: BSD-2-Clause */
/* KZM-ARM11-01 (i.MX31): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

/* Physical memory.  0x88000000 aliases it: the size is fixed, never probed. */
#define RAM_BASE     0x80000000
#define RAM_BYTES    0x08000000
#define KERNEL_PHYSICAL 0x80010000 /* of the kernel's first byte */
#define BOOT_HEAP    0x80100000    /* objects of the first thread */
#define USER_IMAGE   0x80200000    /* where the first program is loaded */
#define ROOT_FRAME_1M_BASE  0x80300000
#define ROOT_FRAME_16M_BASE 0x81000000
#define DIRT         0x80400000    /* a program may leave data here, in untyped memory */
#define DIRT_BYTES   0x40000      /* boot does not clear this much of it */
#define UNTYPED_REGIONS { { 0x80400000, 22 }, { 0x80800000, 23 }, \
                          { 0x82000000, 25 }, { 0x84000000, LAST_REGION_BITS } }
#ifdef CHECKED
#define LAST_REGION_BITS 25
#define CHECK_MEMORY 0xf6000000    /* of the checks, behind the last region */
#else
#define LAST_REGION_BITS 26
#endif

/* The kernel window: the top 256 MiB of every address space. */
#define WINDOW_BASE  0xf0000000
#define DEVICE_WINDOW 0xf8000000   /* one 1 MiB section, uncached */
#define DEVICE_SECTION 0x68000000  /* what it shows: the interrupt controller */
#define VECTOR_PAGE  0xffff0000

/* Devices mapped by users only. */
#define UART_BASE    0x43f90000
#define TIMER_BASE   0x53f94000    /* EPIT1 */

#endif
