/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of devices: retype makes frames out of them, and smaller regions, nothing else.
 *
 * Boot gives the first thread the addresses of the board's devices, except for the pages that the
 * kernel uses.  As in untyped memory, objects lie side by side, from the first unused page on, and
 * all is unused when nothing made from the region exists any more.  Nothing is cleared: an access
 * to a register has an effect.
 *
 * Invariant: every object made from a region lies in it, below its "free" mark.
 */
#include <retype.h>

#define PAGE_BITS 12

/* A frame, or a smaller region. */
static void make_cap(struct cap *cap, const struct retype *plan, word_t page)
{
    if (plan->type == TYPE_UNTYPED) {
        device_cap_make(cap, page, plan->size_bits, 0);
        return;
    }
    create_frame(cap, page << PAGE_BITS, plan->type - TYPE_FRAME_4K);
    frame_cap_set_device(cap, 1);
}

static bool can_be_made(const struct retype *plan)
{
    return plan->object_bits >= PAGE_BITS
        && (plan->type == TYPE_UNTYPED
            || (plan->type >= TYPE_FRAME_4K && plan->type <= TYPE_FRAME_16M));
}

word_t device_retype(struct slot *region, const struct retype *plan)
{
    word_t bits = plan->object_bits - PAGE_BITS;
    word_t all = 1u << (device_cap_size_bits(&region->cap) - PAGE_BITS);
    word_t used = slot_has_child(region) ? device_cap_free(&region->cap) : 0;
    struct cap first, second;
    word_t start, page;

    if (!can_be_made(plan))
        return ERROR_INVALID_ARGUMENT;

    start = (used + (1u << bits) - 1) >> bits << bits;
    if (start >= all || plan->count > (all - start) >> bits)
        return ERROR_NO_MEMORY;

    device_cap_set_free(&region->cap, start + (plan->count << bits));
    page = device_cap_base(&region->cap) + start;
    make_cap(&first, plan, page);
    make_cap(&second, plan, page + (1u << bits));
    slot_fill_row(plan->slots, plan->count, &first, &second);
    slot_insert_row(plan->slots, plan->count, region);
    return ERROR_NONE;
}
