/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory is cleared first, before anything is made from it, with a preemption
 * point after each chunk (section 3.5).
 *
 * Invariant: all memory of an untyped region from its "free" mark on is zero, in memory and not
 * only in the cache.  When nothing made from the region exists any more, the memory below the mark
 * is cleared from the top down and the mark comes down with it.  So the mark is the progress: it
 * stands in the capability, where no user can write, and the next thread that retypes continues
 * from there.
 */
#include <kernel.h>
#include <machine.h>
#include <pin.h>
#include <preemption.h>

#define CHUNK_UNITS (CHUNK_BYTES / 16)

PREEMPTIBLE void clear_before(struct slot *slot)
{
    struct cap *cap = &slot->cap;

    if (slot_has_child(slot) || untyped_cap_free(cap) == 0)
        return;
    pin_forget_before(); /* of programs that were there; none is fetched from there now */
    /* preempted: 6 */
    while (untyped_cap_free(cap) != 0) {
        word_t free = untyped_cap_free(cap);
        word_t below = (free - 1) & ~(CHUNK_UNITS - 1);

        create_clear_chunk(untyped_cap_object(cap) + (below << 4), (free - below) << 4);
        pin_forget_after(untyped_cap_object(cap) + (below << 4), (free - below) << 4);
        untyped_cap_set_free(cap, below);
        PREEMPTION_POINT(6);
    }
}

/* Already clear. */
void clear_inside(word_t base, word_t bytes)
{
    (void)base;
    (void)bytes;
}
