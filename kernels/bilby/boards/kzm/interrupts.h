/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interrupt controller (AVIC), seen through the device window.
 *
 * Reading the vector register consumes the interrupt, so only the interrupt
 * entry reads it, once.  A preemption point tests the pending registers.
 */
#ifndef BILBY_INTERRUPTS_H
#define BILBY_INTERRUPTS_H

#include <stdbool.h>

#include <board.h>
#include <layout.h>

#define AVIC_REGISTER(offset) (*(volatile word_t *)(INTERRUPTS_WINDOW + (offset)))
#define AVIC_INTCNTL   0x00
#define AVIC_NIMASK    0x04
#define AVIC_INTENNUM  0x08
#define AVIC_INTDISNUM 0x0c
#define AVIC_INTENABLEH 0x10
#define AVIC_INTENABLEL 0x14
#define AVIC_INTTYPEH  0x18
#define AVIC_INTTYPEL  0x1c
#define AVIC_NIVECSR   0x40
#define AVIC_NIPNDH    0x58
#define AVIC_NIPNDL    0x5c

/* Boot: every line off, none fast. */
static inline void interrupts_init(void)
{
    AVIC_REGISTER(AVIC_INTCNTL) = 0;
    AVIC_REGISTER(AVIC_INTENABLEH) = 0;
    AVIC_REGISTER(AVIC_INTENABLEL) = 0;
    AVIC_REGISTER(AVIC_INTTYPEH) = 0;
    AVIC_REGISTER(AVIC_INTTYPEL) = 0;
    AVIC_REGISTER(AVIC_NIMASK) = 31;
}

/* Some line would interrupt if interrupts were not masked in the core; no side effect. */
static inline bool interrupts_pending(void)
{
    return AVIC_REGISTER(AVIC_NIPNDH) | AVIC_REGISTER(AVIC_NIPNDL);
}

/* The pending line of highest priority; IRQ_LINES or more if there is none. */
static inline word_t interrupts_take(void)
{
    return AVIC_REGISTER(AVIC_NIVECSR) >> 16;
}

static inline void interrupts_mask(word_t irq)
{
    AVIC_REGISTER(AVIC_INTDISNUM) = irq;
}

static inline void interrupts_unmask(word_t irq)
{
    AVIC_REGISTER(AVIC_INTENNUM) = irq;
}

#endif
