/* SPDX-License-Identifier: BSD-2-Clause */
/* KZM-ARM11-01 (i.MX31): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

#define AT_A_LINE /* no function need begin with a line of the instruction cache */

/* Physical memory.  0x88000000 aliases it: the size is fixed, never probed. */
#define RAM_BASE     0x80000000
#include "../ram.h"

/* The pages of the device window: the interrupt controller, and the kernel's timer. */
#define INTERRUPTS_PAGE 0x68000000
#define INTERRUPTS_WINDOW DEVICE_WINDOW
#define TICK_PAGE    0x53f98000    /* EPIT2 */
#define TICK_WINDOW  (DEVICE_WINDOW + 0x1000)
#define TICK_IRQ     27
#define CLOCK_PAGE   0x53f90000    /* GPT: only where time is a capability; else it is users' */
#define CLOCK_WINDOW (DEVICE_WINDOW + 0x2000)

/* The controller of the L2 cache (outer.h), which only PIN=l2 uses. */
#define OUTER_PAGE   0x30000000
#define OUTER_WINDOW (DEVICE_WINDOW + 0x3000)

/* Devices mapped by users only. */
#define UART_BASE    0x43f90000
#define TIMER_BASE   0x53f94000    /* EPIT1 */

/*
 * The rest: both peripheral bridges around these pages and the kernel's, the shared peripherals,
 * and the board's own at chip selects 4 (UART) and 5 (Ethernet).
 */
#define DEVICE_REGIONS { \
    { 0x43f00000, 19 }, { 0x43f80000, 16 }, { 0x43f91000, 12 }, { 0x43f92000, 13 }, \
    { 0x43f94000, 14 }, { 0x43f98000, 15 }, { 0x43fa0000, 17 }, { 0x43fc0000, 18 }, \
    { 0x50000000, 20 }, \
    { 0x53f00000, 19 }, { 0x53f80000, 16 }, CLOCK_REGIONS, { 0x53f95000, 12 }, \
    { 0x53f96000, 13 }, { 0x53f99000, 12 }, { 0x53f9a000, 13 }, { 0x53f9c000, 14 }, \
    { 0x53fa0000, 17 }, { 0x53fc0000, 18 }, \
    { 0xb4000000, 25 }, { 0xb6000000, 25 } }

/* The GPT's page and three others. */
#ifdef TIME_CONTEXTS
#define CLOCK_REGIONS { 0x53f91000, 12 }, { 0x53f92000, 13 }
#else
#define CLOCK_REGIONS { 0x53f90000, 14 }
#endif

#endif
