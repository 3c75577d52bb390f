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

/* A thread's priority changes. */
static inline void lookup_set_priority(struct tcb *thread, word_t priority)
{
    (void)thread;
    (void)priority;
}

/* A capability changes its slot. */
static inline void lookup_moved(struct cap *cap)
{
    (void)cap;
}

/* No way leads through a capability yet. */
static inline void lookup_pass_none(struct cap *cap)
{
    (void)cap;
}

#endif
