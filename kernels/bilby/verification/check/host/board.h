/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The board of the host build: memory of a 32-bit process.  The kernel window is
 * lower than on hardware, where the process can have it; 32 MiB are enough.
 */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

#define AT_A_LINE /* lines of the instruction cache do not matter here */
#define RAM_BASE     0x8a000000
#define RAM_BYTES    0x02000000
#define KERNEL_PHYSICAL 0x8a010000 /* the kernel's variables; its code is the process's */
#define BOOT_HEAP    0x8a100000
#define USER_IMAGE   0x8a200000
#define ROOT_FRAME_1M_BASE  0x8a300000
#define ROOT_FRAME_16M_BASE 0x8b000000
/*
 * Small, so that clearing one is not most of a test.  RAM_BASE is chosen so that two capabilities
 * have the same first word, but for the type: one for a frame at 0x8ab00000, and one for an object
 * at 0xb0ab0000.
 */
#define UNTYPED_REGIONS { { 0x8a400000, 16 }, { 0x8a800000, 21 }, { 0x8aa00000, 21 } }

#define DIRT_BYTES   0x4000 /* of the first region: possible leftovers of a program */

#define WINDOW_BASE  0xb0000000

#define UART_BASE    0x43f90000
#define TIMER_BASE   0x53f94000
#define DEVICE_REGIONS { { 0x43f80000, 16 }, { 0x50000000, 20 }, { 0xb6000000, 25 } }
#define TICK_IRQ     62

#endif
