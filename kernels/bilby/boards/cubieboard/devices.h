/* SPDX-License-Identifier: BSD-2-Clause */
/* The devices that user programs drive: registers of UART 0 and of timer 0. */
#ifndef BILBY_DEVICES_H
#define BILBY_DEVICES_H

#include <device.h>

/* A register of the interrupt controller, where the kernel reaches it. */
#define KERNEL_DEVICES 0xf8020410u

/* UART: "page" is where its frame is mapped. */
static inline int uart_is_full(unsigned int page)
{
    return !(DEVICE_REGISTER(page + 0x14) & 0x20);
}

static inline void uart_put(unsigned int page, char c)
{
    DEVICE_REGISTER(page) = (unsigned int)c;
}

/* Input: the line of its interrupt; from now on it interrupts while a character is there. */
#define UART_IRQ 1

static inline void uart_listen(unsigned int page)
{
    DEVICE_REGISTER(page + 0x04) = 1;
}

static inline int uart_has_input(unsigned int page)
{
    return DEVICE_REGISTER(page + 0x14) & 1;
}

static inline char uart_get(unsigned int page)
{
    return (char)DEVICE_REGISTER(page);
}

/* A device that nobody uses, and the value of one register: the disk's version of AHCI. */
#define KNOWN_DEVICE 0x01c18000u
#define KNOWN_REGISTER 0x10
#define KNOWN_VALUE 0x00010000u

/* Timer 0; the usual interval, in clocks of 24 MHz: 300 microseconds. */
#define TIMER_TICKS 7200
#define TIMER_MILLISECOND 24000
#define TIMER_IRQ 22
#define TIMER_REGISTER(page, offset) DEVICE_REGISTER((page) + 0xc00 + (offset))

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
    TIMER_REGISTER(page, 0x10) = 0;
}

static inline void timer_start_every(unsigned int page, unsigned int ticks)
{
    timer_stop(page);
    timer_clear(page);
    TIMER_REGISTER(page, 0x00) |= 1;                 /* the kernel's timer has a bit, too */
    TIMER_REGISTER(page, 0x14) = ticks;              /* of 24 MHz */
    TIMER_REGISTER(page, 0x10) = 1u << 2 | 2 | 1;   /* 24 MHz, reload, enable */
}

/* Clocks since it fired last, while it runs at this interval; and clocks in nanoseconds, in QEMU. */
static inline unsigned int timer_elapsed(unsigned int page, unsigned int ticks)
{
    return ticks - TIMER_REGISTER(page, 0x18);
}

static inline unsigned int timer_nanoseconds(unsigned int clocks)
{
    return clocks * 125 / 3;
}

#endif
