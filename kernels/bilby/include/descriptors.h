/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors of a mapping in a table or a directory: for vspace_*.c.  A 64 KiB or
 * 16 MiB frame has 16 equal ones.
 */
#ifndef BILBY_DESCRIPTORS_H
#define BILBY_DESCRIPTORS_H

#include <kernel.h>
#include <machine.h>
#include <vspace.h>

static inline bool is_in_table(word_t size)
{
    return size == SIZE_4K || size == SIZE_64K;
}

static inline word_t descriptor_count(word_t size)
{
    return size == SIZE_64K || size == SIZE_16M ? LARGE_DESCRIPTORS : 1;
}

/* All descriptors of a mapping are free. */
static inline bool all_free(const word_t *entry, word_t size)
{
    word_t count = descriptor_count(size);

    /* bound: LARGE_DESCRIPTORS + 1 */
    for (word_t i = 0; i < count; i++)
        if (entry[i] != 0)
            return false;
    return true;
}

static inline bool is_table(word_t descriptor)
{
    return (descriptor & DESCRIPTOR_TYPE) == DIRECTORY_TABLE;
}

/* The page table that a descriptor of a directory points to. */
static inline struct page_table *table_at(word_t descriptor)
{
    return (struct page_table *)to_window(descriptor & ~0x3ffu);
}

static inline void write_descriptors(word_t *entry, word_t descriptor, word_t size)
{
    word_t count = descriptor_count(size);

    /* bound: LARGE_DESCRIPTORS + 1 */
    for (word_t i = 0; i < count; i++)
        entry[i] = descriptor;
    machine_clean_line(entry);
    machine_clean_line(entry + count - 1);
    machine_drain();
}

#endif
