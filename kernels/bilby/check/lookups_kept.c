/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookups that threads have kept (lookup_kept.c):
 *   L1  there are no more than there is room for
 *   L2  one that is valid is what would be found now
 *   L3  or found nothing: then it is the last
 */
#include <lookup.h>

#include "invariants.h"

static void check_kept(const struct tcb *thread)
{
    require(thread->lookups_kept <= LOOKUPS_MAX, "L1 as many lookups as there is room for", thread);
    if (thread->lookups_at != cnodes_left)
        return;
    for (word_t i = 0; i < thread->lookups_kept; i++) {
        const struct lookup *kept = &thread->lookups[i];

        require(kept->slot != NULL || i + 1 == thread->lookups_kept,
                "L3 only the last lookup found nothing", kept);
        require(kept->slot == NULL
                || cspace_resolve(kept->root, kept->address, kept->bits) == kept->slot,
                "L2 a lookup that is kept is what would be found now", kept);
    }
}

void check_lookups(void)
{
    for (word_t i = 0; i < universe->threads.count; i++)
        check_kept((const struct tcb *)universe->threads.at[i]);
}

/* What is kept is no part of an outcome: a call that is not made again keeps the same or less. */
bool is_kept_lookup(word_t address)
{
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        if (address >= (word_t)thread->lookups && address < (word_t)&thread->reserved2)
            return true;
    }
    return false;
}
