# SPDX-License-Identifier: BSD-2-Clause
# Before the changes of "Improving interrupt response time in a verifiable
# protected microkernel" (EuroSys 2012): the kernel of 2011.
SCHEDULER := sched_lazy.c        # section 3.1: threads that block stay queued until they are met
READY := ready_scan.c            # section 3.2: the highest queue is found by looking at each
ABORT := abort_atomic.c          # sections 3.3, 3.4: all waiting threads in one go
CLEAR := clear_inside.c          # section 3.5: each object cleared where it is made
VSPACE := vspace_asid.c          # section 3.6: address spaces have numbers, out of pools
KERNEL_MAPS := kernel_maps_atomic.c # a directory gets the kernel's mappings in one go
REPLY_WAIT := reply_wait_atomic.c # reply-and-receive is atomic
LOOKUP := lookup_direct.c         # addresses are looked up without a pause
TIME := time_slices              # a tick ends each slice of time
