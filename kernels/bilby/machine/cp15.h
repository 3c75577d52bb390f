/* SPDX-License-Identifier: BSD-2-Clause */
/* Coprocessor operations that are the same on both cores: included by their machine.h. */
#ifndef BILBY_CP15_H
#define BILBY_CP15_H

#include <layout.h>

/* A global symbol at this place, for the analyser. */
#define MACHINE_LABEL(name) \
    __asm__ volatile(".global " name "\n\t.type " name ", %%notype\n" name ":" : : : "memory")

/* Write the data cache line of this address back to memory. */
static inline void machine_clean_line(const volatile void *address)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c10, 1" : : "r"(address) : "memory");
}

/* The same, and drop it: it is read from memory when it is used next. */
static inline void machine_clean_and_forget_line(const volatile void *address)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c14, 1" : : "r"(address) : "memory");
}

static inline word_t machine_data_fault_address(void)
{
    word_t value;
    __asm__ volatile("mrc p15, 0, %0, c6, c0, 0" : "=r"(value));
    return value;
}

static inline word_t machine_data_fault_status(void)
{
    word_t value;
    __asm__ volatile("mrc p15, 0, %0, c5, c0, 0" : "=r"(value));
    return value;
}

static inline word_t machine_prefetch_fault_status(void)
{
    word_t value;
    __asm__ volatile("mrc p15, 0, %0, c5, c0, 1" : "=r"(value));
    return value;
}

#endif
