/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces with numbers (ASIDs), as in 2011 (section 3.6, figure 4).
 *
 * A table of two levels leads from a number to a directory: 16 pools, each an object that a user
 * makes, of 1024 numbers.  A mapped object stores the number of its space and its address there;
 * nothing in the tables leads back to it.  So an address space is deleted by taking one entry out
 * of its pool.  Objects with its number are then stale, and harmless: whenever one is used, it is
 * compared with the tables.
 *
 * The price is paid elsewhere: assigning a number may look at all 1024 of a pool, and
 * deleting a pool does, in one go.
 *
 * Invariants: an entry of a pool names a directory all of whose capabilities have that
 * number, and no other entry names it; a directory without an entry has no hardware
 * number, so that nothing walks it; a page table whose capability has no number is empty;
 * a descriptor that can be walked has a frame capability that remembers its place; no
 * descriptor is dirty in the data cache when it can be walked; no address space has a
 * stale translation in the TLB.
 */
#include <descriptors.h>
#include <kernel.h>
#include <layout_sizes.h>
#include <machine.h>
#include <space.h>

struct asid_pool *asid_pools[ASID_POOLS];

/* ---- numbers --------------------------------------------------------------- */

/* The directory that has a number; null if none. */
struct page_directory *asid_lookup(word_t asid)
{
    const struct asid_pool *pool = asid_pools[asid / ASID_POOL_ENTRIES];

    return pool == NULL ? NULL : pool->space[asid % ASID_POOL_ENTRIES];
}

/* ---- directories and tables ---------------------------------------------------- */

/* Enter a page table into a directory. */
void vspace_map_table(struct slot *slot, word_t *entry)
{
    write_descriptors(entry, to_physical(page_table_cap_object(&slot->cap)) | DIRECTORY_TABLE,
                      SIZE_1M);
}

word_t decode_page_table(const struct invocation *call)
{
    struct cap *table = &call->slot->cap;
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

    directory = space_directory(&call->extra[0]->cap);
    if (directory == NULL)
        return ERROR_INVALID_CAPABILITY;

    address = message_word(current_thread, 0);
    if (address >= WINDOW_BASE)
        return ERROR_RANGE;

    if (address % (1u << 20) != 0)
        return ERROR_ALIGNMENT;

    if (directory->descriptor[address >> 20] != 0 || page_table_cap_asid(table) != 0)
        return ERROR_ALREADY_MAPPED;

    space_note(table, address, &call->extra[0]->cap);
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

/* Write the descriptors of a frame, which was told where (space_note). */
void vspace_write(struct slot *frame, word_t *entry, word_t descriptor, word_t size)
{
    (void)frame;
    write_descriptors(entry, descriptor, size);
}

/* A copy of a frame's capability is mapped nowhere. */
void vspace_forget_mapping(struct cap *frame)
{
    space_set_frame(frame, 0, 0);
}

/* A capability went from one slot to another: nothing leads back to slots. */
void vspace_moved(struct slot *slot, const struct slot *from)
{
    (void)slot;
    (void)from;
}

/* ---- unmapping: a capability's record is compared with the tables ----------------- */

/* A descriptor maps this frame. */
static bool descriptor_maps(word_t descriptor, const struct cap *frame)
{
    word_t base = frame_cap_base(frame) << 12;

    switch (frame_cap_size(frame)) {
    case SIZE_4K:
        return (descriptor & PAGE_SMALL) && (descriptor & ~0xfffu) == base;
    case SIZE_64K:
        return (descriptor & DESCRIPTOR_TYPE) == PAGE_LARGE && (descriptor & ~0xffffu) == base;
    case SIZE_1M:
        return (descriptor & (DESCRIPTOR_TYPE | SECTION_SUPER)) == SECTION
            && (descriptor & ~0xfffffu) == base;
    default:
        return (descriptor & (DESCRIPTOR_TYPE | SECTION_SUPER)) == (SECTION | SECTION_SUPER)
            && (descriptor & ~0xffffffu) == base;
    }
}

/* The first descriptor of a frame where its capability says; null if that is not so. */
static word_t *mapping_of(struct page_directory *directory, const struct cap *frame)
{
    word_t page = frame_cap_address(frame);
    word_t *entry = &directory->descriptor[page >> 8];

    if (is_in_table(frame_cap_size(frame))) {
        if (!is_table(*entry))
            return NULL;
        entry = &table_at(*entry)->descriptor[page & 0xff];
    }
    return descriptor_maps(*entry, frame) ? entry : NULL;
}

/* Take a frame's mapping away, if it still has one. */
void vspace_unmap_frame(struct slot *frame)
{
    struct page_directory *directory = asid_lookup(frame_asid(&frame->cap));
    word_t *entry = NULL;

    if (directory != NULL)
        entry = mapping_of(directory, &frame->cap);
    space_set_frame(&frame->cap, 0, 0);
    if (entry == NULL)
        return;
    write_descriptors(entry, 0, frame_cap_size(&frame->cap));
    asid_flush(directory);
}

/* Take a page table out of its directory, if it is still in it. */
static void leave_directory(const struct cap *table)
{
    struct page_directory *directory = asid_lookup(page_table_cap_asid(table));
    word_t *entry;

    if (directory == NULL)
        return;
    entry = &directory->descriptor[page_table_cap_address(table)];
    if (*entry != (to_physical(page_table_cap_object(table)) | DIRECTORY_TABLE))
        return;
    write_descriptors(entry, 0, SIZE_1M);
    asid_flush(directory);
}

/* The frames in it cannot find it any more, so its entries go, too. */
void vspace_unmap_table(struct slot *slot)
{
    if (page_table_cap_asid(&slot->cap) == 0)
        return;
    leave_directory(&slot->cap);
    space_set_table(&slot->cap, 0, 0);
    create_clear_chunk(page_table_cap_object(&slot->cap), sizeof(struct page_table));
}

/* ---- deletion -------------------------------------------------------------------- */

/* The last capability of a table is deleted; its mapped frames notice that later. */
void vspace_delete_table(struct slot *slot)
{
    leave_directory(&slot->cap);
}

/* The last capability of a directory is deleted: its number is nobody's. */
void vspace_delete_directory(struct slot *slot)
{
    word_t asid = page_directory_cap_asid(&slot->cap);
    struct page_directory *directory = space_directory(&slot->cap);

    if (directory == NULL)
        return;
    asid_pools[asid / ASID_POOL_ENTRIES]->space[asid % ASID_POOL_ENTRIES] = NULL;
    asid_release(directory);
}
