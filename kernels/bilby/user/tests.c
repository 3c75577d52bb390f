/* SPDX-License-Identifier: BSD-2-Clause */
/* The test suite of the kernel.  tests.elf ends with status 0 if every test holds. */
#include "tests.h"

const struct test *const suite[] = {
    object_tests, ipc_tests, transfer_tests, sched_tests, fault_tests, space_tests,
    vspace_tests, hostile_tests, delete_tests, preempt_tests, share_tests, bound_tests,
    device_tests,
#ifdef TIME_CONTEXTS
    time_tests, order_tests,
#endif
    NULL,
};
