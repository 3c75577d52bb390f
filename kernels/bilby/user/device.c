/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#define PAGE_BITS 12

static word_t make_one(word_t region, word_t type, word_t bits, word_t slot)
{
    return untyped_retype(region, type, bits, ROOT_CNODE, 0, 0, slot, 1);
}

/* The rest of a region before the page, in pieces from the largest on. */
static word_t skip(word_t region, word_t offset, word_t bits, word_t *slot)
{
    for (word_t bit = bits; bit-- > PAGE_BITS;) {
        word_t error;

        if (!(offset >> bit & 1))
            continue;
        error = make_one(region, TYPE_UNTYPED, bit, *slot);
        if (error)
            return error;
        ++*slot;
    }
    return ERROR_NONE;
}

/* The frame is where it was to be: the region was not used before. */
static word_t check_address(word_t frame, word_t physical)
{
    word_t address = 0;
    word_t error = frame_address(frame, &address);

    if (error || address == physical)
        return error;
    cnode_delete(ROOT_CNODE, frame, 32);
    return ERROR_NO_MEMORY;
}

word_t device_frame(const struct boot_info *info, word_t physical, word_t slots, word_t *frame)
{
    for (word_t i = 0; i < info->device_count; i++) {
        word_t offset = physical - info->device_base[i];
        word_t error;

        if (offset >> info->device_bits[i])
            continue;
        *frame = slots;
        error = skip(ROOT_DEVICE + i, offset, info->device_bits[i], frame);
        if (!error)
            error = make_one(ROOT_DEVICE + i, TYPE_FRAME_4K, 0, *frame);
        return error ? error : check_address(*frame, physical);
    }
    return ERROR_RANGE;
}
