/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel is locked in L2 (pin_l2.c, pin_l2_lock.S), and lines of it in L1 (pin_l1.c, pin_l1_lock.S).
 */
#ifndef BILBY_PIN_L2_H
#define BILBY_PIN_L2_H

#define PIN_OUTER
#include "../pin_l1/pin.h"

/*
 * Cached memory is written through L2 (TEX 110), so that cleaned lines are in memory; of small pages,
 * and of large ones and sections.
 */
#define PIN_THROUGH_SMALL 0x180u
#define PIN_THROUGH_LARGE 0x6000u

void pin_outer(void);
void pin_reach_memory(word_t base, word_t bytes);

#endif
