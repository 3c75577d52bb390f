/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's clock and its alarm: the driver of the host build sets the time (model.c). */
#ifndef BILBY_CLOCK_H
#define BILBY_CLOCK_H

#include <layout.h>

#define SLICE_TICKS 1000
#define TURN_TICKS 0 /* a step each */

word_t clock_ticks(void);
void clock_alarm(word_t ticks);
void clock_quiet(void);
void clock_start(void);

#endif
