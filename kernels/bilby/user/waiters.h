/* SPDX-License-Identifier: BSD-2-Clause */
/* A model of a queue in which children wait, and the numbers that tests about queues draw. */
#ifndef USER_WAITERS_H
#define USER_WAITERS_H

#include "world.h"

#define WAITERS 12 /* at most */
#ifdef TIME_CONTEXTS
#define BY_PRIORITY 1
#else
#define BY_PRIORITY 0 /* in order of arrival only */
#endif

struct waiter {
    struct child child;
    word_t priority, arrival, kind;
    bool waits;
};

extern struct waiter waiters[WAITERS];

word_t draw(word_t limit);                         /* pseudorandom, below the limit, a power of two */
word_t first_of_queue(void);                       /* who is to be served next; WAITERS: nobody */
void comes(word_t which);                          /* behind all others of its place */
bool gets_priority(word_t which, word_t priority); /* also while it waits: it comes again, where that counts */

#endif
