/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of address spaces for files beside vspace_asid.c.  The same functions are in
 * ../vspace_shadow/space.h; one of the two is on the include path.
 */
#ifndef BILBY_SPACE_H
#define BILBY_SPACE_H

#include <kernel.h>
#include <layout_sizes.h>

extern struct asid_pool *asid_pools[ASID_POOLS];

struct page_directory *asid_lookup(word_t asid) __attribute__((pure));
void asid_boot(struct slot *pool, struct slot *directory);
void asid_delete_pool(const struct cap *pool);
word_t decode_asid_control(const struct invocation *call);
word_t decode_asid_pool(const struct invocation *call);

/* A new directory, with the kernel's mappings: the kernel directory's number is not its own. */
static inline void space_init(struct page_directory *directory)
{
    directory->asid = 0;
}

/* The directory that a capability leads to; null if it has no number, or not any more. */
static inline struct page_directory *space_directory(const struct cap *directory)
{
    struct page_directory *object = asid_lookup(page_directory_cap_asid(directory));

    return (word_t)object == page_directory_cap_object(directory) ? object : NULL;
}

static inline word_t frame_asid(const struct cap *frame)
{
    return frame_cap_asid_high(frame) << 12 | frame_cap_asid_low(frame);
}

/* It was, and has not been unmapped: its space may be gone. */
static inline bool space_is_mapped(const struct cap *frame)
{
    return frame_asid(frame) != 0;
}

static inline void space_set_frame(struct cap *frame, word_t address, word_t asid)
{
    frame_cap_set_address(frame, address >> 12);
    frame_cap_set_asid_high(frame, asid >> 12);
    frame_cap_set_asid_low(frame, asid);
}

static inline void space_set_table(struct cap *table, word_t address, word_t asid)
{
    page_table_cap_set_address(table, address >> 20);
    page_table_cap_set_asid(table, asid);
}

/* A frame or a page table is about to be mapped: it remembers where. */
static inline void space_note(struct cap *mapped, word_t address, const struct cap *directory)
{
    word_t asid = page_directory_cap_asid(directory);

    if (cap_type(mapped) == CAP_FRAME)
        space_set_frame(mapped, address, asid);
    else
        space_set_table(mapped, address, asid);
}

/* The number stands in each capability, so a directory has no copy before it has one. */
static inline bool space_has_copy(const struct cap *cap)
{
    switch (cap_type(cap)) {
    case CAP_PAGE_DIRECTORY:
        return page_directory_cap_asid(cap) != 0;
    case CAP_ASID_CONTROL:
        return false;
    default:
        return true;
    }
}

/* First capabilities: without a number. */
static inline void space_make_table(struct cap *cap, word_t base)
{
    page_table_cap_make(cap, base, 0, 0);
}

static inline void space_make_directory(struct cap *cap, word_t base)
{
    page_directory_cap_make(cap, base, 0);
}

/* Boot makes a pool for the first thread's directory, which gets one of its numbers. */
#define SPACE_BOOT_BITS ASID_POOL_SIZE_BITS

static inline void space_boot(struct slot *control, struct slot *pool, word_t base,
                              struct slot *directory)
{
    asid_control_cap_make(&control->cap);
    asid_pool_cap_make(&pool->cap, base, 0);
    asid_boot(pool, directory);
}

/* Kinds of objects that only this kind of address spaces has: labels of a switch. */
#define SPACE_OBJECTS case CAP_ASID_POOL:

static inline word_t space_decode(const struct invocation *call)
{
    switch (cap_type(&call->slot->cap)) {
    case CAP_ASID_CONTROL:
        return decode_asid_control(call);
    case CAP_ASID_POOL:
        return decode_asid_pool(call);
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}

static inline void space_finalise(const struct cap *cap, bool last)
{
    if (cap_type(cap) == CAP_ASID_POOL && last)
        asid_delete_pool(cap);
}

#endif
