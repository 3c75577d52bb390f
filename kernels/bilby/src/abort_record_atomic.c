/* SPDX-License-Identifier: BSD-2-Clause */
/* Aborts are atomic: nothing has to be recorded of them, except that an object is closed. */
#include <kernel.h>

/* An object is closed for one call only: nobody has to know the closing thread. */
void abort_claim_endpoint(struct endpoint *endpoint, bool recycle)
{
    (void)endpoint;
    (void)recycle;
}

void abort_claim_notification(struct notification *notification, bool recycle)
{
    (void)recycle;
    notification->pending = 0;
}

/* A thread leaves the queue: no abort is ever under way then. */
void abort_mend(struct endpoint *endpoint, const struct tcb *leaving)
{
    (void)endpoint;
    (void)leaving;
}

/* No thread ever comes back to an abort that it began. */
void abort_forget(struct tcb *thread)
{
    (void)thread;
}
