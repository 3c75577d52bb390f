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

/* A thread will not make its call again. */
static inline void lookup_suspended(struct tcb *thread)
{
    (void)thread;
}

/* A capability leaves its slot. */
static inline void lookup_forget(const struct cap *cap)
{
    (void)cap;
}

#endif
