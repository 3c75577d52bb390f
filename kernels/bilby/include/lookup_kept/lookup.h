/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_kept.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

/* How often a move of a CNode capability has made lookups of a class invalid. */
extern count_t lookups_lost[LOOKUP_CLASSES];

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);
void lookup_begin(void);        /* a system call begins */
void lookup_lose(struct cap *node);

static inline word_t lookup_class(word_t priority)
{
    return priority / (PRIORITIES / LOOKUP_CLASSES);
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
