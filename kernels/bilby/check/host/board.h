/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board of the host build: memory of a 32-bit process.  The kernel window is
 * lower than on hardware, where the process can have it; 32 MiB are enough.
 */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

#define RAM_BASE     0x80000000
#define RAM_BYTES    0x02000000
#define KERNEL_PHYSICAL 0x80010000 /* the kernel's variables; its code is the process's */
#define BOOT_HEAP    0x80100000
#define USER_IMAGE   0x80200000
#define ROOT_FRAME_1M_BASE  0x80300000
#define ROOT_FRAME_16M_BASE 0x81000000
/* Small, so that clearing one is not most of a test. */
#define UNTYPED_REGIONS { { 0x80400000, 16 }, { 0x80800000, 21 }, { 0x80a00000, 21 } }

#define DIRT_BYTES   0x4000 /* of the first region: what a program may have left */

#define WINDOW_BASE  0xb0000000

#define UART_BASE    0x43f90000
#define TIMER_BASE   0x53f94000
#define TICK_IRQ     62

#endif
