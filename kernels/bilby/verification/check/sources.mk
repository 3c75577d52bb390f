# SPDX-License-Identifier: BSD-2-Clause
# The invariants, for the host build and for kernels that check themselves.  Needs
# KERNEL_SOURCES and LAYOUT.
CHECK_VSPACE = $(basename $(filter vspace_%.c,$(KERNEL_SOURCES)))
CHECK_TIME = $(if $(filter context.c,$(KERNEL_SOURCES)),time_contexts,time_slices)
CHECK_SOURCES = invariants.c universe.c lists.c memory.c devices.c scheduler.c waiting.c \
	$(CHECK_VSPACE:vspace_%=spaces_%.c) caps.c deletion.c \
	$(patsubst lookup_%,lookups_%,$(filter lookup_%.c,$(KERNEL_SOURCES))) $(CHECK_TIME).c
CHECK_DEFINES = $(if $(filter time_contexts,$(CHECK_TIME)),-DTIME_CONTEXTS) $(if $(findstring abort_preemptible,$(LAYOUT)),-DLAYOUT_HAS_ABORT) \
	$(if $(findstring sched_lazy,$(KERNEL_SOURCES)),-DSCHEDULER_LAZY) \
	-DREPLY_WAIT_ATOMIC=$(if $(filter reply_wait_atomic.c,$(KERNEL_SOURCES)),1,0)

# Variables that the kernel's files keep to themselves, and the invariants read.
CHECK_PRIVATE := ready ready_bits ready_words woken owner last_asid transit next_owner asid_pools root_slots \
	release_groups release_count

HANDLERS := handle_syscall handle_interrupt handle_undefined handle_prefetch_abort handle_data_abort
