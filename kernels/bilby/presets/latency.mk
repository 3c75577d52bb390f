# SPDX-License-Identifier: BSD-2-Clause
# Options that shorten the interrupt response time further: the preset "after",
# and from "To preempt or not to preempt, that is the question" (section 3.3):
include presets/after.mk
REPLY_WAIT := reply_wait_preemptible.c # a preemption point between reply and receive
KERNEL_MAPS := kernel_maps_preemptible.c # ... and one after each 64 bytes of the kernel's mappings
LOOKUP := lookup_kept.c # not from there: one after each address, lookups are kept
