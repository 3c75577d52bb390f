/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timeouts: a thread whose time is used up tells its handler, as by a fault.
 *
 * The handler's endpoint stands in the thread, so that nothing is looked up.  The timeout comes
 * when the thread would be chosen to run; until then it stays where it is.  So a change of the
 * system's criticality need not look for those who work for less critical threads.
 */
#include <timing.h>

/* It is on time that was donated by a thread that does not count now, and was not told yet. */
static bool is_low_donee(const struct tcb *thread)
{
    const struct context *context = context_at(thread->context);
    const struct tcb *home = context->home;

    return home != NULL && home != thread && !context->excused
        && tcb_at(home)->criticality < system_level;
}

/* Its time is used up, and it was not told yet.  A full context only ends a turn. */
bool timeout_is_used_up(const struct context *context)
{
    return context_is_lacking(context) && !context->told && !context_is_full(context);
}

/* A thread that is about to run is told instead. */
bool timeout_is_due(const struct tcb *thread)
{
    return timeout_has_handler(thread)
        && (timeout_is_used_up(context_at(thread->context)) || is_low_donee(thread));
}
