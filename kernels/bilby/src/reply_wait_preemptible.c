/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reply-and-receive with a preemption point between its phases ("To preempt or
 * not to preempt", section 3.3).  The reply is sent once: "replied" turns the call
 * that is made again into a receive, until it is over (thread_end_call).
 */
#include <kernel.h>
#include <lookup.h>
#include <preemption.h>

PREEMPTIBLE void reply_receive(word_t address)
{
    if (!current_thread->replied) {
        (void)cspace_lookup(current_thread, address); /* kept in front of the answer's, for both phases */
        reply_send(current_thread, &current_thread->caller);
        current_thread->replied = 1;
        PREEMPTION_POINT(8);
    }
    lookup_again();
    syscall_receive(address, true);
}
