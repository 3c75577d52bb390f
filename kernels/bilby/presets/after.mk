# SPDX-License-Identifier: BSD-2-Clause
# After the changes of "Improving interrupt response time in a verifiable
# protected microkernel" (EuroSys 2012).  One line per choice: the file that
# makes it.
SCHEDULER := sched_benno.c   # sections 3.1 and 3.2: Benno scheduling, bitmap
VSPACE := vspace_shadow.c    # section 3.6: shadow page tables
