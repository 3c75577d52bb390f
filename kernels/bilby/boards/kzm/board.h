/* SPDX-License-Identifier: BSD-2-Clause */
/* KZM-ARM11-01 (i.MX31): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

/* Physical memory.  0x88000000 aliases it: the size is fixed, never probed. */
#define RAM_BASE     0x80000000
#include "../ram.h"

/* What the device window shows: the interrupt controller, and the kernel's timer. */
#define INTERRUPTS_PAGE 0x68000000
#define INTERRUPTS_WINDOW DEVICE_WINDOW
#define TICK_PAGE    0x53f98000    /* EPIT2 */
#define TICK_WINDOW  (DEVICE_WINDOW + 0x1000)
#define TICK_IRQ     27

/* Devices mapped by users only. */
#define UART_BASE    0x43f90000
#define TIMER_BASE   0x53f94000    /* EPIT1 */

#endif
