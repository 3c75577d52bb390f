/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's global variables, other than those private to one file. */
#include <kernel.h>

struct tcb *current_saved WITH_CURRENT;
struct tcb idle_thread __attribute__((aligned(sizeof(struct tcb))));
struct slot irq_slots[IRQ_LINES] __attribute__((aligned(32)));
struct page_directory kernel_directory __attribute__((aligned(32768), section(".bss.directory")));
word_t vector_table[256] __attribute__((aligned(1024)));
word_t device_table[256] __attribute__((aligned(1024)));
