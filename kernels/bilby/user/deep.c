/* SPDX-License-Identifier: BSD-2-Clause */
/* See deep.h. */
#include "deep.h"

#define LEVELS   32
#define SHARED   3 /* levels that the leaves share: 1 + 2 + 4 CNodes */
#define OWN      (LEVELS - SHARED)
#define APART    2 /* so many CNodes fill a line of 64 bytes; one of them is used */
#define NODES    (APART * (7 + LEAVES * OWN))
#define AT_ONCE  32

static word_t bit_of(word_t address, word_t level)
{
    return address >> (LEVELS - 1 - level) & 1;
}

/* The CNode that resolves bit "level" of a leaf's address. */
static word_t node(word_t leaf, word_t level)
{
    if (level < SHARED)
        return APART * ((1u << level) - 1 + (leaf >> (SHARED - level)));
    return APART * (7 + leaf * OWN + level - SHARED);
}

static void link(word_t from, word_t bit, word_t to)
{
    word_t error = cnode_copy(from, bit, 1, ROOT_CNODE, to, 32, RIGHTS_ALL);

    if (error != ERROR_SLOT_OCCUPIED) /* another leaf's way leads through it too */
        require(error, "deep link");
}

word_t deep_space(const word_t *leaves)
{
    word_t nodes = new_slots(NODES);

    for (word_t made = 0; made < NODES; made += AT_ONCE) {
        word_t count = NODES - made < AT_ONCE ? NODES - made : AT_ONCE;

        require(untyped_retype(ROOT_UNTYPED + 1, TYPE_CNODE, 1, ROOT_CNODE, 0, 0,
                               nodes + made, count), "deep nodes");
    }
    for (word_t leaf = 0; leaf < LEAVES; leaf++) {
        word_t last = LEVELS - 1;
        word_t content = leaf == LEAF_ROOT ? nodes : leaves[leaf];

        for (word_t level = 0; level < last; level++)
            link(nodes + node(leaf, level), bit_of(DEEP(leaf), level),
                 nodes + node(leaf, level + 1));
        if (content != 0)
            link(nodes + node(leaf, last), bit_of(DEEP(leaf), last), content);
    }
    return nodes;
}
