/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of untyped.c for the kernel's mappings: kernel_maps_atomic.c. */
#ifndef BILBY_KERNEL_MAPS_H
#define BILBY_KERNEL_MAPS_H

#include <kernel.h>

void kernel_maps_copy(struct page_directory *directory);

/* Before memory is cleared: nothing was begun. */
static inline void kernel_maps_settle(struct slot *untyped, bool is_directory, word_t base)
{
    (void)untyped;
    (void)is_directory;
    (void)base;
}

/* Before a directory is made. */
static inline void kernel_maps_before(struct slot *untyped, word_t base)
{
    (void)untyped;
    (void)base;
}

/* While it is made. */
static inline void kernel_maps_inside(struct page_directory *directory)
{
    kernel_maps_copy(directory);
}

#endif
