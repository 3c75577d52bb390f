/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces with shadow tables (section 2.2, third and fourth kind; section 3.6).
 *
 *   V1  a frame capability that is mapped: each descriptor maps its frame, and the
 *       shadow of the first names the capability
 *   V2  a descriptor that is not zero belongs to a mapping of V1 or to a table
 *   V3  a table that is in a directory: the entry points to it, its shadow to a
 *       capability of the table, its back-pointer to the entry
 *   V4  the kernel's part of every directory equals the kernel's own directory
 *   V5  owner[n] == d  <=>  d->asid == n, n not zero; a directory with a number exists
 *   D4  nothing below "lowest mapped" of a directory is mapped
 *   V6  user descriptors are for users, local, and never reach the kernel window
 */
#include <vspace.h>

#include "invariants.h"

#define TABLE_SHADOW     256
#define DIRECTORY_SHADOW 4096

extern struct page_directory *owner[HARDWARE_ASIDS] __attribute__((weak));

void spaces_reach(void)
{
}

static word_t back_pointer(const struct page_table *table)
{
    word_t value = 0;

    for (word_t i = 0; i < BACK_POINTER_NIBBLES; i++)
        value |= (table->shadow[i] & 0xf) << (4 * i);
    return value;
}

/* Its frames, and the directory that it is in. */
void spaces_reach_from_table(const struct page_table *table)
{
    word_t entry = back_pointer(table);

    universe_add_directory((struct page_directory *)
                           (entry & ~(sizeof(struct page_directory) - 1)));
    for (word_t i = next_used(table->descriptor, 0, 256); i < 256;
         i = next_used(table->descriptor, i + 1, 256))
        universe_add_slot(link_to(table->shadow[i]));
}

void spaces_reach_from_directory(const struct page_directory *directory)
{
    for (word_t i = next_used(directory->descriptor, 0, WINDOW_BASE >> 20);
         i < WINDOW_BASE >> 20; i = next_used(directory->descriptor, i + 1, WINDOW_BASE >> 20))
        universe_add_slot(link_to(directory->shadow[i]));
}

/* The table or directory in which a frame is mapped. */
void spaces_reach_from_frame(const struct cap *frame)
{
    word_t entry = frame_cap_entry(frame);

    if (entry == 0)
        return;
    if (frame_cap_size(frame) <= SIZE_64K)
        universe_add_table((struct page_table *)(entry & ~(sizeof(struct page_table) - 1)));
    else
        universe_add_directory(
            (struct page_directory *)(entry & ~(sizeof(struct page_directory) - 1)));
}

word_t spaces_object_bytes(const struct cap *cap)
{
    (void)cap;
    return 0;
}

/* Does the descriptor map this frame? */
static bool maps(word_t descriptor, const struct cap *frame)
{
    word_t size = frame_cap_size(frame);
    word_t mask = ~((1u << (12 + 4 * size)) - 1);
    bool user, kind;

    if (size == SIZE_4K || size == SIZE_64K) {
        kind = size == SIZE_4K ? descriptor & PAGE_SMALL
                               : (descriptor & 3) == PAGE_LARGE;
        user = (descriptor & PAGE_READ) && (descriptor & PAGE_LOCAL);
        if ((descriptor & PAGE_WRITE) == PAGE_WRITE && !frame_cap_can_write(frame))
            return false;
    } else {
        kind = (descriptor & 3) == SECTION
            && !(descriptor & SECTION_SUPER) == (size == SIZE_1M);
        user = (descriptor & SECTION_READ) && (descriptor & SECTION_LOCAL);
        if ((descriptor & SECTION_WRITE) == SECTION_WRITE && !frame_cap_can_write(frame))
            return false;
    }
    return kind && user && (descriptor & mask) == (frame_cap_base(frame) << 12 & mask);
}

static word_t descriptors_of(const struct cap *frame)
{
    word_t size = frame_cap_size(frame);

    return size == SIZE_64K || size == SIZE_16M ? LARGE_DESCRIPTORS : 1;
}

/* Returns how many descriptors it accounts for. */
static word_t check_frame(const struct slot *slot)
{
    const word_t *entry = (const word_t *)frame_cap_entry(&slot->cap);
    word_t size = frame_cap_size(&slot->cap);
    word_t count = descriptors_of(&slot->cap);
    word_t distance = size <= SIZE_64K ? TABLE_SHADOW : DIRECTORY_SHADOW;

    if (entry == NULL)
        return 0;
    require(((word_t)entry & (4 * count - 1)) == 0, "V1 a mapping is aligned", slot);
    require(link_to(entry[distance]) == slot, "V1 the shadow names the capability", slot);
    for (word_t i = 0; i < count; i++) {
        require(maps(entry[i], &slot->cap), "V1 a descriptor maps the frame", slot);
        require(entry[i] == entry[0], "V1 descriptors of one mapping are equal", slot);
    }
    return count;
}

static word_t check_table(const struct page_table *table)
{
    const word_t *entry = (const word_t *)back_pointer(table);
    word_t used = 0;

    for (word_t i = next_used(table->descriptor, 0, 256); i < 256;
         i = next_used(table->descriptor, i + 1, 256))
        used++;
    if (entry == NULL)
        return used;
    require(*entry == (to_physical((word_t)table) | DIRECTORY_TABLE),
            "V3 the directory points to the table", table);
    require(universe_has_slot(link_to(entry[DIRECTORY_SHADOW])),
            "V3 the shadow names a slot", table);
    require(cap_type(&link_to(entry[DIRECTORY_SHADOW])->cap) == CAP_PAGE_TABLE
            && page_table_cap_object(&link_to(entry[DIRECTORY_SHADOW])->cap) == (word_t)table,
            "V3 the shadow names a capability of the table", table);
    return used;
}

static word_t check_directory(const struct page_directory *directory)
{
    const word_t users = 4096 - KERNEL_DESCRIPTORS;
    word_t used = 0;

    for (word_t i = next_used(directory->descriptor, 0, users); i < users;
         i = next_used(directory->descriptor, i + 1, users)) {
        word_t descriptor = directory->descriptor[i];

        require(i >= directory->lowest_mapped, "D4 nothing below is mapped",
                &directory->descriptor[i]);
        require(i < WINDOW_BASE >> 20, "V6 no user mapping in the window",
                &directory->descriptor[i]);
        if ((descriptor & DESCRIPTOR_TYPE) == DIRECTORY_TABLE)
            require(back_pointer((const struct page_table *)to_window(descriptor & ~0x3ffu))
                    == (word_t)&directory->descriptor[i],
                    "V3 the table points back", &directory->descriptor[i]);
        else
            used++;
    }
    for (word_t i = 4096 - KERNEL_DESCRIPTORS; i < 4096; i++)
        require(directory->descriptor[i] == kernel_directory.descriptor[i],
                "V4 the kernel's part is equal everywhere", &directory->descriptor[i]);
    require(directory->asid < HARDWARE_ASIDS
            && (directory->asid == 0 || owner == NULL || owner[directory->asid] == directory),
            "V5 a space owns its number", directory);
    return used;
}

void check_spaces(void)
{
    word_t used = 0, accounted = 0;

    for (word_t i = 0; i < universe->slot_count; i++)
        if (cap_type(&universe->slot[i]->cap) == CAP_FRAME)
            accounted += check_frame(universe->slot[i]);
    for (word_t i = 0; i < universe->tables.count; i++)
        used += check_table((const struct page_table *)universe->tables.at[i]);
    for (word_t i = 0; i < universe->directories.count; i++)
        used += check_directory((const struct page_directory *)universe->directories.at[i]);
    require(used == accounted, "V2 every descriptor belongs to a mapped capability", NULL);
    for (word_t number = 0; owner != NULL && number < HARDWARE_ASIDS; number++)
        require(owner[number] == NULL || (number != 0 && owner[number]->asid == number),
                "V5 a number belongs to its space", owner[number]);
    for (word_t number = 0; owner != NULL && number < HARDWARE_ASIDS; number++)
        require(owner[number] == NULL || universe_has_object(owner[number]),
                "V5 what has a number exists", owner[number]);
}
