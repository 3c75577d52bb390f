/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of untyped.c for the kernel's mappings: kernel_maps_preemptible.c. */
#ifndef BILBY_KERNEL_MAPS_H
#define BILBY_KERNEL_MAPS_H

#include <kernel.h>

void kernel_maps_copy(struct page_directory *directory);
void kernel_maps_settle(struct slot *untyped, bool is_directory, word_t base);
void kernel_maps_before(struct slot *untyped, word_t base);
void kernel_maps_inside(struct page_directory *directory);

#endif
