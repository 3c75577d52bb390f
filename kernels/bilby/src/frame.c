/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invocations of frames: map, once per capability, and unmap; clean, and publish, a piece of one;
 * the physical address.
 */
#include <kernel.h>
#include <pin.h>
#include <space.h>
#include <vspace.h>

static word_t memory_type(const struct cap *frame, word_t flags)
{
    if (frame_cap_device(frame))
        return MEMORY_DEVICE;
    if (flags & MAP_UNCACHED)
        return MEMORY_UNCACHED;
    return MEMORY_CACHED | (frame_cap_size(frame) == SIZE_4K ? PIN_THROUGH_SMALL : PIN_THROUGH_LARGE);
}

/* The descriptor for a frame: user access, tagged with the address space. */
static word_t descriptor(const struct cap *frame, bool write, bool execute, word_t type)
{
    word_t base = frame_cap_base(frame) << 12;

    switch (frame_cap_size(frame)) {
    case SIZE_4K:
        return base | PAGE_SMALL | PAGE_LOCAL | type | (write ? PAGE_WRITE : PAGE_READ)
            | (execute ? 0 : PAGE_SMALL_NEVER);
    case SIZE_64K:
        return base | PAGE_LARGE | PAGE_LOCAL | type | (write ? PAGE_WRITE : PAGE_READ)
            | (execute ? 0 : PAGE_LARGE_NEVER);
    case SIZE_1M:
        return base | SECTION | SECTION_LOCAL | type
            | (write ? SECTION_WRITE : SECTION_READ) | (execute ? 0 : SECTION_NEVER);
    default:
        return base | SECTION | SECTION_SUPER | SECTION_LOCAL | type
            | (write ? SECTION_WRITE : SECTION_READ) | (execute ? 0 : SECTION_NEVER);
    }
}

/*
 * Clean, or publish, a piece of a frame: a chunk at most, so that one call is short.  It is done
 * by window addresses: both cores find a line of data by its physical address.
 */
static word_t decode_clean(const struct invocation *call)
{
    const struct cap *frame = &call->slot->cap;
    word_t size = 1u << (12 + 4 * frame_cap_size(frame));
    word_t first, bytes, base;

    if (call->length < 2)
        return ERROR_TRUNCATED;

    if (frame_cap_device(frame))
        return ERROR_ILLEGAL_OPERATION;

    first = message_word(current_thread, 0);
    bytes = message_word(current_thread, 1);
    if (first % LINE_BYTES != 0 || bytes % LINE_BYTES != 0)
        return ERROR_ALIGNMENT;

    if (bytes > FRAME_CLEAN_BYTES_MAX || first > size || bytes > size - first)
        return ERROR_RANGE;

    base = to_window(frame_cap_base(frame) << 12) + first;
    create_clean_chunk(base, bytes);
    if (call->label == LABEL_FRAME_PUBLISH)
        pin_forget_written(base, bytes);
    return ERROR_NONE;
}

word_t decode_frame(const struct invocation *call)
{
    struct slot *slot = call->slot;
    const struct cap *frame = &slot->cap;
    word_t size = frame_cap_size(frame);
    word_t address, rights, flags, error;
    word_t *entry = NULL;
    bool write;

    if (call->label == LABEL_FRAME_UNMAP) {
        vspace_unmap_frame(slot);
        return ERROR_NONE;
    }

    if (call->label == LABEL_FRAME_ADDRESS) {
        current_thread->regs[REG_WORDS] = frame_cap_base(frame) << 12;
        return 1u << ANSWER_SHIFT;
    }

    if (call->label == LABEL_FRAME_CLEAN || call->label == LABEL_FRAME_PUBLISH)
        return decode_clean(call);

    if (call->label != LABEL_FRAME_MAP)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < 3 || call->extra_count < 1)
        return ERROR_TRUNCATED;

    if (cap_type(&call->extra[0]->cap) != CAP_PAGE_DIRECTORY)
        return ERROR_INVALID_CAPABILITY;

    if (space_directory(&call->extra[0]->cap) == NULL)
        return ERROR_INVALID_CAPABILITY;

    if (space_is_mapped(frame))
        return ERROR_ALREADY_MAPPED;

    address = message_word(current_thread, 0);
    if (address >= WINDOW_BASE)
        return ERROR_RANGE;

    if (address & ((1u << (12 + 4 * size)) - 1))
        return ERROR_ALIGNMENT;

    rights = message_word(current_thread, 1);
    write = rights & RIGHT_WRITE;
    if (write && !frame_cap_can_write(frame))
        return ERROR_NO_RIGHT;

    flags = message_word(current_thread, 2);
    if ((flags & MAP_EXECUTE) && frame_cap_device(frame))
        return ERROR_NO_RIGHT;

    error = vspace_find(space_directory(&call->extra[0]->cap), address, size, &entry);
    if (error != ERROR_NONE)
        return error;

    space_note(&slot->cap, address, &call->extra[0]->cap);
    vspace_write(slot, entry,
                 descriptor(frame, write, flags & MAP_EXECUTE, memory_type(frame, flags)),
                 size);
    return ERROR_NONE;
}
