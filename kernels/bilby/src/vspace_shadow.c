/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces with shadow tables.
 *
 * Beside each descriptor, at a fixed distance, stands the slot of the capability
 * that is mapped there; the capability has the address of the descriptor.  A
 * page table has the address of the directory entry that holds it, one nibble in
 * each of its first eight shadow words.  Mappings are taken away eagerly, so that none
 * dangles; tables and directories are emptied entry by entry (section 3.6).  The number of
 * the entry that comes next stands in the next three shadow words of a table, and in a
 * directory as "lowest_mapped".  It is 0 until the last capability is deleted, and nobody can
 * map anything from then on.
 *
 * Invariants: descriptor != 0 => its shadow (of a 16-fold mapping: the shadow of
 * the first) names a slot whose capability maps exactly that; no entry below the
 * "lowest" number of its table is mapped; no descriptor is dirty in the data cache
 * when it can be walked; no address space has a stale translation in the TLB.
 */
#include <kernel.h>
#include <descriptors.h>
#include <machine.h>
#include <preemption.h>

#define PAGE_TABLE_WORDS     256
#define PAGE_DIRECTORY_WORDS 4096
#define SLOT_BITS            (~0xfu)

#define FIRST_LOWEST         8 /* shadow word with the first nibble of the lowest number */

/* A number of up to eight nibbles, kept in the low bits of shadow words. */
static word_t get_nibbles(const word_t *shadow, word_t count)
{
    word_t value = 0;

    /* bound: BACK_POINTER_NIBBLES + 1 */
    for (word_t i = 0; i < count && i < BACK_POINTER_NIBBLES; i++)
        value |= (shadow[i] & ~SLOT_BITS) << (4 * i);
    return value;
}

static void set_nibbles(word_t *shadow, word_t count, word_t value)
{
    /* bound: BACK_POINTER_NIBBLES + 1 */
    for (word_t i = 0; i < count && i < BACK_POINTER_NIBBLES; i++)
        shadow[i] = (shadow[i] & SLOT_BITS) | (value >> (4 * i) & ~SLOT_BITS);
}

/* The address of the directory entry that holds a table; 0 if it is not mapped. */
static word_t back_pointer(const struct page_table *table)
{
    return get_nibbles(table->shadow, BACK_POINTER_NIBBLES);
}

static void set_back_pointer(struct page_table *table, word_t value)
{
    set_nibbles(table->shadow, BACK_POINTER_NIBBLES, value);
}

static word_t lowest_of_table(const struct page_table *table)
{
    return get_nibbles(&table->shadow[FIRST_LOWEST], LOWEST_NIBBLES);
}

static void set_lowest_of_table(struct page_table *table, word_t lowest)
{
    set_nibbles(&table->shadow[FIRST_LOWEST], LOWEST_NIBBLES, lowest);
}

/* Tables are aligned to their size, so an entry's address tells its table. */
static struct page_table *table_of(const word_t *entry)
{
    return (struct page_table *)((word_t)entry & ~(sizeof(struct page_table) - 1));
}

static struct page_directory *directory_of(const word_t *entry)
{
    return (struct page_directory *)((word_t)entry & ~(sizeof(struct page_directory) - 1));
}

/* The shadow of a frame's first descriptor. */
static word_t *shadow_of(word_t *entry, word_t size)
{
    return entry + (is_in_table(size) ? PAGE_TABLE_WORDS : PAGE_DIRECTORY_WORDS);
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

    if (call->label == LABEL_PAGE_TABLE_UNMAP) {
        vspace_unmap_table(call->slot);
        return ERROR_NONE;
    }

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

/* The first descriptor for a frame of this size at a user address, if it is free. */
word_t vspace_find(struct page_directory *directory, word_t address, word_t size,
                   word_t **entry)
{
    word_t descriptor = directory->descriptor[address >> 20];

    if (size == SIZE_1M || size == SIZE_16M) {
        *entry = &directory->descriptor[address >> 20];
    } else if (is_table(descriptor)) {
        *entry = &table_at(descriptor)->descriptor[address >> 12 & 0xff];
    } else {
        return descriptor == 0 ? ERROR_NO_TABLE : ERROR_ALREADY_MAPPED;
    }
    return all_free(*entry, size) ? ERROR_NONE : ERROR_ALREADY_MAPPED;
}

/* Write the descriptors of a frame; both sides then know each other. */
void vspace_write(struct slot *frame, word_t *entry, word_t descriptor, word_t size)
{
    word_t *shadow = shadow_of(entry, size);

    *shadow = (word_t)frame | (*shadow & ~SLOT_BITS);
    frame_cap_set_entry(&frame->cap, (word_t)entry);
    write_descriptors(entry, descriptor, size);
}

/* A copy of a frame's capability is mapped nowhere. */
void vspace_forget_mapping(struct cap *frame)
{
    frame_cap_set_entry(frame, 0);
}

/* A capability went from one slot to another: the shadow that names it follows. */
void vspace_moved(struct slot *slot, const struct slot *from)
{
    const struct cap *cap = &slot->cap;
    word_t *shadow;
    word_t entry;

    if (cap_type(cap) == CAP_FRAME && frame_cap_entry(cap) != 0) {
        shadow = shadow_of((word_t *)frame_cap_entry(cap), frame_cap_size(cap));
        *shadow = (word_t)slot | (*shadow & ~SLOT_BITS);
    } else if (cap_type(cap) == CAP_PAGE_TABLE) {
        entry = back_pointer((struct page_table *)page_table_cap_object(cap));
        if (entry != 0 && ((word_t *)entry)[PAGE_DIRECTORY_WORDS] == (word_t)from)
            ((word_t *)entry)[PAGE_DIRECTORY_WORDS] = (word_t)slot;
    }
}

/* The directory that translates through an entry of a table; null if none does. */
static struct page_directory *entry_space(const word_t *entry, word_t size)
{
    word_t holder = (word_t)entry;

    if (is_in_table(size))
        holder = back_pointer(table_of(entry));
    return holder == 0 ? NULL : directory_of((const word_t *)holder);
}

/* Take a frame's mapping away, if it has one. */
void vspace_unmap_frame(struct slot *frame)
{
    word_t *entry = (word_t *)frame_cap_entry(&frame->cap);
    word_t size = frame_cap_size(&frame->cap);
    struct page_directory *directory;
    word_t *shadow;

    if (entry == NULL)
        return;
    shadow = shadow_of(entry, size);
    *shadow &= ~SLOT_BITS;
    frame_cap_set_entry(&frame->cap, 0);
    write_descriptors(entry, 0, size);
    directory = entry_space(entry, size);
    if (directory != NULL)
        asid_flush(directory);
}

/* Take a page table out of its directory, if it is in one; its own entries stay. */
void vspace_unmap_table(struct slot *slot)
{
    struct page_table *table = (struct page_table *)page_table_cap_object(&slot->cap);
    word_t *entry = (word_t *)back_pointer(table);

    if (entry == NULL)
        return;
    set_back_pointer(table, 0);
    entry[PAGE_DIRECTORY_WORDS] = 0;
    write_descriptors(entry, 0, SIZE_1M);
    asid_flush(directory_of(entry));
}

/* The last capability of a table is deleted: no frame may refer to it. */
PREEMPTIBLE void vspace_delete_table(struct slot *slot)
{
    struct page_table *table = (struct page_table *)page_table_cap_object(&slot->cap);
    word_t lowest = lowest_of_table(table);

    vspace_unmap_table(slot);
    /* preempted: 9 */
    while (lowest < PAGE_TABLE_WORDS) {
        struct slot *frame = (struct slot *)(table->shadow[lowest] & SLOT_BITS);

        if (frame != NULL)
            vspace_unmap_frame(frame);
        lowest++;
        set_lowest_of_table(table, lowest);
        PREEMPTION_POINT(9);
    }
}

/* The last capability of a directory is deleted: first nobody runs in it any more. */
PREEMPTIBLE void vspace_delete_directory(struct slot *slot)
{
    struct page_directory *directory =
        (struct page_directory *)page_directory_cap_object(&slot->cap);

    asid_release(directory);
    /* preempted: 10 */
    while (directory->lowest_mapped < PAGE_DIRECTORY_WORDS - KERNEL_DESCRIPTORS) {
        struct slot *mapped = (struct slot *)directory->shadow[directory->lowest_mapped];

        if (mapped != NULL && cap_type(&mapped->cap) == CAP_PAGE_TABLE)
            vspace_unmap_table(mapped);
        else if (mapped != NULL)
            vspace_unmap_frame(mapped);
        directory->lowest_mapped++;
        PREEMPTION_POINT(10);
    }
}
