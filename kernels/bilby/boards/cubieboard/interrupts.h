/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interrupt controller (INTC) of the A10, seen through the device window.
 *
 * Of its 96 lines the first 64 are used.  They are all enabled; the mask registers
 * say which may interrupt.  No register changes by being read.
 */
#ifndef BILBY_INTERRUPTS_H
#define BILBY_INTERRUPTS_H

#include <stdbool.h>

#include <board.h>
#include <layout.h>
#include <limits.h>

#define INTC_REGISTER(offset) (*(volatile word_t *)(INTERRUPTS_WINDOW + 0x400 + (offset)))
#define INTC_VECTOR   0x00 /* four times the pending line of highest priority; 0 if none */
#define INTC_PENDING  0x10
#define INTC_SELECT   0x30 /* 1: FIQ */
#define INTC_ENABLE   0x40
#define INTC_MASK     0x50
#define INTC_GROUPS   3

/* Boot: every line masked, none fast, those in use enabled. */
static inline void interrupts_init(void)
{
    /* bound: INTC_GROUPS + 1 */
    for (word_t i = 0; i < INTC_GROUPS; i++) {
        INTC_REGISTER(INTC_MASK + 4 * i) = ~0u;
        INTC_REGISTER(INTC_SELECT + 4 * i) = 0;
        INTC_REGISTER(INTC_ENABLE + 4 * i) = i < IRQ_LINES / 32 ? ~0u : 0;
    }
}

/*
 * Some line but line 0 would interrupt if interrupts were not masked in the core;
 * no side effect.  One register, already masked, says so: the analyser needs no
 * more.  Line 0 (the NMI pin) is served after the system call.
 */
static inline bool interrupts_pending(void)
{
    return INTC_REGISTER(INTC_VECTOR) != 0;
}

/* The pending line of highest priority; IRQ_LINES or more if there is none. */
static inline word_t interrupts_take(void)
{
    word_t irq = INTC_REGISTER(INTC_VECTOR) >> 2;

    if (irq == 0 && !(INTC_REGISTER(INTC_PENDING) & ~INTC_REGISTER(INTC_MASK) & 1))
        return IRQ_LINES;
    return irq;
}

static inline void interrupts_mask(word_t irq)
{
    INTC_REGISTER(INTC_MASK + (irq / 32) * 4) |= 1u << (irq % 32);
}

static inline void interrupts_unmask(word_t irq)
{
    INTC_REGISTER(INTC_MASK + (irq / 32) * 4) &= ~(1u << (irq % 32));
}

#endif
