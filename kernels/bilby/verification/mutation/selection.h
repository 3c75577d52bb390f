/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All faults are in one host build, and one number says which of them is there: 0 for none.
 * Each notes when it was last reached, since "mutant_epoch" was set.
 */
#ifndef MUTATION_SELECTION_H
#define MUTATION_SELECTION_H

extern unsigned mutant_number, mutant_epoch, mutant_reached[];

static inline int mutant_is(unsigned number)
{
    mutant_reached[number] = mutant_epoch;
    return number == mutant_number;
}

#endif
