/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Well-formed data structures (section 2.2, first kind): the derivation list.
 *
 *   W1  slots lie in memory, aligned to 16 bytes
 *   W2  a->next == b  <=>  b->prev == a
 *   W3  an empty slot is in no list and has no flags
 *   W4  lists end: following "next" from slots without "prev" meets each slot once
 *   W5  each capability is the first of a family (both flags) or a copy (none); one that has no
 *       copies is never one; so a list begins with a capability from boot, a thread's creation or a
 *       retype, or with a copy that outlived it
 *
 * The queues are in scheduler.c and waiting.c.
 */
#include <timing.h>

#include "invariants.h"

/* Kinds of which there is only ever the first. */
static bool has_no_copy(const struct cap *cap)
{
    switch (cap_type(cap)) {
    case CAP_UNTYPED:
    case CAP_DEVICE:
    case CAP_IRQ_CONTROL:
    case CAP_PAGE_TABLE:
#ifdef TIME_CONTEXTS
    case CAP_SCHED_CONTROL:
#endif
        return true;
    case CAP_REPLY:
        return reply_cap_master(cap);
    default:
        return false;
    }
}

static void check_flags(const struct slot *slot)
{
    word_t flags = slot->prev & 0xf;

    require(flags == 0 || flags == 3, "W5 first of a family, or a copy", slot);
    require(flags == 3 || !has_no_copy(&slot->cap), "W5 this kind has no copies", slot);
    require((slot->next & 0xf) == 0, "W5 only one link has flags", slot);
}

static void check_slot(const struct slot *slot)
{
    const struct slot *next = link_to(slot->next);
    const struct slot *prev = link_to(slot->prev);

    if (cap_type(&slot->cap) == CAP_NULL) {
        require(slot->prev == 0 && slot->next == 0, "W3 an empty slot is in no list", slot);
        return;
    }
    check_flags(slot);
    require(next == NULL || link_to(next->prev) == slot, "W2 next->prev == this", slot);
    require(prev == NULL || link_to(prev->next) == slot, "W2 prev->next == this", slot);
    require(next == NULL || cap_type(&next->cap) != CAP_NULL, "W3 next is not empty", slot);
}

void check_lists(void)
{
    word_t filled = 0, met = 0;

    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        check_slot(slot);
        filled += cap_type(&slot->cap) != CAP_NULL;
    }
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        if (cap_type(&slot->cap) == CAP_NULL || link_to(slot->prev) != NULL)
            continue;
        for (; slot != NULL && met <= filled; slot = link_to(slot->next))
            met++;
    }
    require(met == filled, "W4 every list begins and ends", NULL);
}
