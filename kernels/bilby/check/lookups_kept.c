/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookups that threads have kept (lookup_kept.c):
 *   L1  there are no more than there is room for
 *   L2  one that is valid is what would be found now
 *       (or found nothing, when it was made)
 *   L3  only a thread that was preempted has any: one that can run, and not behind its call
 */
#include <lookup.h>

#include "invariants.h"

void check_no_lookups(const struct tcb *thread)
{
    require(thread->lookups_end == NULL, "L3 a call that is over keeps no lookup", thread);
}

static void check_kept(const struct tcb *thread)
{
    const struct lookup *end = thread->lookups_end;
    word_t bytes = (word_t)end - (word_t)thread->lookups;

    require(end == NULL || (bytes <= sizeof(thread->lookups) && bytes % sizeof(*end) == 0),
            "L1 as many lookups as there is room for", thread);
    if (end == NULL || thread->lookups_at != cnodes_moved)
        return;
    for (const struct lookup *kept = thread->lookups; kept < end; kept++)
        require(kept->slot == NULL
                || cspace_resolve(kept->root, kept->address, kept->bits) == kept->slot,
                "L2 a lookup that is kept is what would be found now", kept);
}

void check_lookups(void)
{
    for (word_t i = 0; i < universe->threads.count; i++)
        check_kept((const struct tcb *)universe->threads.at[i]);
}

/* What is kept is no part of an outcome: a call that is not made again keeps the same or less. */
bool is_kept_lookup(const struct list *threads, word_t address)
{
    for (word_t i = 0; i < threads->count; i++) {
        const struct tcb *thread = (const struct tcb *)threads->at[i];

        if (address >= (word_t)thread->lookups && address < (word_t)&thread->reserved2)
            return true;
    }
    return false;
}

word_t lookups_kept(void)
{
    return LOOKUPS_MAX;
}
