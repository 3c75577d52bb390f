/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of tests about time as a capability: spinners, sleep, servers without time. */
#ifndef USER_TIMED_H
#define USER_TIMED_H

#include "contexts.h"
#include "world.h"

#define SHARED_ADDRESS 0x001fa000u /* one frame, in several spaces */
#define WORK       10  /* priority of those who work */
#define HANDLES    200 /* of those who must act at once */
#define NEVER      0x77 /* the reported value if somebody waits in vain */

/* The memory shared by the first thread and children. */
struct shared {
    volatile word_t turns[8]; /* of each spinner */
    volatile word_t stop;
};

extern struct shared *shared; /* as the first thread sees it */
void share_nothing_yet(void);
void share_with(const struct child *child);

void spins(word_t which);                     /* a child: counts its turns, until it is told to stop */
struct child spinner(word_t which, word_t priority, word_t budget, word_t period);
void sleep_until(ticks_t time);               /* the first thread: on a budget of its own, without using time */
void sleep_for(word_t ticks);
word_t used_of(word_t context);               /* since it was last asked for */
bool is_about(word_t value, word_t expected, word_t tolerance);

void works(word_t turns);                     /* a loop */
word_t turns_in(word_t ticks);                /* of that loop, as the first thread measures */
void serves_slowly(word_t turns);             /* a child: answers after so many turns */
void calls_once(word_t value);                /* a child: tells the answer to one call */
struct child calls_on(word_t endpoint, word_t value, word_t budget, word_t period); /* the same, of less time */
word_t answer_to(word_t endpoint, word_t value); /* to a call of another thread; NEVER: there was none */
void start_passive(const struct child *child); /* it waits, and has no time of its own any more */
struct child passive_server(void (*run)(word_t), word_t argument, word_t endpoint);

#endif
