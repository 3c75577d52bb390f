/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces with shadow tables.
 *
 * Beside each descriptor, at a fixed distance, stands the slot of the capability
 * that is mapped there; the capability has the address of the descriptor.  A
 * page table has the address of the directory entry that holds it, one nibble in
 * each of its first eight shadow words.
 *
 * Invariants: descriptor != 0 => its shadow (of a 16-fold mapping: the shadow of
 * the first) names a slot whose capability maps exactly that; no descriptor is
 * dirty in the data cache when it can be walked.
 */
#include <kernel.h>
#include <machine.h>
#include <vspace.h>

#define PAGE_TABLE_WORDS     256
#define PAGE_DIRECTORY_WORDS 4096
#define SLOT_BITS            (~0xfu)

/* The address of the directory entry that holds a table; 0 if it is not mapped. */
static word_t back_pointer(const struct page_table *table)
{
    word_t value = 0;

    /* bound: BACK_POINTER_NIBBLES + 1 */
    for (word_t i = 0; i < BACK_POINTER_NIBBLES; i++)
        value |= (table->shadow[i] & ~SLOT_BITS) << (4 * i);
    return value;
}

static void set_back_pointer(struct page_table *table, word_t value)
{
    /* bound: BACK_POINTER_NIBBLES + 1 */
    for (word_t i = 0; i < BACK_POINTER_NIBBLES; i++)
        table->shadow[i] = (table->shadow[i] & SLOT_BITS)
            | (value >> (4 * i) & ~SLOT_BITS);
}

/* Give a cleared directory the kernel's mappings, a line at a time. */
void vspace_init_directory(struct page_directory *directory)
{
    const word_t *from = &kernel_directory.descriptor[4096 - KERNEL_DESCRIPTORS];
    word_t *to = &directory->descriptor[4096 - KERNEL_DESCRIPTORS];

    /* bound: KERNEL_DESCRIPTOR_LINES + 1 */
    for (word_t i = 0; i < KERNEL_DESCRIPTOR_LINES; i++) {
        to[0] = from[0];
        to[1] = from[1];
        to[2] = from[2];
        to[3] = from[3];
        to[4] = from[4];
        to[5] = from[5];
        to[6] = from[6];
        to[7] = from[7];
        machine_clean_line(to);
        to += LINE_BYTES / 4;
        from += LINE_BYTES / 4;
    }
    machine_drain();
}

/* Enter a page table into a directory. */
void vspace_map_table(struct slot *slot, word_t *entry)
{
    struct page_table *table = (struct page_table *)page_table_cap_object(&slot->cap);

    entry[PAGE_DIRECTORY_WORDS] = (word_t)slot;
    set_back_pointer(table, (word_t)entry);
    *entry = to_physical((word_t)table) | DIRECTORY_TABLE;
    machine_clean_line(entry);
    machine_drain();
}

word_t decode_page_table(const struct invocation *call)
{
    struct page_table *table = (struct page_table *)page_table_cap_object(&call->slot->cap);
    struct page_directory *directory;
    word_t address;

    if (call->label != LABEL_PAGE_TABLE_MAP)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < 1 || call->extra_count < 1)
        return ERROR_TRUNCATED;

    if (cap_type(&call->extra[0]->cap) != CAP_PAGE_DIRECTORY)
        return ERROR_INVALID_CAPABILITY;

    address = message_word(current_thread, 0);
    if (address >= WINDOW_BASE)
        return ERROR_RANGE;

    if (address % (1u << 20) != 0)
        return ERROR_ALIGNMENT;

    directory = (struct page_directory *)page_directory_cap_object(&call->extra[0]->cap);
    if (directory->descriptor[address >> 20] != 0 || back_pointer(table) != 0)
        return ERROR_ALREADY_MAPPED;

    vspace_map_table(call->slot, &directory->descriptor[address >> 20]);
    return ERROR_NONE;
}

/* All descriptors of a mapping are free. */
static bool all_free(const word_t *entry, word_t size)
{
    word_t count = size == SIZE_64K || size == SIZE_16M ? LARGE_DESCRIPTORS : 1;

    /* bound: LARGE_DESCRIPTORS + 1 */
    for (word_t i = 0; i < count; i++)
        if (entry[i] != 0)
            return false;
    return true;
}

/* The first descriptor for a frame of this size at a user address, if it is free. */
word_t vspace_find(struct page_directory *directory, word_t address, word_t size,
                   word_t **entry)
{
    word_t descriptor = directory->descriptor[address >> 20];
    struct page_table *table;

    if (size == SIZE_1M || size == SIZE_16M) {
        *entry = &directory->descriptor[address >> 20];
    } else if ((descriptor & DESCRIPTOR_TYPE) == DIRECTORY_TABLE) {
        table = (struct page_table *)to_window(descriptor & ~0x3ffu);
        *entry = &table->descriptor[address >> 12 & 0xff];
    } else {
        return descriptor == 0 ? ERROR_NO_TABLE : ERROR_ALREADY_MAPPED;
    }
    return all_free(*entry, size) ? ERROR_NONE : ERROR_ALREADY_MAPPED;
}

/* Write the descriptors of a frame; both sides then know each other. */
void vspace_write(struct slot *frame, word_t *entry, word_t descriptor, word_t size)
{
    bool in_table = size == SIZE_4K || size == SIZE_64K;
    word_t *shadow = entry + (in_table ? PAGE_TABLE_WORDS : PAGE_DIRECTORY_WORDS);
    word_t count = size == SIZE_64K || size == SIZE_16M ? LARGE_DESCRIPTORS : 1;

    *shadow = (word_t)frame | (*shadow & ~SLOT_BITS);
    frame_cap_set_entry(&frame->cap, (word_t)entry);
    /* bound: LARGE_DESCRIPTORS + 1 */
    for (word_t i = 0; i < count; i++)
        entry[i] = descriptor;
    machine_clean_line(entry);
    machine_clean_line(entry + count - 1);
    machine_drain();
}
