/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See cfs_tree.h.  The algorithms are from Cormen, Leiserson, Rivest and Stein; node 0 is their
 * sentinel, whose parent is written, too.  "side" is 0 for left and 1 for right.
 */
#include "cfs_tree.h"

static struct node *at(struct tree *tree, word_t node)
{
    return &tree->nodes[node];
}

static word_t side_of(struct tree *tree, word_t node)
{
    return at(tree, at(tree, node)->parent)->child[1] == node;
}

/* "other" stands where "node" stood. */
static void replace(struct tree *tree, word_t node, word_t other)
{
    word_t parent = at(tree, node)->parent;

    if (parent == 0)
        tree->root = other;
    else
        at(tree, parent)->child[side_of(tree, node)] = (unsigned char)other;
    at(tree, other)->parent = (unsigned char)parent;
}

/* The node goes down to this side; its child of the other side comes up. */
static void rotate(struct tree *tree, word_t node, word_t side)
{
    word_t up = at(tree, node)->child[!side];
    word_t inner = at(tree, up)->child[side];

    at(tree, node)->child[!side] = (unsigned char)inner;
    if (inner != 0)
        at(tree, inner)->parent = (unsigned char)node;
    replace(tree, node, up);
    at(tree, up)->child[side] = (unsigned char)node;
    at(tree, node)->parent = (unsigned char)up;
}

/* A red node may have a red parent: nowhere else is a rule broken. */
static void mend_insertion(struct tree *tree, word_t node)
{
    while (at(tree, at(tree, node)->parent)->red) {
        word_t parent = at(tree, node)->parent;
        word_t grandparent = at(tree, parent)->parent;
        word_t side = side_of(tree, parent);
        word_t uncle = at(tree, grandparent)->child[!side];

        if (at(tree, uncle)->red) {
            at(tree, parent)->red = false;
            at(tree, uncle)->red = false;
            at(tree, grandparent)->red = true;
            node = grandparent;
            continue;
        }
        if (side_of(tree, node) != side) {
            rotate(tree, parent, side);
            parent = node;
        }
        at(tree, parent)->red = false;
        at(tree, grandparent)->red = true;
        rotate(tree, grandparent, !side);
        break;
    }
    at(tree, tree->root)->red = false;
}

void tree_insert(struct tree *tree, word_t node, ticks_t key)
{
    word_t parent = 0, side = 0;
    bool is_first = true;

    for (word_t below = tree->root; below != 0; below = at(tree, parent)->child[side]) {
        parent = below;
        side = key >= at(tree, parent)->key;
        is_first = is_first && side == 0;
    }
    *at(tree, node) = (struct node){ key, (unsigned char)parent, { 0, 0 }, true };
    if (parent == 0)
        tree->root = node;
    else
        at(tree, parent)->child[side] = (unsigned char)node;
    if (is_first)
        tree->first = node;
    mend_insertion(tree, node);
}

static word_t leftmost(struct tree *tree, word_t node)
{
    while (at(tree, node)->child[0] != 0)
        node = at(tree, node)->child[0];
    return node;
}

/* The node lacks a black one above it, and is black; or it is red, and becomes black. */
static void mend_removal(struct tree *tree, word_t node)
{
    while (node != tree->root && !at(tree, node)->red) {
        word_t parent = at(tree, node)->parent;
        word_t side = side_of(tree, node);
        word_t sibling = at(tree, parent)->child[!side];

        if (at(tree, sibling)->red) {
            at(tree, sibling)->red = false;
            at(tree, parent)->red = true;
            rotate(tree, parent, side);
            sibling = at(tree, parent)->child[!side];
        }
        if (!at(tree, at(tree, sibling)->child[0])->red
            && !at(tree, at(tree, sibling)->child[1])->red) {
            at(tree, sibling)->red = true;
            node = parent;
            continue;
        }
        if (!at(tree, at(tree, sibling)->child[!side])->red) {
            at(tree, at(tree, sibling)->child[side])->red = false;
            at(tree, sibling)->red = true;
            rotate(tree, sibling, !side);
            sibling = at(tree, parent)->child[!side];
        }
        at(tree, sibling)->red = at(tree, parent)->red;
        at(tree, parent)->red = false;
        at(tree, at(tree, sibling)->child[!side])->red = false;
        rotate(tree, parent, side);
        break;
    }
    at(tree, node)->red = false;
}

/* With a child on each side its successor takes its place and its colour. */
static bool remove_inner(struct tree *tree, word_t node, word_t *mend)
{
    word_t next = leftmost(tree, at(tree, node)->child[1]);
    bool was_red = at(tree, next)->red;

    *mend = at(tree, next)->child[1];
    if (at(tree, next)->parent == node) {
        at(tree, *mend)->parent = (unsigned char)next;
    } else {
        replace(tree, next, *mend);
        at(tree, next)->child[1] = at(tree, node)->child[1];
        at(tree, at(tree, next)->child[1])->parent = (unsigned char)next;
    }
    replace(tree, node, next);
    at(tree, next)->child[0] = at(tree, node)->child[0];
    at(tree, at(tree, next)->child[0])->parent = (unsigned char)next;
    at(tree, next)->red = at(tree, node)->red;
    return was_red;
}

/* The first one has no left child: the next one is the least at its right, or its parent. */
static word_t second(struct tree *tree)
{
    word_t right = at(tree, tree->first)->child[1];

    return right != 0 ? leftmost(tree, right) : at(tree, tree->first)->parent;
}

void tree_remove(struct tree *tree, word_t node)
{
    const struct node *old = at(tree, node);
    bool was_red = old->red;
    word_t mend;

    if (tree->first == node)
        tree->first = second(tree);
    if (old->child[0] != 0 && old->child[1] != 0) {
        was_red = remove_inner(tree, node, &mend);
    } else {
        mend = old->child[old->child[0] == 0];
        replace(tree, node, mend);
    }
    if (!was_red)
        mend_removal(tree, mend);
    at(tree, 0)->red = false;
}

/* ---- the rules ------------------------------------------------------------------------------- */

#define BROKEN 1000u

/* The black nodes on each path below; BROKEN or more if a rule is.  "seen" counts the nodes. */
static word_t black_height(const struct tree *tree, word_t index, word_t depth, word_t *seen)
{
    const struct node *node = &tree->nodes[index];
    word_t height[2];

    if (index == 0)
        return node->red ? BROKEN : 0;
    if (depth > TREE_NODES || ++*seen > TREE_NODES)
        return BROKEN;
    for (word_t side = 0; side < 2; side++) {
        const struct node *child = &tree->nodes[node->child[side]];

        height[side] = black_height(tree, node->child[side], depth + 1, seen);
        if (height[side] >= BROKEN)
            return BROKEN;
        if (node->child[side] == 0)
            continue;
        if (child->parent != index || (node->red && child->red))
            return BROKEN;
        if (side == 0 ? child->key > node->key : child->key < node->key)
            return BROKEN;
    }
    return height[0] == height[1] ? height[0] + !node->red : BROKEN;
}

/* Each node's children are in order; that all below them are is seen by walking in order. */
static bool is_in_order(const struct tree *tree, word_t index, ticks_t *last)
{
    const struct node *node = &tree->nodes[index];

    if (index == 0)
        return true;
    if (!is_in_order(tree, node->child[0], last) || node->key < *last)
        return false;
    *last = node->key;
    return is_in_order(tree, node->child[1], last);
}

bool tree_is_sound(const struct tree *tree, word_t count)
{
    word_t seen = 0, first = tree->root;
    ticks_t last = 0;

    while (tree->nodes[first].child[0] != 0 && first != 0)
        first = tree->nodes[first].child[0];
    return !tree->nodes[tree->root].red && tree->first == first
        && black_height(tree, tree->root, 0, &seen) < BROKEN && seen == count
        && is_in_order(tree, tree->root, &last);
}
