/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of parts that QEMU does not have: a data cache that holds writes back, an instruction
 * cache that holds old instructions, a TLB that holds old translations, and the order of operations
 * on them (KERNEL.md 9).
 *
 * Each is as bad as the architecture allows: nothing leaves the data cache unless cleaned and
 * drained, a line of instructions stays until invalidated, and the TLB has all translations that a
 * walk could have found in the current space.
 */
#ifndef CHECK_MODEL_H
#define CHECK_MODEL_H

#include <stdbool.h>

#include <layout.h>

#define PREEMPT_LINE 63u /* raised by a forced preemption; no handler is set for it */

void model_init(void);
void model_know(const void *first, word_t bytes); /* it is clean */
void model_begin(void);             /* the user runs: the TLB fills, lines are fetched */
void model_check(void);             /* invariants M1 to M10, after an operation */
bool model_is_published(word_t window, word_t bytes); /* new memory */
bool model_is_clean(word_t window, word_t bytes);
bool model_is_forgotten(word_t window, word_t bytes);
void model_device_writes(word_t address, word_t value); /* to memory, past the cache */
void model_raise(word_t irq);
bool model_is_pending(void);
bool model_is_masked(word_t irq);
void model_set_time(count_t ticks); /* the clock's count, now */
void model_set_fault(word_t address, word_t status);
void model_force(word_t test);      /* preempt at this test of pending; 0: never */
void model_force_by(word_t irq);    /* the line that does it */
word_t model_tests(void);           /* how often it was tested since model_force */
word_t model_taken(void);           /* how often that line was taken since then */

#endif
