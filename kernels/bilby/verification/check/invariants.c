/* SPDX-License-Identifier: BSD-2-Clause */
/* All invariants, in the order of section 2.2. */
#include "invariants.h"

void check_invariants(void)
{
    universe_find();
    check_lists();
    check_memory();
    check_devices();
    check_scheduler();
    check_waiting();
    check_time();
    check_spaces();
    check_caps();
    check_deletion();
    check_lookups();
}
