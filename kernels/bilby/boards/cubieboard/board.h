/* SPDX-License-Identifier: BSD-2-Clause */
/* Cubieboard (Allwinner A10): where memory and devices are.  Numbers only. */
#ifndef BILBY_BOARD_H
#define BILBY_BOARD_H

#ifdef PIN_L2
#error "PIN=l2: no procedure locks lines in the L2 cache of the Cortex-A8; build for BOARD=kzm, or without PIN"
#endif

/* A function that begins with a line of the instruction cache: without, a reply of mcs takes one more. */
#ifdef TIME_CONTEXTS
#define AT_A_LINE __attribute__((aligned(64)))
#else
#define AT_A_LINE
#endif

/* Physical memory: the board has 512 MiB or more; the kernel window shows 128 of them. */
#define RAM_BASE     0x40000000
#include "../ram.h"

/* The pages of the device window: the interrupt controller and the kernel's timer, in one page. */
#define INTERRUPTS_PAGE 0x01c20000
#define INTERRUPTS_WINDOW (DEVICE_WINDOW + 0x20000)
#define TICK_PAGE    INTERRUPTS_PAGE
#define TICK_WINDOW  INTERRUPTS_WINDOW
#define TICK_IRQ     23            /* timer 1; timer 2 is the kernel's, too, where time is a capability */
#define CLOCK_PAGE   INTERRUPTS_PAGE
#define CLOCK_WINDOW INTERRUPTS_WINDOW

/*
 * Devices mapped by users only.  Their timer shares its page with the clock unit, the
 * interrupt controller and the kernel's timer: whoever has that frame is trusted.
 */
#define UART_BASE    0x01c28000    /* UART0 */
#define TIMER_BASE   0x01c20000    /* page of timer 0 */

/* The rest of the megabyte in which the chip has its devices. */
#define DEVICE_REGIONS { \
    { 0x01c00000, 17 }, { 0x01c21000, 12 }, { 0x01c22000, 13 }, { 0x01c24000, 14 }, \
    { 0x01c29000, 12 }, { 0x01c2a000, 13 }, { 0x01c2c000, 14 }, { 0x01c30000, 16 }, \
    { 0x01c40000, 18 }, { 0x01c80000, 19 } }

#endif
