/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making objects out of cleared memory: sizes, clearing, first contents,
 * first capability.
 */
#include <kernel.h>
#include <machine.h>
#include <pin.h>
#include <timing.h>
#include <layout_sizes.h>

/* log2 of the bytes of an object; 0 if there is no such object. */
word_t create_size_bits(word_t type, word_t size_bits)
{
    switch (type) {
    case TYPE_UNTYPED:
        return size_bits >= UNTYPED_BITS_MIN && size_bits <= UNTYPED_BITS_MAX
            ? size_bits : 0;
    case TYPE_CNODE:
        return size_bits >= 1 && size_bits <= CNODE_RADIX_MAX
            ? size_bits + SLOT_SIZE_BITS : 0;
    case TYPE_TCB:
        return TCB_SIZE_BITS;
    case TYPE_ENDPOINT:
        return ENDPOINT_SIZE_BITS;
    case TYPE_NOTIFICATION:
        return NOTIFICATION_SIZE_BITS;
    case TYPE_FRAME_4K:
        return 12;
    case TYPE_FRAME_64K:
        return 16;
    case TYPE_FRAME_1M:
        return 20;
    case TYPE_FRAME_16M:
        return 24;
    case TYPE_PAGE_TABLE:
        return PAGE_TABLE_SIZE_BITS;
    case TYPE_PAGE_DIRECTORY:
        return PAGE_DIRECTORY_SIZE_BITS;
    default:
        return timing_size_bits(type);
    }
}

/* Clear the first or last 16 bytes of a chunk that ends inside a line. */
static void clear_half(word_t *half)
{
    half[0] = 0;
    half[1] = 0;
    half[2] = 0;
    half[3] = 0;
    machine_clean_line(half);
}

/*
 * Clear at most a chunk; base and bytes are multiples of 16. Each line is read first, so that it
 * is in the cache when it is written, and then cleaned to memory: a table made here may be
 * walked.
 */
void create_clear_chunk(word_t base, word_t bytes)
{
    word_t *line = (word_t *)base;
    word_t left;

    if (base % LINE_BYTES != 0 && bytes != 0) {
        clear_half(line);
        line += LINE_WORDS / 2;
        bytes -= LINE_BYTES / 2;
    }
    left = bytes / LINE_BYTES;
    /* bound: CHUNK_LINES + 1: bytes is at most a chunk */
    for (left = left < CHUNK_LINES ? left : CHUNK_LINES; left != 0; left--) {
        line = (word_t *)in_window((word_t)line, LINE_BYTES);
        FETCH_LINE(line);
        line[0] = 0;
        line[1] = 0;
        line[2] = 0;
        line[3] = 0;
        line[4] = 0;
        line[5] = 0;
        line[6] = 0;
        line[7] = 0;
        machine_clean_line(line);
        line += LINE_WORDS;
    }
    if (bytes % LINE_BYTES != 0)
        clear_half(line);
    machine_drain();
}

/* Write back and drop these lines, a chunk at most: user data is then in memory only. */
void create_clean_chunk(word_t base, word_t bytes)
{
    word_t line = base;
    word_t left = bytes / LINE_BYTES;

    /* bound: CHUNK_LINES + 1: bytes is at most a chunk */
    for (left = left < CHUNK_LINES ? left : CHUNK_LINES; left != 0; left--) {
        machine_clean_and_forget_line((const void *)line);
        line += LINE_BYTES;
    }
    machine_drain();
    pin_reach_memory(base, bytes);
}

/* A frame of RAM, mapped nowhere. */
void create_frame(struct cap *cap, word_t physical, word_t size)
{
    cap->w[0] = CAP_FRAME;
    cap->w[1] = 0;
    frame_cap_set_base(cap, physical >> 12);
    frame_cap_set_size(cap, size);
    frame_cap_set_can_write(cap, 1);
}

/* The first capability to an object in cleared memory. */
void create_cap(struct cap *cap, word_t type, word_t base, word_t size_bits)
{
    switch (type) {
    case TYPE_UNTYPED:
        untyped_cap_make(cap, base, size_bits, 0, 0);
        break;
    case TYPE_CNODE:
        cnode_cap_make(cap, base, size_bits, 0, 0, 0);
        break;
    case TYPE_TCB:
        tcb_cap_make(cap, base);
        break;
    case TYPE_ENDPOINT:
        endpoint_cap_make(cap, base, 1, 1, 1, 0);
        break;
    case TYPE_NOTIFICATION:
        notification_cap_make(cap, base, 1, 1, 0);
        break;
    case TYPE_PAGE_TABLE:
        space_make_table(cap, base);
        break;
    case TYPE_PAGE_DIRECTORY:
        space_make_directory(cap, base);
        break;
    default:
        if (timing_create(cap, type, base))
            break;
        create_frame(cap, to_physical(base), type - TYPE_FRAME_4K);
        break;
    }
}
