/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The release queue: contexts whose threads would run, had they time.  A heap in which each entry
 * is before four others, so the steps of an operation are bounded by the number of levels, not of
 * threads.  The four that are compared stand in two cache lines.
 *
 * Invariants: the context of entry i names i + 1 as its place; it is due at the entry's time, no
 * earlier than entry (i-1)/4. A context that is in no entry names 0. There are as many places as
 * contexts can be bound.  An entry without a context is cleared, as due last of all.
 */
#include <timing.h>

struct release_entry {
    count_t earliness; /* the complement of due_at: more is earlier */
    struct context *context;
    word_t unused;
};
struct release_group { struct release_entry child[RELEASE_CHILDREN]; };

/* The last of the first group is entry 0; then come the four below each entry. */
static struct release_group release_groups[RELEASE_PLACES / RELEASE_CHILDREN + 1]
    __attribute__((aligned(sizeof(struct release_group))));
static word_t release_count;

/* The four below an entry. */
static struct release_group *below(word_t index)
{
    return (struct release_group *)in_window((word_t)&release_groups[index + 1],
                                             sizeof(struct release_group));
}

static struct release_entry *entry(word_t index)
{
    word_t place = (index + RELEASE_CHILDREN - 1) % (RELEASE_PLACES + RELEASE_CHILDREN);

    return (struct release_entry *)in_window((word_t)&release_groups[0].child[0] + 16 * place,
                                             sizeof(struct release_entry));
}

static void put(struct release_entry *hole, word_t index, struct context *context, count_t earliness)
{
    READ_LINE(&hole->context);
    hole->earliness = earliness;
    hole->context = context;
    context->place = index + 1;
}

/* Into the hole at an index, or above it. */
static void sift_up(word_t index, struct context *context, count_t earliness)
{
    /* bound: RELEASE_LEVELS + 1 */
    for (word_t level = RELEASE_LEVELS; level != 0; level--) {
        word_t parent = (index - 1) / RELEASE_CHILDREN;
        const struct release_entry *above = entry(parent);

        if (index == 0 || above->earliness >= earliness)
            break;
        put(entry(index), index, context_at(above->context), above->earliness);
        index = parent;
    }
    put(entry(index), index, context, earliness);
}

/* The first of the four that is not later than another. */
static word_t earliest(const struct release_group *group)
{
    word_t found = 0;
    count_t most = group->child[0].earliness;

    if (group->child[1].earliness > most) {
        found = 1;
        most = group->child[1].earliness;
    }
    if (group->child[2].earliness > most) {
        found = 2;
        most = group->child[2].earliness;
    }
    return group->child[3].earliness > most ? 3 : found;
}

/* Into the hole at an index, or below it. */
static void sift_down(word_t index, struct context *context, count_t earliness)
{
    /* bound: RELEASE_LEVELS + 1 */
    for (word_t level = RELEASE_LEVELS; level != 0 && index < RELEASE_PLACES / RELEASE_CHILDREN;
         level--) {
        const struct release_group *group = below(index);
        word_t child = earliest(group);
        const struct release_entry *found = &group->child[child];

        if (found->earliness <= earliness)
            break;
        put(entry(index), index, context_at(found->context), found->earliness);
        index = RELEASE_CHILDREN * index + 1 + child;
    }
    put(entry(index), index, context, earliness);
}

/* It waits until its due amount returns. */
void release_insert(struct context *context)
{
    alarm_is_old = true;
    sift_up(release_count++, context, ~context->due_at);
}

/* It waits no more. */
void release_remove(struct context *context)
{
    word_t index = context->place - 1;
    struct release_entry *last = entry(--release_count);
    struct context *moved = last->context;
    count_t earliness = last->earliness;

    alarm_is_old = true;
    context->place = 0;
    last->earliness = 0;
    last->context = NULL;
    if (moved == context)
        return;
    moved = context_at(moved);
    if (index != 0 && entry((index - 1) / RELEASE_CHILDREN)->earliness < earliness)
        sift_up(index, moved, earliness);
    else
        sift_down(index, moved, earliness);
}

/* When the first is due; as late as can be if nobody waits. */
count_t release_next_due(void)
{
    return ~release_groups[0].child[RELEASE_CHILDREN - 1].earliness;
}

/* Who is due next; somebody is. */
struct context *release_first(void)
{
    return context_at(release_groups[0].child[RELEASE_CHILDREN - 1].context);
}
