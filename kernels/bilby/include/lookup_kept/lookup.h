/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_kept.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

extern count_t cnodes_moved;    /* how often a CNode capability has changed its slot */

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);
void lookup_begin(void);        /* a system call begins */

/* Its second phase begins, whose lookups are kept instead of those of the first. */
static inline void lookup_again(void)
{
    current_thread->lookups_next = current_thread->lookups;
}

/* A thread's call is over, or will not be made again. */
static inline void lookup_end(struct tcb *thread)
{
    thread->lookups_end = NULL;
}

/* A capability changes its slot. */
static inline void lookup_moved(const struct cap *cap)
{
    if (cap_type(cap) == CAP_CNODE)
        cnodes_moved++;
}

#endif
