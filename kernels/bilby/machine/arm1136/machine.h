/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The maintenance operations of the ARM1136 (r0p4, r1p3): caches, TLB, barriers, fault registers.  Each
 * function is one coprocessor operation, except where a comment says otherwise.
 *
 * Table walks do not look into the data cache: a descriptor is cleaned to memory
 * (machine_clean_line, then machine_drain) before it may be walked.  Instruction fetches do not
 * either: cleared memory is cleaned, and cached instructions are dropped before the memory is used
 * again.
 */
#ifndef BILBY_MACHINE_H
#define BILBY_MACHINE_H

#include <stdbool.h>

#include <cp15.h>
#include <layout.h>

#define MACHINE_VARIANT 0x00f00000u /* of the main ID register: n of revision rn */

/* Wait until earlier writes and cache operations have reached memory. */
static inline void machine_drain(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c10, 4" : : "r"(0) : "memory");
}

/* Forget prefetched instructions, so that the next is fetched anew. */
static inline void machine_flush_prefetch(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c5, 4" : : "r"(0) : "memory");
}

/*
 * Drop all cached instructions.  Four times: on early revisions one operation may
 * leave lines behind (ARM's erratum 411920); interrupts are masked throughout.
 */
static inline void machine_forget_instructions(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c5, 0\n\tmcr p15, 0, %0, c7, c5, 0\n\t"
                     "mcr p15, 0, %0, c7, c5, 0\n\tmcr p15, 0, %0, c7, c5, 0\n\t"
                     "nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop"
                     : : "r"(0) : "memory");
}

/* Drop the cached instructions of the line of this address. */
static inline void machine_forget_line(const void *address)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c5, 1" : : "r"(address) : "memory");
}

/* Drop the translations of one address space number. */
static inline void machine_tlb_flush_asid(word_t asid)
{
    __asm__ volatile("mcr p15, 0, %0, c8, c7, 2" : : "r"(asid) : "memory");
}

static inline void machine_tlb_flush(void)
{
    __asm__ volatile("mcr p15, 0, %0, c8, c7, 0" : : "r"(0) : "memory");
}

/*
 * Change the address space.  Between the two writes the number is 0, which no
 * user space has, so that no walk of one space can enter the TLB under the
 * number of another; fetches of the kernel hit global entries throughout.
 */
static inline void machine_switch_space(word_t table_base, word_t asid)
{
    machine_drain();
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 1" : : "r"(0) : "memory");
    machine_flush_prefetch();
    __asm__ volatile("mcr p15, 0, %0, c2, c0, 0" : : "r"(table_base) : "memory");
    machine_flush_prefetch();
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 1" : : "r"(asid) : "memory");
    machine_flush_prefetch();
}

/*
 * Copy a cache line.  Its words are all in registers at once, and the target is read
 * first, so that it is in the cache when it is written.
 */
static inline void machine_copy_line(word_t *target, const word_t *source)
{
    __asm__ volatile("ldmia %0, {r3-r8, r10, r11}\n\tldr %0, [%1]\n\tstmia %1, {r3-r8, r10, r11}"
                     : "+r"(source) : "r"(target)
                     : "r3", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "memory");
}

/*
 * A thread runs no more: keep its thread register (TPIDRURW).  Chips of revision r1 have one, chips of
 * r0 have none; the main ID register says which this is.
 */
static inline void machine_leave_thread(word_t *kept)
{
    word_t value;
    __asm__ volatile("mrc p15, 0, %0, c0, c0, 0\n\ttst %0, %2\n\t"
                     "mrcne p15, 0, %0, c13, c0, 2\n\tstrne %0, %1"
                     : "=&r"(value), "+m"(*kept) : "i"(MACHINE_VARIANT) : "cc");
}

/*
 * A thread begins to run, with its own thread register, and with no exclusive reservation of the one
 * before: a store, which may fail, takes it away and changes nothing.
 */
static inline void machine_enter_thread(word_t *kept)
{
    word_t value = *kept, scratch;
    __asm__ volatile("strex %0, %1, [%2]\n\tmrc p15, 0, %0, c0, c0, 0\n\ttst %0, %3\n\t"
                     "mcrne p15, 0, %1, c13, c0, 2"
                     : "=&r"(scratch) : "r"(value), "r"(kept), "i"(MACHINE_VARIANT) : "cc", "memory");
}

#endif
