/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices that user programs drive: registers of UART 1 and of EPIT 1. */
#ifndef BILBY_DEVICES_H
#define BILBY_DEVICES_H

#include <device.h>

/* A register of the interrupt controller, where the kernel reaches it. */
#define KERNEL_DEVICES 0xf8000040u

/* UART: "page" is where its frame is mapped. */
static inline int uart_is_full(unsigned int page)
{
    return DEVICE_REGISTER(page + 0xb4) & 0x10;
}

static inline void uart_put(unsigned int page, char c)
{
    DEVICE_REGISTER(page + 0x40) = (unsigned int)c;
}

/* Input: the line of its interrupt; from now on it interrupts while a character is there. */
#define UART_IRQ 45

static inline void uart_listen(unsigned int page)
{
    DEVICE_REGISTER(page + 0x80) = 1u << 9 | 1; /* receiver ready; enabled */
}

static inline int uart_has_input(unsigned int page)
{
    return DEVICE_REGISTER(page + 0x98) & 1;
}

static inline char uart_get(unsigned int page)
{
    return (char)DEVICE_REGISTER(page);
}

/* A device that nobody uses, and the value of one register after reset: CCM, its control. */
#define KNOWN_DEVICE 0x53f80000u
#define KNOWN_REGISTER 0
#define KNOWN_VALUE 0x074b0b7du

/* EPIT 1; the usual interval, in its clocks. */
#define TIMER_TICKS 20000
#define TIMER_MILLISECOND 39000 /* in QEMU: 39 MHz */
#define TIMER_IRQ 28
#define TIMER_REGISTER(page, offset) DEVICE_REGISTER((page) + (offset))

static inline void timer_clear(unsigned int page)
{
    TIMER_REGISTER(page, 0x04) = 1;
}

static inline int timer_has_fired(unsigned int page)
{
    return TIMER_REGISTER(page, 0x04) & 1;
}

static inline void timer_stop(unsigned int page)
{
    TIMER_REGISTER(page, 0x00) = 0;
}

static inline void timer_start_every(unsigned int page, unsigned int ticks)
{
    timer_stop(page);
    timer_clear(page);
    TIMER_REGISTER(page, 0x08) = ticks;                    /* load */
    TIMER_REGISTER(page, 0x0c) = 0;                        /* compare */
    TIMER_REGISTER(page, 0x00) = 1u << 24 | 8 | 4 | 2 | 1; /* peripheral clock, reload, run */
}

/* Clocks since it fired last, while it runs at this interval; and clocks in nanoseconds, in QEMU. */
static inline unsigned int timer_elapsed(unsigned int page, unsigned int ticks)
{
    return ticks - TIMER_REGISTER(page, 0x10);
}

static inline unsigned int timer_nanoseconds(unsigned int clocks)
{
    return clocks * 1000 / 39;
}

#endif
