/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of capability spaces.
 *
 * An address is resolved from its most significant bit.  Each CNode compares the
 * next bits with its guard and uses the following ones as an index.  An address
 * must be used up exactly: a capability met too early is an error.
 */
#include <kernel.h>
#include <lookup.h>

static word_t low_bits(word_t count)
{
    return (1u << count) - 1;
}

/*
 * The slot that the low "bits" bits of an address (1 to 32 of them) lead to, from
 * this root; null if none.  Every level resolves its radix, which is at least 1.
 */
struct slot *cspace_resolve(const struct cap *root, word_t address, word_t bits)
{
    struct cap node = *root; /* both words at once: one cache line */
    struct slot *slot = NULL;

    /* bound: ADDRESS_BITS + 1: each turn takes at least one bit of at most 32 */
    while (bits != 0) {
        word_t radix = cnode_cap_radix(&node);
        word_t level = radix + cnode_cap_guard_size(&node);
        word_t rest;

        if (cap_type(&node) != CAP_CNODE || level > bits)
            break;
        rest = address >> (bits - level);
        if (((rest >> radix) & low_bits(level - radix)) != cnode_cap_guard(&node))
            break;
        bits -= level;
        slot = (struct slot *)cnode_cap_object(&node) + (rest & low_bits(radix));
        slot = (struct slot *)in_window((word_t)slot, sizeof(struct slot));
        ONE_REGISTER(slot); /* for both words */
        node = slot->cap;
    }
    ONE_WAY_OUT();
    return bits == 0 ? slot : NULL;
}

/* The slot of a full address in a thread's own space; null if none. */
struct slot *cspace_lookup(struct tcb *thread, word_t address)
{
    return lookup_find(&thread->cspace.cap, address, ADDRESS_BITS);
}

/* The slot at an index of given depth below a CNode. */
word_t cspace_find(const struct cap *root, word_t index, word_t depth, struct slot **found)
{
    if (cap_type(root) != CAP_CNODE)
        return ERROR_INVALID_CAPABILITY;

    if (depth < 1 || depth > ADDRESS_BITS)
        return ERROR_RANGE;

    *found = lookup_find(root, index, depth);
    return *found == NULL ? ERROR_LOOKUP_FAILED : ERROR_NONE;
}

/* The same, to be filled: it must be empty. */
word_t cspace_find_empty(const struct cap *root, word_t index, word_t depth,
                         struct slot **found)
{
    word_t error = cspace_find(root, index, depth, found);

    if (error == ERROR_NONE && !slot_is_empty(*found))
        return ERROR_SLOT_OCCUPIED;
    return error;
}
