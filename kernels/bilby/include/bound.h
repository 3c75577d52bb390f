/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests of a bound notification in a receive: shared by syscall.c, poll.c and the fastpath. */
#ifndef BILBY_BOUND_H
#define BILBY_BOUND_H

#include <kernel.h>

static inline struct notification *notification_at(const struct notification *notification)
{
    return (struct notification *)in_window((word_t)notification, sizeof(struct notification));
}

/* The thread's next receive from an endpoint takes a signal. */
static inline bool bound_has_signal(const struct tcb *thread)
{
    return thread->bound != NULL && notification_at(thread->bound)->signalled == 1;
}

#endif
