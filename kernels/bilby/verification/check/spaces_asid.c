/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces with numbers (section 2.2, third and fourth kind; section 3.6).  A
 * space is live if a pool has an entry for it: only then it can be walked.
 *
 *   V1  a descriptor of a live space maps the frame, or is the table, of a capability
 *       that remembers this number and place
 *   V2  a page table without a number is empty
 *   V3  a live directory stands in one entry; all its capabilities have that number;
 *       number 0 is nobody's
 *   V4  the kernel's part of every directory equals the kernel's own directory
 *   V5  owner[n] == d  <=>  d->asid == n, n not zero; a directory with a hardware number
 *       is live, or the kernel's
 *   V6  user descriptors are for users, local, and never reach the kernel window
 *   V7  the table of pools has the pools of the pools' capabilities, at their index
 */
#include <descriptors.h>
#include <layout_sizes.h>
#include <space.h>

#include "invariants.h"

extern struct page_directory *owner[HARDWARE_ASIDS] __attribute__((weak));
extern struct asid_pool *asid_pools[ASID_POOLS];

/* The records of capabilities: descriptors, one bit each. */
static void remember(const word_t *entry, word_t count, bool value)
{
    for (word_t i = 0; i < count; i++) {
        word_t unit = ((word_t)(entry + i) - WINDOW_BASE) / 4;
        unsigned char bit = (unsigned char)(1u << unit % 8);

        if (value)
            universe->descriptor_seen[unit / 8] |= bit;
        else
            universe->descriptor_seen[unit / 8] &= (unsigned char)~bit;
    }
}

static bool is_remembered(const word_t *entry)
{
    word_t unit = ((word_t)entry - WINDOW_BASE) / 4;

    return universe->descriptor_seen[unit / 8] >> unit % 8 & 1;
}

void spaces_reach(void)
{
    for (word_t i = 0; i < ASID_POOLS; i++)
        for (word_t n = 0; asid_pools[i] != NULL && n < ASID_POOL_ENTRIES; n++)
            universe_add_directory(asid_pools[i]->space[n]);
}

/* Nothing leads from tables to capabilities. */
void spaces_reach_from_table(const struct page_table *table)
{
    (void)table;
}

void spaces_reach_from_directory(const struct page_directory *directory)
{
    (void)directory;
}

void spaces_reach_from_frame(const struct cap *frame)
{
    (void)frame;
}

word_t spaces_object_bytes(const struct cap *cap)
{
    return cap_type(cap) == CAP_ASID_POOL ? sizeof(struct asid_pool) : 0;
}

/* Is the descriptor one for users, of a frame of this size and base? */
static bool maps(word_t descriptor, const struct cap *frame)
{
    word_t size = frame_cap_size(frame);
    word_t mask = ~((1u << (12 + 4 * size)) - 1);
    bool kind, user;

    if (is_in_table(size)) {
        kind = size == SIZE_4K ? descriptor & PAGE_SMALL : (descriptor & 3) == PAGE_LARGE;
        user = (descriptor & PAGE_READ) && (descriptor & PAGE_LOCAL);
    } else {
        kind = (descriptor & 3) == SECTION && !(descriptor & SECTION_SUPER) == (size == SIZE_1M);
        user = (descriptor & SECTION_READ) && (descriptor & SECTION_LOCAL);
    }
    return kind && user && (descriptor & mask) == (frame_cap_base(frame) << 12 & mask);
}

/* The record of a frame's capability, if the tables agree. */
static void note_frame(const struct cap *frame, bool value)
{
    struct page_directory *directory = asid_lookup(frame_asid(frame));
    word_t page = frame_cap_address(frame), size = frame_cap_size(frame);
    const word_t *entry;

    if (directory == NULL)
        return;
    entry = &directory->descriptor[page >> 8];
    if (is_in_table(size)) {
        if (!is_table(*entry))
            return;
        entry = &table_at(*entry)->descriptor[page & 0xff];
    }
    if (maps(*entry, frame))
        remember(entry, descriptor_count(size), value);
}

static void note_table(const struct cap *table, bool value)
{
    struct page_directory *directory = asid_lookup(page_table_cap_asid(table));
    const word_t *entry;

    if (directory == NULL)
        return;
    entry = &directory->descriptor[page_table_cap_address(table)];
    if (is_table(*entry) && (word_t)table_at(*entry) == page_table_cap_object(table))
        remember(entry, 1, value);
}

static void note_all(bool value)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct cap *cap = &universe->slot[i]->cap;

        if (cap_type(cap) == CAP_FRAME)
            note_frame(cap, value);
        else if (cap_type(cap) == CAP_PAGE_TABLE)
            note_table(cap, value);
    }
}

static void check_live(const struct page_directory *directory)
{
    for (word_t i = next_used(directory->descriptor, 0, WINDOW_BASE >> 20);
         i < WINDOW_BASE >> 20; i = next_used(directory->descriptor, i + 1, WINDOW_BASE >> 20)) {
        const word_t *entry = &directory->descriptor[i];

        require(is_remembered(entry), "V1 a capability remembers what is walked", entry);
        for (word_t j = 0; is_table(*entry) && j < 256; j++)
            require(table_at(*entry)->descriptor[j] == 0
                    || is_remembered(&table_at(*entry)->descriptor[j]),
                    "V1 a capability remembers what is walked",
                    &table_at(*entry)->descriptor[j]);
    }
}

static void check_directory(const struct page_directory *directory)
{
    const word_t *number = (const word_t *)((word_t)&directory->asid & ~3u);

    require(next_used(directory->descriptor, WINDOW_BASE >> 20, 4096 - KERNEL_DESCRIPTORS)
            == 4096 - KERNEL_DESCRIPTORS, "V6 no user mapping in the window", directory);
    for (word_t i = 4096 - KERNEL_DESCRIPTORS; i < 4096; i++)
        require(directory->descriptor[i] == kernel_directory.descriptor[i]
                || &directory->descriptor[i] == number,
                "V4 the kernel's part is equal everywhere", &directory->descriptor[i]);
    require((*number & 0xffffff) == 0, "V4 the number of a space is no descriptor", number);
    require(directory->asid == 0 || owner == NULL || owner[directory->asid] == directory,
            "V5 a space owns its number", directory);
}

static void check_cap(const struct slot *slot)
{
    const struct cap *cap = &slot->cap;
    const struct page_table *table;

    if (cap_type(cap) == CAP_PAGE_TABLE && page_table_cap_asid(cap) == 0) {
        table = (const struct page_table *)page_table_cap_object(cap);
        for (word_t i = 0; i < 256; i++)
            require(table->descriptor[i] == 0, "V2 a table without a number is empty", slot);
    }
    if (cap_type(cap) == CAP_ASID_POOL)
        require((word_t)asid_pools[asid_pool_cap_index(cap)] == asid_pool_cap_object(cap),
                "V7 a pool stands at its index", slot);
}

/* The directory is at one place only, which its capabilities name. */
static void check_number(const struct page_directory *directory, word_t asid)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct cap *cap = &universe->slot[i]->cap;

        if (cap_type(cap) == CAP_PAGE_DIRECTORY
            && page_directory_cap_object(cap) == (word_t)directory)
            require(page_directory_cap_asid(cap) == asid, "V3 a directory has one number",
                    universe->slot[i]);
    }
}

static bool has_capability(const struct asid_pool *pool, word_t index)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        if (cap_type(&universe->slot[i]->cap) == CAP_ASID_POOL
            && asid_pool_cap_object(&universe->slot[i]->cap) == (word_t)pool
            && asid_pool_cap_index(&universe->slot[i]->cap) == index)
            return true;
    return false;
}

static bool is_live(const struct page_directory *directory)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        if (cap_type(&universe->slot[i]->cap) == CAP_PAGE_DIRECTORY
            && space_directory(&universe->slot[i]->cap) == directory)
            return true;
    return false;
}

static void check_pools(void)
{
    for (word_t i = 0; i < ASID_POOLS; i++) {
        if (asid_pools[i] == NULL)
            continue;
        require(has_capability(asid_pools[i], i), "V7 a pool has a capability", asid_pools[i]);
        require(i != 0 || asid_pools[i]->space[0] == NULL, "V3 number 0 is nobody's", asid_pools[i]);
        for (word_t n = 0; n < ASID_POOL_ENTRIES; n++)
            if (asid_pools[i]->space[n] != NULL) {
                require(is_live(asid_pools[i]->space[n]), "V3 a number leads to a directory",
                        &asid_pools[i]->space[n]);
                check_number(asid_pools[i]->space[n], i * ASID_POOL_ENTRIES + n);
                check_live(asid_pools[i]->space[n]);
            }
    }
}

void check_spaces(void)
{
    note_all(true);
    check_pools();
    note_all(false);
    for (word_t i = 0; i < universe->slot_count; i++)
        check_cap(universe->slot[i]);
    for (word_t i = 0; i < universe->directories.count; i++)
        check_directory((const struct page_directory *)universe->directories.at[i]);
    for (word_t number = 0; owner != NULL && number < HARDWARE_ASIDS; number++) {
        require(owner[number] == NULL || (number != 0 && owner[number]->asid == number),
                "V5 a number belongs to its space", owner[number]);
        require(owner[number] == NULL || owner[number] == &kernel_directory
                || is_live(owner[number]), "V5 what has a hardware number is live",
                owner[number]);
    }
}
