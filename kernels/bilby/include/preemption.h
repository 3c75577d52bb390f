/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preemption points.
 *
 * PREEMPTION_POINT(number) ends the system call if an interrupt is pending, and does not
 * return: preempt() moves the pc back onto the SVC, and entry.S drops the stack and
 * goes to the interrupt handler.  The thread makes the same call again when it
 * runs next, and decoding starts from scratch.
 *
 * Rules of every point: the invariants of all files hold, those listed in the
 * guide included; the object that is worked on says how far the work has got; and
 * something was done since the call began, so that an interrupt at every point of
 * every attempt still lets it finish.
 *
 * Each number is used once.  Two symbols surround the test, for the analyser:
 * preemption_point_N, where a path ends if an interrupt is pending, and
 * preemption_start_N, where one begins if it arrives just after the test.
 */
#ifndef BILBY_PREEMPTION_H
#define BILBY_PREEMPTION_H

#include <kernel.h>
#include <interrupts.h>
#include <machine.h>

#define PREEMPTION_POINT(number) __extension__({ \
    MACHINE_LABEL("preemption_point_" #number); \
    if (interrupts_pending()) \
        preempt(); \
    MACHINE_LABEL("preemption_start_" #number); \
})

/* No copies of the function: its symbols are unique. */
#define PREEMPTIBLE __attribute__((noinline, noclone))

#endif
