/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ready queues for each criticality and priority, with bitmaps: a change of the system's
 * criticality moves no thread, for it only changes in which order they are looked at.
 *
 * Invariants:
 *   ready_words[c] has bit w   <=>  ready_bits[8 c + w] != 0
 *   ready_bits[8 c + w] has bit b  <=>  queue 256 c + 32 w + b is not empty
 */
#include <ready.h>
#include <timing.h>

struct queue ready[CRITICALITIES * PRIORITIES] __attribute__((aligned(4096)));
static word_t ready_bits[CRITICALITIES * PRIORITY_WORDS] __attribute__((aligned(LINE_BYTES)));
static word_t ready_words[CRITICALITIES] __attribute__((aligned(16)));

static void mark_ready(word_t index)
{
    ready_words[index / PRIORITIES] |= 1u << (index % PRIORITIES / 32);
    READ_LINE(&ready_bits[index / 32]);
    ready_bits[index / 32] |= 1u << (index % 32);
}

static void mark_empty(word_t index)
{
    word_t word = index / 32;

    ready_bits[word] &= ~(1u << (index % 32));
    if (ready_bits[word] == 0)
        ready_words[word / PRIORITY_WORDS] &= ~(1u << word % PRIORITY_WORDS);
}

/* Of its queue; that there are no others can be seen of it. */
static word_t index_of(const struct tcb *thread)
{
    return (word_t)(thread->criticality % CRITICALITIES) * PRIORITIES + thread->priority % PRIORITIES;
}

void ready_append(struct tcb *thread)
{
    word_t index;

    thread = tcb_at(thread);
    index = index_of(thread);
    queue_append(&ready[index], thread);
    mark_ready(index);
}

void ready_prepend(struct tcb *thread)
{
    word_t index;

    thread = tcb_at(thread);
    index = index_of(thread);
    queue_prepend(&ready[index], thread);
    mark_ready(index);
}

void ready_remove(struct tcb *thread)
{
    word_t index;

    thread = tcb_at(thread);
    index = index_of(thread);
    if (queue_remove(&ready[index], thread))
        mark_empty(index);
}

/* The highest priority of a criticality at which somebody waits; the word of its bits is not zero. */
static word_t highest(word_t criticality)
{
    word_t word = 31 - (word_t)__builtin_clz(ready_words[criticality]);
    word_t bits = ready_bits[criticality * PRIORITY_WORDS + word % PRIORITY_WORDS];

    return word * 32 + 31 - (word_t)__builtin_clz(bits);
}

/* Index of the queue of the most urgent, of at least this urgency; else there are no so many. */
static word_t most_urgent(word_t least)
{
    word_t found = CRITICALITIES * PRIORITIES;

    /* bound: CRITICALITIES */
    for (word_t criticality = CRITICALITIES; criticality-- != 0;) {
        word_t priority, urgent;

        if (ready_words[criticality] == 0)
            continue;
        priority = highest(criticality);
        urgent = priority + (criticality >= system_level ? PRIORITIES : 0);
        if (urgent < least)
            continue;
        least = urgent + 1;
        found = criticality * PRIORITIES + priority;
    }
    return found;
}

struct tcb *ready_take(word_t least)
{
    word_t index = most_urgent(least);
    struct tcb *first, *next;

    if (index == CRITICALITIES * PRIORITIES)
        return NULL;
    index %= CRITICALITIES * PRIORITIES;
    first = tcb_at(ready[index].head);
    next = first->sched_next;
    first->queued = 0;
    if (next == NULL) {
        ready[index].tail = NULL;
        mark_empty(index);
    } else {
        struct tcb *behind = tcb_at(next);

        READ_LINE(&behind->sched_prev);
        behind->sched_prev = NULL;
    }
    ready[index].head = next;
    return first;
}
