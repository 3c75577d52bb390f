/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupt lines: which of them have a handler capability. */
#include <kernel.h>
#include <interrupts.h>

static bool issued[IRQ_LINES]; /* a handler capability was made */

bool irq_is_issued(word_t irq)
{
    return issued[irq];
}

/* The one handler capability of a line is made. */
void irq_issue(word_t irq)
{
    issued[irq] = true;
}

/* The last handler capability of a line is deleted; its notification was before. */
void irq_release(word_t irq)
{
    interrupts_mask(irq);
    issued[irq] = false;
}
