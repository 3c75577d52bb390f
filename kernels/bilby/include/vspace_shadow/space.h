/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of address spaces for files beside vspace_shadow.c.  The same functions are in
 * ../vspace_asid/space.h; one of the two is on the include path.
 */
#ifndef BILBY_SPACE_H
#define BILBY_SPACE_H

#include <kernel.h>

/* A new directory, with the kernel's mappings. */
static inline void space_init(struct page_directory *directory)
{
    (void)directory;
}

/* The directory that a capability leads to: every one can be used. */
static inline struct page_directory *space_directory(const struct cap *directory)
{
    return (struct page_directory *)page_directory_cap_object(directory);
}

static inline bool space_is_mapped(const struct cap *frame)
{
    return frame_cap_entry(frame) != 0;
}

/* A frame or a page table is about to be mapped: the tables themselves will tell. */
static inline void space_note(struct cap *mapped, word_t address, const struct cap *directory)
{
    (void)mapped;
    (void)address;
    (void)directory;
}

static inline bool space_has_copy(const struct cap *cap)
{
    (void)cap;
    return true;
}

/* First capabilities. */
static inline void space_make_table(struct cap *cap, word_t base)
{
    page_table_cap_make(cap, base);
}

static inline void space_make_directory(struct cap *cap, word_t base)
{
    page_directory_cap_make(cap, base);
}

/* Boot makes no further object for the first thread's directory. */
#define SPACE_BOOT_BITS 0

static inline void space_boot(struct slot *control, struct slot *pool, word_t base,
                              struct slot *directory)
{
    (void)control;
    (void)pool;
    (void)base;
    (void)directory;
}

/* Kinds of objects that only the other kind of address spaces has. */
#define SPACE_OBJECTS

static inline word_t space_decode(const struct invocation *call)
{
    (void)call;
    return ERROR_ILLEGAL_OPERATION;
}

static inline void space_finalise(const struct cap *cap, bool last)
{
    (void)cap;
    (void)last;
}

#endif
