/* SPDX-License-Identifier: BSD-2-Clause */
/* How addresses are looked up: lookup_direct.c. */
#ifndef BILBY_LOOKUP_H
#define BILBY_LOOKUP_H

#include <kernel.h>

struct slot *lookup_find(const struct cap *root, word_t address, word_t bits);

/* The call was preempted, and is made again. */
static inline bool lookup_is_kept(void)
{
    return false;
}

/* A call that is not made again needs this address first. */
static inline void lookup_first(word_t address)
{
    (void)address;
}

/* The addresses of capabilities in a thread's message are looked up one by one by whoever needs them. */
static inline bool lookup_row(struct tcb *thread, word_t count, struct slot **slots, word_t *found)
{
    (void)thread;
    (void)count;
    (void)slots;
    (void)found;
    return false;
}

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
