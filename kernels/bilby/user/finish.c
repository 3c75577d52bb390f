/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a suite: the status for whoever started QEMU. */
#include "tests.h"

_Noreturn void finish(word_t failed)
{
    exit_program(failed != 0);
}
