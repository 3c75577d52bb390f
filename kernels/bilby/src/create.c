/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making objects out of cleared memory: sizes, clearing, first contents,
 * first capability.
 */
#include <kernel.h>
#include <machine.h>
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
        return 0;
    }
}

/*
 * Clear whole cache lines of a chunk, write them back to memory, and drop
 * instructions cached from them: what is made here may be walked or executed.
 */
static void clear_chunk(word_t base)
{
    word_t *line = (word_t *)base;

    /* bound: CHUNK_LINES + 1 */
    for (word_t i = 0; i < CHUNK_LINES; i++) {
        line[0] = 0;
        line[1] = 0;
        line[2] = 0;
        line[3] = 0;
        line[4] = 0;
        line[5] = 0;
        line[6] = 0;
        line[7] = 0;
        machine_publish_line(line);
        line += LINE_BYTES / 4;
    }
}

/* Less than a chunk: 16-byte units. */
static void clear_small(word_t base, word_t bytes)
{
    word_t *unit = (word_t *)base;

    /* bound: CHUNK_BYTES / 16 + 1: bytes is less than a chunk */
    for (word_t left = bytes % CHUNK_BYTES / 16; left != 0; left--) {
        unit[0] = 0;
        unit[1] = 0;
        unit[2] = 0;
        unit[3] = 0;
        unit += 4;
    }
}

/* Clear memory; base and bytes are multiples of 16, at most RETYPE_BYTES_MAX. */
void create_clear(word_t base, word_t bytes)
{
    /* bound: RETYPE_CHUNKS_MAX + 1: bytes is at most the maximum */
    for (word_t chunks = bytes / CHUNK_BYTES; chunks != 0; chunks--) {
        clear_chunk(base);
        base += CHUNK_BYTES;
    }
    clear_small(base, bytes);
    machine_drain();
    machine_flush_prefetch();
}

/* The first capability to an object in cleared memory; a thread also gets its state. */
void create_cap(struct cap *cap, word_t type, word_t base, word_t size_bits)
{
    switch (type) {
    case TYPE_UNTYPED:
        untyped_cap_make(cap, base, size_bits, 0);
        break;
    case TYPE_CNODE:
        cnode_cap_make(cap, base, size_bits, 0, 0);
        break;
    case TYPE_TCB:
        thread_init((struct tcb *)base);
        tcb_cap_make(cap, base);
        break;
    case TYPE_ENDPOINT:
        endpoint_cap_make(cap, base, 1, 1, 1, 0);
        break;
    case TYPE_NOTIFICATION:
        notification_cap_make(cap, base, 1, 1, 0);
        break;
    case TYPE_PAGE_TABLE:
        page_table_cap_make(cap, base);
        break;
    case TYPE_PAGE_DIRECTORY:
        page_directory_cap_make(cap, base);
        break;
    default:
        frame_cap_make(cap, to_physical(base) >> 12, type - TYPE_FRAME_4K, 1, 0, 0);
        break;
    }
}
