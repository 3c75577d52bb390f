/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The maintenance operations of the Cortex-A8: caches, TLB, barriers, fault registers.  The same
 * functions as for the ARM1136, with these differences:
 *
 * Lines have 64 bytes.  The kernel maintains in steps of LINE_BYTES (32), so each line is
 * maintained twice: never too little.
 *
 * Table walks do not look into the L1 data cache.  Whether they look into L2
 * depends on TTBR bits that a boot loader may have left otherwise, so a line is
 * cleaned to memory and not just to the point of unification.
 *
 * The instruction cache is indexed by virtual address and a way has 8 KiB, two
 * pages: invalidating by a window address would miss the lines of a user address
 * with another bit 12.  So the whole instruction cache is invalidated once, before memory that
 * nobody can fetch from any more is cleared, and then the cleared lines are cleaned one by one.
 *
 * CP15 maintenance is complete only after a DSB, and seen by this core's fetches
 * only after an ISB.
 */
#ifndef BILBY_MACHINE_H
#define BILBY_MACHINE_H

#include <cp15.h>
#include <layout.h>

/* Wait until earlier writes and cache operations have reached memory. */
static inline void machine_drain(void)
{
    __asm__ volatile("dsb" : : : "memory");
}

/* Later instructions see the effects of earlier CP15 operations. */
static inline void machine_synchronise(void)
{
    __asm__ volatile("isb" : : : "memory");
}

/* Drop all cached and prefetched instructions. */
static inline void machine_forget_instructions(void)
{
    __asm__ volatile("mcr p15, 0, %0, c7, c5, 0" : : "r"(0) : "memory");
    machine_drain();
    machine_synchronise();
}

/* Drop the translations of one address space number. */
static inline void machine_tlb_flush_asid(word_t asid)
{
    __asm__ volatile("mcr p15, 0, %0, c8, c7, 2" : : "r"(asid) : "memory");
    machine_drain();
    machine_synchronise();
}

static inline void machine_tlb_flush(void)
{
    __asm__ volatile("mcr p15, 0, %0, c8, c7, 0" : : "r"(0) : "memory");
    machine_drain();
    machine_synchronise();
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
    machine_synchronise();
    __asm__ volatile("mcr p15, 0, %0, c2, c0, 0" : : "r"(table_base) : "memory");
    machine_synchronise();
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 1" : : "r"(asid) : "memory");
    machine_synchronise();
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

/* A thread runs no more: keep its thread register (TPIDRURW). */
static inline void machine_leave_thread(word_t *kept)
{
    __asm__ volatile("mrc p15, 0, %0, c13, c0, 2" : "=r"(*kept));
}

/* A thread begins to run, with its own thread register, and no exclusive reservation of the one before. */
static inline void machine_enter_thread(const word_t *kept)
{
    __asm__ volatile("clrex" : : : "memory");
    __asm__ volatile("mcr p15, 0, %0, c13, c0, 2" : : "r"(*kept));
}

#endif
