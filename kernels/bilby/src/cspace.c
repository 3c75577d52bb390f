/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of capability spaces, as capabilities and messages have them. */
#include <kernel.h>
#include <lookup.h>
#include <resolve.h>

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
