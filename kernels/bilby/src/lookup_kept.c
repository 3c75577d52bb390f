/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preemption point after each address that is looked up; what was found is kept in the
 * thread, so that the call, made again, does not look it up again.
 *
 * A lookup depends on nothing but the CNode capabilities that it goes through: no other
 * slot is read, and what is put into an empty one was on nobody's way.  So it gives the
 * same slot until a CNode capability leaves its slot.  That is always a move, for deletion
 * begins with one: of the capability, or of the last one of the container in which it stands,
 * into which no lookup leads from then on (delete.c).  "cnodes_moved" counts them, in 64 bits
 * that no system lives to see overflow.  Lookups are kept with their arguments, in the
 * order of the call: addresses in a message buffer, or the thread at the other end, may
 * be others when the call is made again.
 *
 * That nothing was found is kept too, though somebody may put something there before the call
 * is made again: then it was not there when the call was made first.  So all is forgotten at the
 * end of the call, or when it will not be made again.
 *
 * Invariant: of a thread whose "lookups_at" equals cnodes_moved, the first "lookups_kept" of
 * its lookups are what cspace_resolve would find now, but for those that found nothing.
 * Only a thread that can run, and was preempted, keeps any.
 *
 * Interrupts alone cannot keep a call from finishing: each attempt keeps at least one lookup
 * more, of at most LOOKUPS_MAX.  What is lost when a CNode capability moves, by this call or
 * by a thread that ran in between, is looked up again, point by point.
 */
#include <kernel.h>
#include <lookup.h>
#include <preemption.h>

count_t cnodes_moved;
word_t lookup_position;

static void keep(struct lookup *kept, const struct cap *root, word_t address, word_t bits,
                 struct slot *slot)
{
    kept->root = (struct cap *)root;
    kept->address = address;
    kept->bits = bits;
    kept->slot = slot;
}

static bool is_kept(const struct lookup *kept, const struct cap *root, word_t address,
                    word_t bits)
{
    return kept->root == root && kept->address == address && kept->bits == bits;
}

static struct tcb *caller(void)
{
    return (struct tcb *)in_window((word_t)current_thread, sizeof(struct tcb));
}

/* Keep it too; what was kept behind it belongs to another way that the call took. */
static PREEMPTIBLE struct slot *find_and_keep(struct lookup *kept, const struct cap *root,
                                              word_t address, word_t bits)
{
    keep(kept, root, address, bits, cspace_resolve(root, address, bits));
    caller()->lookups_kept = lookup_position;
    PREEMPTION_POINT(13);
    return kept->slot;
}

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits)
{
    struct tcb *thread = caller();
    struct lookup *kept;
    word_t position;

    if (thread->lookups_at != cnodes_moved) {
        thread->lookups_at = cnodes_moved;
        thread->lookups_kept = 0;
        lookup_position = 0;
    }
    position = lookup_position % LOOKUPS_MAX;
    kept = &thread->lookups[position];
    lookup_position = position + 1;
    if (position < thread->lookups_kept && is_kept(kept, root, address, bits))
        return kept->slot;
    return find_and_keep(kept, root, address, bits);
}
