/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a call: what every one of them leaves. */
#include <lookup.h>

/* Its call is over, or will not be made again: what it has begun, kept or was told of is forgotten. */
void thread_end_call(struct tcb *thread)
{
    abort_forget(thread);
    lookup_end(thread);
    thread->replied = 0;
}
