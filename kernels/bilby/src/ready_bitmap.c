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

struct queue ready[PRIORITIES];
static word_t ready_bits[PRIORITY_WORDS];
static word_t ready_words;

static void mark_ready(word_t priority)
{
    ready_words |= 1u << (priority / 32);
    ready_bits[priority / 32] |= 1u << (priority % 32);
}

static void mark_empty(word_t priority)
{
    word_t word = priority / 32;

    ready_bits[word] &= ~(1u << (priority % 32));
    if (ready_bits[word] == 0)
        ready_words &= ~(1u << word);
}

void ready_append(struct tcb *thread)
{
    queue_append(&ready[thread->priority], thread);
    mark_ready(thread->priority);
}

void ready_prepend(struct tcb *thread)
{
    queue_prepend(&ready[thread->priority], thread);
    mark_ready(thread->priority);
}

void ready_remove(struct tcb *thread)
{
    struct queue *queue = &ready[thread->priority];

    queue_remove(queue, thread);
    if (queue->head == NULL)
        mark_empty(thread->priority);
}

struct tcb *ready_highest(void)
{
    word_t word, bit;

    if (ready_words == 0)
        return NULL;
    word = 31 - (word_t)__builtin_clz(ready_words);
    bit = 31 - (word_t)__builtin_clz(ready_bits[word]);
    return ready[word * 32 + bit].head;
}
