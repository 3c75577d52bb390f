# SPDX-License-Identifier: BSD-2-Clause
# After the changes of "Improving interrupt response time in a verifiable
# protected microkernel" (EuroSys 2012).  One line per choice: the file that
# makes it.
SCHEDULER := sched_benno.c       # section 3.1: only runnable threads are queued
READY := ready_bitmap.c          # section 3.2: two loads and two CLZ find the highest
ABORT := abort_preemptible.c     # sections 3.3, 3.4: endpoints deleted, badges aborted, thread by thread
CLEAR := clear_first.c           # section 3.5: memory cleared first, chunk by chunk
VSPACE := vspace_shadow.c        # section 3.6: shadow page tables
KERNEL_MAPS := kernel_maps_atomic.c # a directory gets the kernel's mappings in one go
REPLY_WAIT := reply_wait_atomic.c # reply-and-receive is atomic
LOOKUP := lookup_direct.c         # addresses are looked up without a pause
TIME := time_slices              # a tick ends each slice of time
