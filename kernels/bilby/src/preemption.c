/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a call that a preemption point ends (preemption.h). */
#include <timing.h>

/*
 * The call of the current thread ends here, from wherever it is.  The pc goes back onto
 * the SVC: the thread makes the call again when it runs next.
 */
void preempt(void)
{
    thread_call_again(current_thread);
    timing_settle();
    leave_to_interrupt();
}
