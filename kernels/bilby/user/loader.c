/* SPDX-License-Identifier: BSD-2-Clause */
/* See loader.h. */
#include "loader.h"

#define PAGE_BYTES    4096u
#define SEGMENTS_MAX  8
#define SEGMENT_BYTES 32u
#define PT_LOAD       1
#define MAY_EXECUTE   1
#define MAY_WRITE     2

/* One that is loaded: where it stands in memory and in the file. */
struct segment {
    word_t address, bytes, offset, file_bytes, flags;
};

struct segments {
    struct segment segment[SEGMENTS_MAX];
    word_t count;
};

static word_t half_at(const struct file *elf, word_t offset)
{
    return elf->start[offset] | (word_t)elf->start[offset + 1] << 8;
}

static word_t word_at(const struct file *elf, word_t offset)
{
    return half_at(elf, offset) | half_at(elf, offset + 2) << 16;
}

/* 32 bits, little-endian, version 1; executable, for ARM. */
static bool is_program(const struct file *elf)
{
    return elf->bytes >= 52 && word_at(elf, 0) == 0x464c457f
        && (word_at(elf, 4) & 0xffffff) == 0x010101 && word_at(elf, 16) == 0x00280002;
}

static bool is_well_placed(const struct segment *segment)
{
    return segment->address % PAGE_BYTES == 0 && segment->address >= PAGE_BYTES
        && segment->address < LOADER_TOP && segment->bytes <= LOADER_TOP - segment->address;
}

static bool overlap(const struct segment *a, const struct segment *b)
{
    word_t first = a->address < b->address ? a->address : b->address;
    const struct segment *low = first == a->address ? a : b;
    const struct segment *high = low == a ? b : a;

    return high->address - low->address < ((low->bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1));
}

static enum load_result read_segment(const struct file *elf, word_t header, struct segments *all)
{
    struct segment segment = {
        .address = word_at(elf, header + 8), .bytes = word_at(elf, header + 20),
        .offset = word_at(elf, header + 4), .file_bytes = word_at(elf, header + 16),
        .flags = word_at(elf, header + 24),
    };

    if (word_at(elf, header) != PT_LOAD || segment.bytes == 0)
        return LOAD_DONE;
    if (all->count == SEGMENTS_MAX || segment.file_bytes > segment.bytes
        || segment.offset > elf->bytes || segment.file_bytes > elf->bytes - segment.offset)
        return LOAD_DAMAGED;
    if (!is_well_placed(&segment))
        return LOAD_MISPLACED;
    for (word_t i = 0; i < all->count; i++)
        if (overlap(&all->segment[i], &segment))
            return LOAD_MISPLACED;
    all->segment[all->count++] = segment;
    return LOAD_DONE;
}

static enum load_result read_segments(const struct file *elf, struct segments *all)
{
    word_t headers, count;

    if (!is_program(elf))
        return LOAD_NO_ELF;
    headers = word_at(elf, 28);
    count = half_at(elf, 44);
    if (half_at(elf, 42) != SEGMENT_BYTES || headers > elf->bytes
        || count * SEGMENT_BYTES > elf->bytes - headers)
        return LOAD_DAMAGED;
    for (word_t i = 0; i < count; i++) {
        enum load_result result = read_segment(elf, headers + i * SEGMENT_BYTES, all);

        if (result != LOAD_DONE)
            return result;
    }
    return all->count == 0 ? LOAD_DAMAGED : LOAD_DONE;
}

/* A frame, with a page of the segment, mapped nowhere; the rest is zero, as every new frame is. */
static word_t make_page(const struct file *elf, const struct segment *segment, word_t done)
{
    word_t frame = make(TYPE_FRAME_4K, 0);
    unsigned char *page = look_at(frame);
    word_t left = done < segment->file_bytes ? segment->file_bytes - done : 0;

    for (word_t i = 0; i < left && i < PAGE_BYTES; i++)
        page[i] = elf->start[segment->offset + done + i];
    if (segment->flags & MAY_EXECUTE)
        for (word_t i = 0; i < PAGE_BYTES; i += FRAME_CLEAN_BYTES_MAX)
            require(frame_publish(frame, i, FRAME_CLEAN_BYTES_MAX), "publish");
    require(frame_unmap(frame), "program page");
    return frame;
}

static void map_page(struct process *process, word_t frame, word_t address, word_t flags)
{
    word_t rights = flags & MAY_WRITE ? RIGHT_READ | RIGHT_WRITE : RIGHT_READ;
    word_t how = flags & MAY_EXECUTE ? MAP_EXECUTE : 0;
    word_t error = frame_map(frame, process->directory, address, rights, how);

    if (error == ERROR_NO_TABLE) {
        require(page_table_map(make(TYPE_PAGE_TABLE, 0), process->directory,
                               address & ~((1u << 20) - 1)), "program table");
        error = frame_map(frame, process->directory, address, rights, how);
    }
    require(error, "program page");
}

static void load_segment(struct process *process, const struct file *elf,
                         const struct segment *segment)
{
    for (word_t done = 0; done < segment->bytes; done += PAGE_BYTES)
        map_page(process, make_page(elf, segment, done), segment->address + done, segment->flags);
}

static void make_spaces(struct process *process)
{
    word_t cnode = make(TYPE_CNODE, OWN_RADIX);

    process->cnode = badged(cnode, RIGHTS_ALL, guard_data_make(32 - OWN_RADIX, 0));
    process->directory = make(TYPE_PAGE_DIRECTORY, 0);
    process_give(process, OWN_CNODE, process->cnode, RIGHTS_ALL, 0);
    process_give(process, OWN_DIRECTORY, process->directory, RIGHTS_ALL, 0);
}

static word_t make_thread(const struct process *process, word_t slot, word_t priority, word_t buffer)
{
    word_t thread = make(TYPE_TCB, 0);

    require(tcb_configure(thread, OWN_FAULTS, process->cnode, process->directory, buffer, 0),
            "program thread");
    require(tcb_set_priority(thread, priority), "program priority");
    process_give(process, slot, thread, RIGHTS_ALL, 0);
    give_time(thread);
    return thread;
}

enum load_result process_load(struct process *process, const struct file *elf, word_t priority)
{
    struct segments all = { .count = 0 };
    enum load_result result = read_segments(elf, &all);
    word_t buffer;

    if (result != LOAD_DONE)
        return result;
    process->entry = word_at(elf, 24);
    make_spaces(process);
    for (word_t i = 0; i < all.count; i++)
        load_segment(process, elf, &all.segment[i]);
    buffer = make(TYPE_FRAME_4K, 0);
    map_page(process, buffer, ROOT_BUFFER, MAY_WRITE);
    process->thread = make_thread(process, OWN_THREAD, priority, buffer);
    process->second = 0;
    return LOAD_DONE;
}

void process_second(struct process *process, word_t priority)
{
    process->second = make_thread(process, OWN_SECOND, priority, 0);
}

void process_give(const struct process *process, word_t slot, word_t from, word_t rights,
                  word_t badge)
{
    word_t error = badge
        ? cnode_mint(process->cnode, slot, 32, ROOT_CNODE, from, 32, rights, badge)
        : cnode_copy(process->cnode, slot, 32, ROOT_CNODE, from, 32, rights);

    require(error, "program capability");
}

void process_give_device(const struct process *process, word_t frame)
{
    require(frame_map(copy_of(frame), process->directory, DEVICE_ADDRESS, RIGHT_WRITE, 0),
            "program device");
}

void process_give_line(const struct process *process, word_t irq)
{
    word_t line = new_slots(1);
    word_t notification = make(TYPE_NOTIFICATION, 0);

    require(irq_get(irq, ROOT_CNODE, line, 32), "program line");
    require(irq_set_notification(line, notification), "program line");
    process_give(process, OWN_LINE, line, RIGHTS_ALL, 0);
    process_give(process, OWN_INTERRUPTS, notification, RIGHT_RECEIVE, 0);
}

void process_start(const struct process *process, word_t argument)
{
    require(tcb_write_registers(process->thread, process->entry, 0, 0, argument), "program start");
    require(tcb_resume(process->thread), "program start");
}
