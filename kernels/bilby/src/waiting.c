/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread leaves the queue in which it waits, wherever it stands.  Constant time. */
#include <endpoint_queue.h>

/* A thread that waits to send or to receive does so no more. */
void endpoint_cancel(struct tcb *thread)
{
    struct endpoint *endpoint = thread->waits_on;

    abort_mend(endpoint, thread);
    endpoint_unlink(endpoint, thread);
}

/* Take a waiting thread out of the queue. */
void notification_cancel(struct tcb *thread)
{
    struct notification *notification = thread->waits_on;

    notification_cut(notification, thread);
    thread->waits_on = NULL;
}
