/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that takes a known time, and figures about it. */
#ifndef USER_WORK_H
#define USER_WORK_H

#include "contexts.h"

/* Turns of work() in so many ticks: the first thread measures them while nobody else runs. */
#define WORK_TICKS 1024u
void work_measure(void);
extern word_t work_turns; /* children have it as it was when they were made */

void work(word_t turns);               /* a loop of two instructions */
word_t turns_of(word_t ticks);
word_t quotient(word_t sum, word_t count); /* rounded down; 0 of nothing */

/* Sum, number and least of the measurements. */
struct figure {
    volatile word_t sum, count, least;
};

void figure_add(struct figure *figure, word_t value);
/* Comment lines "# name-mean value" and "# name-least value". */
void figure_print(const char *name, const struct figure *figure);

#endif
