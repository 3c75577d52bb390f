/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A red-black tree of threads by their virtual runtimes.  Nodes are in an array of whoever uses it;
 * the tree has their indices.  Node 0 is nobody: the child of every leaf, and black.
 */
#ifndef USER_CFS_TREE_H
#define USER_CFS_TREE_H

#include "contexts.h"

#define TREE_NODES 128 /* with node 0 */

struct node {
    ticks_t key;
    unsigned char parent, child[2]; /* left, right */
    bool red;
};

struct tree {
    struct node nodes[TREE_NODES];
    word_t root, first; /* 0: it is empty; the node with the least key */
};

void tree_insert(struct tree *tree, word_t node, ticks_t key); /* behind those with the same key */
void tree_remove(struct tree *tree, word_t node);
bool tree_is_sound(const struct tree *tree, word_t count); /* so many nodes, by all rules */

#endif
