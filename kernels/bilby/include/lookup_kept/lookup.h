/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_kept.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

extern count_t cnodes_moved;    /* how often a CNode capability has changed its slot */
extern word_t lookup_position;  /* the next lookup of this call, or phase of it */

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);

/* A system call begins, or its second phase. */
static inline void lookup_begin(void)
{
    lookup_position = 0;
}

/* A thread's call is over, or will not be made again. */
static inline void lookup_end(struct tcb *thread)
{
    thread->lookups_kept = 0;
}

/* A capability changes its slot. */
static inline void lookup_moved(const struct cap *cap)
{
    if (cap_type(cap) == CAP_CNODE)
        cnodes_moved++;
}

#endif
