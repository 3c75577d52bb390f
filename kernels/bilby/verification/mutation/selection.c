/* SPDX-License-Identifier: BSD-2-Clause */
/* The selected fault; a fault of boot is selected before it runs. */
#include <stdlib.h>

#include "selection.h"

unsigned mutant_number, mutant_epoch = 1, mutant_reached[MUTANTS];

__attribute__((constructor)) static void select_fault(void)
{
    const char *number = getenv("BILBY_MUTANT");

    if (number != NULL)
        mutant_number = (unsigned)atoi(number);
}
