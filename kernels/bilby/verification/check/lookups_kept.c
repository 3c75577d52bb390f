/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookups that threads have kept (lookup_kept.c):
 *   L1  there are no more than there is room for
 *   L2  a valid one is the current result of a lookup
 *       (or found nothing, when it was made)
 *   L3  only a thread that was preempted has any: a runnable one, and not behind its call
 *   L4  on the way of a valid one, slots are marked with its thread's class or a lower one
 *   L5  a thread is of the class of its priority
 */
#include <lookup.h>

#include "invariants.h"

void check_no_lookups(const struct tcb *thread)
{
    require(thread->lookups_end == NULL, "L3 a call that is over keeps no lookup", thread);
}

/* The slot that a lookup leads to now, as its definition says; null if there is none. */
static const struct slot *follow(const struct lookup *kept, word_t class)
{
    const struct slot *at = (const struct slot *)kept->root;
    word_t bits = kept->bits;

    while (bits != 0) {
        const struct cap *node = &at->cap;
        word_t radix = cnode_cap_radix(node), guard_size = cnode_cap_guard_size(node);
        unsigned long long rest = kept->address & ((1ull << bits) - 1);

        if (cap_type(node) != CAP_CNODE || radix + guard_size > bits
            || rest >> (bits - guard_size) != cnode_cap_guard(node))
            return NULL;
        require(cnode_cap_passed(node) >= LOOKUP_CLASSES - class,
                "L4 slots on the way of a lookup that is kept are marked", at);
        bits -= radix + guard_size;
        at = (const struct slot *)cnode_cap_object(node) + ((word_t)(rest >> bits) & ((1u << radix) - 1));
    }
    return at;
}

static void check_kept(const struct tcb *thread)
{
    const struct lookup *end = thread->lookups_end;
    word_t bytes = (word_t)end - (word_t)thread->lookups;

    require(end == NULL || (bytes <= sizeof(thread->lookups) && bytes % sizeof(*end) == 0),
            "L1 as many lookups as there is room for", thread);
    require(thread->lookups_class == lookup_class(thread->priority), "L5 of the class of its priority", thread);
    if (end == NULL || thread->lookups_at != lookups_lost[thread->lookups_class])
        return;
    for (const struct lookup *kept = thread->lookups; kept < end; kept++)
        require(kept->slot == NULL || follow(kept, thread->lookups_class) == kept->slot,
                "L2 a lookup that is kept is what would be found now", kept);
}

void check_lookups(void)
{
    for (word_t i = 0; i < universe->threads.count; i++)
        check_kept((const struct tcb *)universe->threads.at[i]);
}

/* Lookups are no part of an outcome: a call that is not made again keeps the same or less. */
bool is_kept_lookup(const struct list *threads, word_t address)
{
    if (address - (word_t)lookups_lost < sizeof(lookups_lost))
        return true;
    for (word_t i = 0; i < threads->count; i++) {
        const struct tcb *thread = (const struct tcb *)threads->at[i];

        if (address >= (word_t)thread->lookups && address < (word_t)&thread->reserved2)
            return true;
    }
    return false;
}

/* Marks are no part of an outcome either: here all are taken away. */
void lookups_unmark(void)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        lookup_pass_none(&universe->slot[i]->cap);
}

word_t lookups_kept(void)
{
    return LOOKUPS_MAX;
}
