/* SPDX-License-Identifier: BSD-2-Clause */
/* The interrupt controller of the host build: two words, and forced preemption. */
#ifndef BILBY_INTERRUPTS_H
#define BILBY_INTERRUPTS_H

#include <stdbool.h>

#include <layout.h>

void interrupts_init(void);
bool interrupts_pending(void);
word_t interrupts_take(void);
void interrupts_mask(word_t irq);
void interrupts_unmask(word_t irq);

#endif
