/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capability space in which every address has 32 levels: one bit is resolved by
 * each CNode.  Eight leaves share three levels; the other 29 of each are its own, and
 * no two CNodes share a cache line, so that looking one up brings nothing of another
 * into the cache.
 */
#ifndef USER_DEEP_H
#define USER_DEEP_H

#include "world.h"

enum leaf {
    LEAF_ENDPOINT,  /* the endpoint of the messages */
    LEAF_BADGE,     /* the same endpoint: travels as a badge */
    LEAF_BADGE_2,
    LEAF_OTHER,     /* travels as a capability */
    LEAF_ROOT,      /* the space itself */
    LEAF_EMPTY,     /* a free slot */
    LEAF_REPORT,
    LEAF_HANDLER,   /* of faults */
    LEAVES,
};

/* Below the three levels the same 29 bits for every leaf, with no pattern to them. */
#define DEEP(leaf) ((word_t)(leaf) << 29 | 0x1a3cc3a6u)

/* Its root; "leaves" are slots of the first thread, 0 for none. LEAF_ROOT is set here. */
word_t deep_space(const word_t *leaves);

#endif
