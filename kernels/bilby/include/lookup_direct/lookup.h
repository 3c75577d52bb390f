/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_direct.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);

/* A system call begins, or its second phase. */
static inline void lookup_begin(void)
{
}

/* A thread's call is over, or will not be made again. */
static inline void lookup_end(struct tcb *thread)
{
    (void)thread;
}

/* A capability changes its slot. */
static inline void lookup_moved(const struct cap *cap)
{
    (void)cap;
}

#endif
