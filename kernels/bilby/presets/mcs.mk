# SPDX-License-Identifier: BSD-2-Clause
# The preset "after", and time as a capability: "Mixed-criticality support in a high-assurance,
# general-purpose microkernel", with a release queue that is a heap and mode switches in constant time.
include presets/after.mk
TIME := time_contexts            # sections 3.1 to 3.5: budgets, contexts, timeouts, criticality
SCHEDULER := sched_contexts.c    # section 4.2: charged where contexts change
READY := ready_levels.c          # section 4.3: a ready queue for each criticality and priority
