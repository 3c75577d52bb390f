/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects in memory (section 2.2, second kind).
 *
 *   A1  an object lies in memory, aligned to its size
 *   A2  two objects do not overlap (untyped regions are compared as parents, A3)
 *   A3  an object derived from an untyped region lies below its free mark
 *   A4  no object overlaps the kernel
 */
#include <layout_sizes.h>

#include "invariants.h"

struct extent { word_t base, bytes, kind; };

static struct extent extents[UNIVERSE_OBJECTS];
static word_t count;

/* Where the object of a capability lies; no bytes if it has no object in RAM. */
static struct extent extent_of(const struct cap *cap)
{
    struct extent none = { 0, 0, 0 };

    switch (cap_type(cap)) {
    case CAP_UNTYPED:
        return (struct extent){ untyped_cap_object(cap), 1u << untyped_cap_size_bits(cap),
                                CAP_UNTYPED };
    case CAP_CNODE:
        return (struct extent){ cnode_cap_object(cap),
                                1u << (cnode_cap_radix(cap) + SLOT_SIZE_BITS), CAP_CNODE };
    case CAP_TCB:
        return (struct extent){ tcb_cap_object(cap), 1u << TCB_SIZE_BITS, CAP_TCB };
    case CAP_ENDPOINT:
        return (struct extent){ endpoint_cap_object(cap), 1u << ENDPOINT_SIZE_BITS,
                                CAP_ENDPOINT };
    case CAP_NOTIFICATION:
        return (struct extent){ notification_cap_object(cap), 1u << NOTIFICATION_SIZE_BITS,
                                CAP_NOTIFICATION };
    case CAP_PAGE_TABLE:
        return (struct extent){ page_table_cap_object(cap), 1u << PAGE_TABLE_SIZE_BITS,
                                CAP_PAGE_TABLE };
    case CAP_PAGE_DIRECTORY:
        return (struct extent){ page_directory_cap_object(cap),
                                1u << PAGE_DIRECTORY_SIZE_BITS, CAP_PAGE_DIRECTORY };
    case CAP_FRAME:
        if (frame_cap_device(cap))
            return none;
        return (struct extent){ to_window(frame_cap_base(cap) << 12),
                                1u << (12 + 4 * frame_cap_size(cap)), CAP_FRAME };
    default:
        none.bytes = spaces_object_bytes(cap) + time_object_bytes(cap);
        if (none.bytes != 0)
            return (struct extent){ cnode_cap_object(cap), none.bytes, cap_type(cap) };
        return none;
    }
}

static bool is_after(const struct extent *a, const struct extent *b)
{
    return a->base != b->base ? a->base > b->base : a->bytes > b->bytes;
}

/* Shell sort: by base, then by size. */
static void sort(void)
{
    for (word_t gap = count / 2; gap > 0; gap /= 2)
        for (word_t i = gap; i < count; i++) {
            struct extent item = extents[i];
            word_t j = i;

            for (; j >= gap && is_after(&extents[j - gap], &item); j -= gap)
                extents[j] = extents[j - gap];
            extents[j] = item;
        }
}

static void collect(void)
{
    count = 0;
    for (word_t i = 0; i < universe->slot_count; i++) {
        struct extent extent = extent_of(&universe->slot[i]->cap);

        if (extent.bytes == 0)
            continue;
        require((extent.base & (extent.bytes - 1)) == 0
                && extent.base >= WINDOW_BASE
                && extent.base - WINDOW_BASE + extent.bytes <= RAM_BYTES,
                "A1 an object lies in memory, aligned", universe->slot[i]);
        require(extent.base - WINDOW_BASE >= BOOT_HEAP - RAM_BASE,
                "A4 no object overlaps the kernel", universe->slot[i]);
        if (extent.kind == CAP_UNTYPED)
            continue;
        require(count < UNIVERSE_OBJECTS, "(the checker's own limit on objects)", NULL);
        extents[count++] = extent;
    }
}

/* Objects of one extent and kind are one object, named by several capabilities. */
static void check_overlap(void)
{
    for (word_t i = 1; i < count; i++) {
        const struct extent *a = &extents[i - 1], *b = &extents[i];
        bool same = a->base == b->base && a->bytes == b->bytes && a->kind == b->kind;

        require(same || a->base + a->bytes <= b->base, "A2 two objects do not overlap",
                (void *)b->base);
    }
}

static void check_parents(void)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct cap *untyped = &universe->slot[i]->cap;
        word_t base, bytes, end;

        if (cap_type(untyped) != CAP_UNTYPED)
            continue;
        base = untyped_cap_object(untyped);
        bytes = 1u << untyped_cap_size_bits(untyped);
        end = base + (untyped_cap_free(untyped) << 4);
        require(end <= base + bytes, "A3 the free mark is inside its region", untyped);
        for (struct slot *slot = link_to(universe->slot[i]->next); slot != NULL;
             slot = link_to(slot->next)) {
            struct extent child = extent_of(&slot->cap);

            if (child.bytes == 0 || child.base < base || child.base >= base + bytes
                || child.bytes > bytes)
                break;
            require(child.base + child.bytes <= end, "A3 an object lies below the free mark",
                    slot);
        }
    }
}

void check_memory(void)
{
    collect();
    sort();
    check_overlap();
    check_parents();
}
