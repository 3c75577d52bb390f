/* SPDX-License-Identifier: BSD-2-Clause */
/* The records that abort_preemptible.c makes of an abort, in abort_record_preemptible.c. */
#ifndef BILBY_ABORT_RECORD_H
#define BILBY_ABORT_RECORD_H

#include <kernel.h>

void abort_own(void *object, word_t type);
void abort_finish(struct endpoint *endpoint);

#endif
