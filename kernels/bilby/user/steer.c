/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls, faults and interrupts that take as long as they can: their replays are compared
 * with the bounds (docs/validation.md).
 */
#include "steer.h"

const struct test *const suite[] = { message_tests, creation_tests, deletion_tests, interrupt_tests,
    NULL };
