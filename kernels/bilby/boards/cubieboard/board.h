/* SPDX-License-Identifier: BSD-2-Clause */
/* Cubieboard (Allwinner A10): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

/* Physical memory: the board has 512 MiB or more; the kernel window shows 128 of them. */
#define RAM_BASE     0x40000000
#include "../ram.h"

#define DEVICE_SECTION 0x01c00000  /* what the device window shows: the interrupt controller is in it */

/*
 * Devices mapped by users only.  The timer shares its page with the clock unit
 * and the interrupt controller: whoever has that frame is trusted.
 */
#define UART_BASE    0x01c28000    /* UART0 */
#define TIMER_BASE   0x01c20000    /* page of timer 0 */

#endif
