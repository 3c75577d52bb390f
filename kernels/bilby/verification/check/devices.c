/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices: regions of physical addresses, and frames of them (section 2.2, second and fourth kind).
 *
 *   P1  a region and a frame are aligned to their size, and are no memory of the kernel's
 *   P2  two that overlap are capabilities to one frame, or one is a region that contains the other
 *   P3  an object in a region lies below its free mark, but for a region of the same extent
 *   P4  an object in a region stands in the derivation list after it, with nothing between that is
 *       not: it was derived from it
 */
#include "invariants.h"

#define DEVICES_MAX 4096u

static const struct slot *device[DEVICES_MAX];
static word_t count;

static bool is_region(const struct cap *cap)
{
    return cap_type(cap) == CAP_DEVICE;
}

static bool is_device(const struct cap *cap)
{
    return is_region(cap) || (cap_type(cap) == CAP_FRAME && frame_cap_device(cap));
}

static word_t bits_of(const struct cap *cap)
{
    return is_region(cap) ? device_cap_size_bits(cap) : 12 + 4 * frame_cap_size(cap);
}

static word_t base_of(const struct cap *cap)
{
    return (is_region(cap) ? device_cap_base(cap) : frame_cap_base(cap)) << 12;
}

/* The inner one lies in the outer one, or has the same extent. */
static bool is_inside(const struct cap *inner, const struct cap *outer)
{
    return bits_of(inner) <= bits_of(outer)
        && (base_of(inner) ^ base_of(outer)) >> bits_of(outer) == 0;
}

static bool is_same_extent(const struct cap *a, const struct cap *b)
{
    return base_of(a) == base_of(b) && bits_of(a) == bits_of(b);
}

static void collect(void)
{
    count = 0;
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct cap *cap = &universe->slot[i]->cap;

        if (!is_device(cap))
            continue;
        require(bits_of(cap) >= 12 && (base_of(cap) & ((1u << bits_of(cap)) - 1)) == 0,
                "P1 a device region or frame is aligned", universe->slot[i]);
        require(base_of(cap) - RAM_BASE >= RAM_BYTES
                && RAM_BASE - base_of(cap) >= 1u << bits_of(cap),
                "P1 a device is no memory", universe->slot[i]);
        require(count < DEVICES_MAX, "(the checker's own limit on devices)", NULL);
        device[count++] = universe->slot[i];
    }
}

static void check_pair(const struct slot *a, const struct slot *b)
{
    bool same_frame = !is_region(&a->cap) && !is_region(&b->cap)
        && is_same_extent(&a->cap, &b->cap);

    if (!is_inside(&a->cap, &b->cap) && !is_inside(&b->cap, &a->cap))
        return;
    require(same_frame || (is_region(&b->cap) && is_inside(&a->cap, &b->cap))
            || (is_region(&a->cap) && is_inside(&b->cap, &a->cap)),
            "P2 two devices overlap only if one is a region", a);
}

/* Another one that was made from the region; one that contains it was not. */
static bool is_made_from(const struct slot *slot, const struct slot *region)
{
    return slot != region && is_inside(&slot->cap, &region->cap)
        && !(is_region(&slot->cap) && is_same_extent(&slot->cap, &region->cap));
}

static void check_region(const struct slot *region)
{
    word_t made = 0;

    require(device_cap_free(&region->cap) <= 1u << (bits_of(&region->cap) - 12),
            "P3 the free mark is inside its region", region);
    for (word_t i = 0; i < count; i++) {
        if (!is_made_from(device[i], region))
            continue;
        made++;
        require(base_of(&device[i]->cap) + (1u << bits_of(&device[i]->cap)) - base_of(&region->cap)
                <= device_cap_free(&region->cap) << 12,
                "P3 a device lies below the free mark", device[i]);
    }
    for (const struct slot *slot = link_to(region->next);
         slot != NULL && is_device(&slot->cap) && is_inside(&slot->cap, &region->cap);
         slot = link_to(slot->next))
        made -= is_made_from(slot, region);
    require(made == 0, "P4 a device in a region was derived from it", region);
}

void check_devices(void)
{
    collect();
    for (word_t i = 0; i < count; i++) {
        for (word_t j = 0; j < i; j++)
            check_pair(device[i], device[j]);
        if (is_region(&device[i]->cap))
            check_region(device[i]);
    }
}
