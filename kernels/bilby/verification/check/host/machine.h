/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of machine/, on the model of caches and TLB in model.c. */
#ifndef BILBY_MACHINE_H
#define BILBY_MACHINE_H

#include <layout.h>

/* Symbols at preemption points are for the analyser of the target's build. */
#define MACHINE_LABEL(name) (void)0

void machine_drain(void);
void machine_clean_line(const volatile void *address);
void machine_clean_and_forget_line(const volatile void *address);
void machine_forget_instructions(void);
void machine_forget_line(const void *address);
void machine_tlb_flush_asid(word_t asid);
void machine_tlb_flush(void);
void machine_switch_space(word_t table_base, word_t asid);
static inline void machine_copy_line(word_t *target, const word_t *source)
{
    for (unsigned i = 0; i < 8; i++)
        target[i] = source[i];
}

void machine_leave_thread(word_t *kept);
void machine_enter_thread(word_t *kept);
word_t machine_data_fault_address(void);
word_t machine_data_fault_status(void);
word_t machine_prefetch_fault_status(void);

#endif
