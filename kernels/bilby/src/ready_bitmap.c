/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ready queues with a two-level bitmap: the highest is found with two CLZ.
 *
 * Invariants:
 *   ready_words has bit w  <=>  ready_bits[w] != 0
 *   ready_bits[w] has bit b  <=>  queue 32 w + b is not empty
 */
#include <kernel.h>
#include <ready.h>

/* In the lower half of the sets of a cache with 4 KiB ways; the top of the stack is in the upper. */
struct queue ready[PRIORITIES] __attribute__((aligned(4096)));
static word_t ready_bits[PRIORITY_WORDS] __attribute__((aligned(LINE_BYTES)));
static word_t ready_words WITH_CURRENT;

static void mark_ready(word_t priority)
{
    ready_words |= 1u << (priority / 32);
    READ_LINE(&ready_bits[priority / 32]);
    ready_bits[priority / 32] |= 1u << (priority % 32);
}

static void mark_empty(word_t priority)
{
    word_t word = priority / 32;

    ready_bits[word] &= ~(1u << (priority % 32));
    if (ready_bits[word] == 0)
        ready_words &= ~(1u << word);
}

/* That there are no others can be seen of it. */
static word_t priority_of(const struct tcb *thread)
{
    return thread->priority % PRIORITIES;
}

void ready_append(struct tcb *thread)
{
    word_t priority;

    thread = tcb_at(thread);
    priority = priority_of(thread);
    queue_append(&ready[priority], thread);
    mark_ready(priority);
}

void ready_prepend(struct tcb *thread)
{
    word_t priority;

    thread = tcb_at(thread);
    priority = priority_of(thread);
    queue_prepend(&ready[priority], thread);
    mark_ready(priority);
}

void ready_remove(struct tcb *thread)
{
    word_t priority;

    thread = tcb_at(thread);
    priority = priority_of(thread);
    if (queue_remove(&ready[priority], thread))
        mark_empty(priority);
}

struct tcb *ready_take(word_t least)
{
    word_t words = ready_words;
    word_t word, priority;
    struct tcb *first, *next;

    if (words == 0)
        return NULL;
    word = 31 - (word_t)__builtin_clz(words);
    priority = word * 32 + 31 - (word_t)__builtin_clz(ready_bits[word % PRIORITY_WORDS]);
    if (priority < least)
        return NULL;
    priority %= PRIORITIES;
    first = tcb_at(ready[priority].head);
    next = first->sched_next;
    first->queued = 0;
    if (next == NULL) {
        ready[priority].tail = NULL;
        mark_empty(priority);
    } else {
        struct tcb *behind = tcb_at(next);

        READ_LINE(&behind->sched_prev);
        behind->sched_prev = NULL;
    }
    ready[priority].head = next;
    return first;
}
