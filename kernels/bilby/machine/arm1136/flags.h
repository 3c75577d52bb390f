/* SPDX-License-Identifier: BSD-2-Clause */
/* The bits of cpsr that a user may choose; there are no IT blocks. */
#ifndef BILBY_FLAGS_H
#define BILBY_FLAGS_H

#include <layout.h>

#define MACHINE_CPSR_IT   0u
#define MACHINE_CPSR_USER 0xf80f0220u /* flags, GE, byte order, Thumb */

/* The cpsr before an SVC, from the one after it. */
static inline word_t machine_cpsr_of_svc(word_t cpsr)
{
    return cpsr;
}

#endif
