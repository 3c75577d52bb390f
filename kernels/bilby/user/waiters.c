/* SPDX-License-Identifier: BSD-2-Clause */
/* See waiters.h. */
#include "waiters.h"
#include "tests.h"

struct waiter waiters[WAITERS];
static word_t arrivals, seed = 77;

/* Xorshift. */
word_t draw(word_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed & (limit - 1);
}

static bool is_before(const struct waiter *one, const struct waiter *other)
{
    if (BY_PRIORITY && one->priority != other->priority)
        return one->priority > other->priority;
    return one->arrival < other->arrival;
}

word_t first_of_queue(void)
{
    word_t best = WAITERS;

    for (word_t i = 0; i < WAITERS; i++)
        if (waiters[i].waits && (best == WAITERS || is_before(&waiters[i], &waiters[best])))
            best = i;
    return best;
}

void comes(word_t which)
{
    waiters[which].waits = true;
    waiters[which].arrival = ++arrivals;
    let_others_run();
}

bool gets_priority(word_t which, word_t priority)
{
    SAME(tcb_set_priority(waiters[which].child.tcb, priority), 0);
    waiters[which].priority = priority;
    if (BY_PRIORITY)
        waiters[which].arrival = ++arrivals; /* also if it was that before */
    return true;
}
