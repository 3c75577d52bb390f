/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of a queue that is ordered by priority: the last thread of each priority, found with two
 * CLZ.  Constant time.
 *
 * Priorities are counted from the most urgent on, by their rank: 0 is priority 255.
 *
 * Invariants, while two threads wait or more:
 *   words has bit w, and bits[w] has bit b  <=>  threads of rank 32 w + b wait
 *   words has bit w  =>  bits[w] != 0
 *   last[32 w + b] is the last of them, where such threads wait
 * What else stands in the index means nothing.
 */
#include <wait_order.h>

static word_t rank_of(word_t priority)
{
    return PRIORITIES - 1 - priority % PRIORITIES;
}

/* The last of the threads that are as urgent as this rank, or more; null if there is none. */
static struct tcb *last_up_to(const struct levels *levels, struct tcb *const *last, word_t rank)
{
    word_t word = rank / 32, words = levels->words;
    word_t bits = words >> word & 1 ? levels->bits[word] & ~0u >> (31 - rank % 32) : 0;

    if (bits == 0) {
        words &= (1u << word) - 1;
        if (words == 0)
            return NULL;
        word = (31 - (word_t)__builtin_clz(words)) % PRIORITY_WORDS;
        bits = levels->bits[word];
    }
    return last[(word * 32 + 31 - (word_t)__builtin_clz(bits)) % PRIORITIES];
}

static void set_last(struct levels *levels, struct tcb **last, struct tcb *thread)
{
    word_t rank = rank_of(thread->priority), word = rank / 32, words = levels->words;

    levels->bits[word] = (words >> word & 1 ? levels->bits[word] : 0) | 1u << rank % 32;
    levels->words = words | 1u << word;
    last[rank] = thread;
}

/* A thread comes to one that waits alone.  Returns whom it follows: that one, or null. */
struct tcb *levels_begin(struct levels *levels, struct tcb **last, struct tcb *alone, struct tcb *thread)
{
    alone = tcb_at(alone);
    READ_LINE(&levels->words);
    levels->words = 0;
    set_last(levels, last, alone);
    set_last(levels, last, thread);
    return alone->priority >= thread->priority ? alone : NULL;
}

/* It comes to several: it follows the last of those who are as urgent, or more; null: nobody is. */
struct tcb *levels_enter(struct levels *levels, struct tcb **last, struct tcb *thread)
{
    struct tcb *before = last_up_to(levels, last, rank_of(thread->priority));

    set_last(levels, last, thread);
    return before;
}

/* The last of a priority leaves: the one before is the last now, or, if null, it was the only one. */
void levels_leave(struct levels *levels, struct tcb **last, word_t priority, struct tcb *before)
{
    word_t rank = rank_of(priority), word = rank / 32;

    if (before != NULL) {
        last[rank] = before;
        return;
    }
    levels->bits[word] &= ~(1u << rank % 32);
    if (levels->bits[word] == 0)
        levels->words &= ~(1u << word);
}
