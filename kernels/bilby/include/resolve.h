/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an address is resolved: from its most significant bit.  Each CNode compares the
 * next bits with its guard and uses the following ones as an index.  An address
 * must be used up exactly: a capability met too early is an error.
 */
#ifndef BILBY_RESOLVE_H
#define BILBY_RESOLVE_H

#include <kernel.h>

static inline word_t low_bits(word_t count)
{
    return (1u << count) - 1;
}

/*
 * The slot that the low "bits" bits of an address (1 to 32 of them) lead to, from
 * this root; null if none.  Every level resolves its radix, which is at least 1.
 * The slots on the way get this mark, unless they have a greater one (lookup_kept.c).
 */
static inline struct slot *resolve_marking(const struct cap *root, word_t address, word_t bits,
                                           word_t mark)
{
    struct slot *slot = (struct slot *)in_window((word_t)root, sizeof(struct slot));

    /* bound: ADDRESS_BITS + 1: each turn takes at least one bit of at most 32 */
    while (bits != 0) {
        struct cap node;
        word_t radix, level, rest;

        ONE_REGISTER(slot); /* for both words: one cache line */
        node = slot->cap;
        radix = cnode_cap_radix(&node);
        level = radix + cnode_cap_guard_size(&node);
        if (cap_type(&node) != CAP_CNODE || level > bits)
            break;
        rest = address >> (bits - level);
        if (((rest >> radix) & low_bits(level - radix)) != cnode_cap_guard(&node))
            break;
        if (cnode_cap_passed(&node) < mark)
            cnode_cap_set_passed(&slot->cap, mark);
        bits -= level;
        slot = (struct slot *)cnode_cap_object(&node) + (rest & low_bits(radix));
        slot = (struct slot *)in_window((word_t)slot, sizeof(struct slot));
    }
    ONE_WAY_OUT();
    return bits == 0 ? slot : NULL;
}

#endif
