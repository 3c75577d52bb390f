/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_kept.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

/* How often a move of a CNode capability has made lookups of a class invalid. */
extern count_t lookups_lost[LOOKUP_CLASSES];

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);
void lookup_begin(void);        /* a system call begins */
void lookup_first(word_t address);
void lookup_lose(struct cap *node);

static inline word_t lookup_class(word_t priority)
{
    return priority / (PRIORITIES / LOOKUP_CLASSES);
}

/*
 * The call was preempted behind a lookup, and is made again.  Then it takes no fastpath, so that a
 * path from an entry goes through the tests for one or through the operation, not through both.
 */
static inline bool lookup_is_kept(void)
{
    return current_thread->lookups_end != NULL;
}

/* The slot of one of the addresses of capabilities in a thread's message. */
static inline bool lookup_extra(struct tcb *thread, word_t i, struct slot **slots)
{
    struct slot *slot = cspace_lookup(thread, thread->buffer->w[BUFFER_CAPS + i]);

    if (slot == NULL)
        return false;
    slots[i] = slot_at(slot);
    return true;
}

static inline word_t lookup_extras(struct tcb *thread, word_t count, struct slot **slots)
{
    if (count == 0 || !lookup_extra(thread, 0, slots))
        return 0;
    if (count == 1 || !lookup_extra(thread, 1, slots))
        return 1;
    return count == 2 || !lookup_extra(thread, 2, slots) ? 2 : 3;
}

/*
 * The slots of the first addresses of capabilities in a thread's message, and their number up to the
 * first that leads nowhere; there are three at most.  No loop, so that no lookup is in one: a line of
 * code that a loop may need is counted as missing once for each entry to the loop, though the paths
 * that make a lookup end behind it.
 */
static inline bool lookup_row(struct tcb *thread, word_t count, struct slot **slots, word_t *found)
{
    *found = lookup_extras(thread, count, slots);
    return true;
}

/* The second phase of a call begins; its lookups replace the kept ones of the first. */
static inline void lookup_again(void)
{
    current_thread->lookups_next = current_thread->lookups;
}

/* A thread's call is over, or will not be made again. */
static inline void lookup_end(struct tcb *thread)
{
    thread->lookups_end = NULL;
}

/* A thread's priority changes: its kept lookups are valid for the class in which they were made. */
static inline void lookup_set_priority(struct tcb *thread, word_t priority)
{
    lookup_end(thread);
    thread->lookups_class = lookup_class(priority);
}

/* A capability changes its slot. */
static inline void lookup_moved(struct cap *cap)
{
    if (cap_type(cap) == CAP_CNODE && cnode_cap_passed(cap) != 0)
        lookup_lose(cap);
}

/* No way leads through a capability yet: it is a copy, or moves. */
static inline void lookup_pass_none(struct cap *cap)
{
    if (cap_type(cap) == CAP_CNODE)
        cnode_cap_set_passed(cap, 0);
}

#endif
