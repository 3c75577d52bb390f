/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every directory has the kernel's mappings, 1 KiB of descriptors: copied in one go
 * while a directory is made.
 */
#include <kernel.h>
#include <kernel_maps.h>
#include <machine.h>

/* Give a cleared directory the kernel's mappings, a line at a time. */
void kernel_maps_copy(struct page_directory *directory)
{
    const word_t *from = &kernel_directory.descriptor[4096 - KERNEL_DESCRIPTORS];
    word_t *to = &directory->descriptor[4096 - KERNEL_DESCRIPTORS];

    /* bound: KERNEL_DESCRIPTOR_LINES + 1 */
    for (word_t i = 0; i < KERNEL_DESCRIPTOR_LINES; i++) {
        to = (word_t *)in_window((word_t)to, LINE_BYTES);
        machine_copy_line(to, from);
        machine_clean_line(to);
        to += LINE_BYTES / 4;
        from += LINE_BYTES / 4;
    }
    machine_drain();
}
