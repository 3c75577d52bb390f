/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work while a timer interrupts: an urgent driver takes each interrupt and
 * checks that it was delivered once; a worker, less urgent, does the work.
 */
#ifndef USER_TICKER_H
#define USER_TICKER_H

#include "world.h"

/* Clocks from one interrupt to the next: "period", and with each up to "spread" more. */
struct ticks {
    word_t period, spread;
};

extern word_t timer_line;   /* slot of the timer's handler; 0 before there is one */
extern word_t interrupts;   /* taken during the last interrupted() */

/* timer_line is a handler of the timer's line that nobody else has. */
void own_the_timer(void);

/*
 * Run the worker to its report.  False, with a line that says why, unless it
 * reports "expected" and each interrupt that the timer raised came exactly once.
 */
bool interrupted(const struct child *worker, word_t expected, struct ticks ticks);

#endif
