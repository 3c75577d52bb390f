/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of every call. */
#include <lookup.h>

/* Its call is over, or will not be made again: forget its aborts, lookups and answer. */
void thread_end_call(struct tcb *thread)
{
    abort_forget(thread);
    lookup_end(thread);
    thread->replied = 0;
}
