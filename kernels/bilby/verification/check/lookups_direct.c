/* SPDX-License-Identifier: BSD-2-Clause */
/* No lookup is kept (lookup_direct.c). */
#include "invariants.h"

void check_lookups(void)
{
}

void check_no_lookups(const struct tcb *thread)
{
    (void)thread;
}

bool is_kept_lookup(const struct list *threads, word_t address)
{
    (void)threads;
    (void)address;
    return false;
}

void lookups_unmark(void)
{
}

word_t lookups_kept(void)
{
    return 0;
}
