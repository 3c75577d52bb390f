/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building the first thread, once, in the order in which boot_main calls.
 *
 * The program was loaded at USER_IMAGE; its first words say how large it is.
 * Everything else that is free becomes untyped memory of the first thread, but
 * for two large frames.
 */
#include <kernel.h>
#include <interrupts.h>
#include <kernel_maps.h>
#include <lookup.h>
#include <machine.h>
#include <pin.h>
#include <space.h>
#include <timer.h>
#include <timing.h>
#include <layout_sizes.h>
#include <vspace.h>

struct region { word_t base, bits; };

static word_t heap;
static struct tcb *root;
static struct slot *root_slots;
static struct page_directory *root_directory;

void boot_main(void);

/* Clear memory: whole chunks, or less than one. */
BOOT_CODE static void boot_clear(word_t base, word_t bytes)
{
    word_t piece = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;

    /* bound: BOOT_CHUNKS + 1 */
    for (word_t done = 0; done < bytes; done += piece)
        create_clear_chunk(base + done, piece);
}

/* Cleared memory of 2^bits bytes, aligned. */
BOOT_CODE static word_t boot_allocate(word_t bits)
{
    word_t size = 1u << bits;
    word_t base = (heap + size - 1) & ~(size - 1);

    heap = base + size;
    boot_clear(base, size);
    return base;
}

/* A slot of the root CNode, alone in its derivation list. */
BOOT_CODE static struct slot *root_slot(word_t index)
{
    root_slots[index].prev = 3;
    return &root_slots[index];
}

BOOT_CODE static void make_space(void)
{
    root_slots = (struct slot *)boot_allocate(ROOT_RADIX + SLOT_SIZE_BITS);
    cnode_cap_make(&root_slot(ROOT_CNODE)->cap, (word_t)root_slots, ROOT_RADIX,
                   ADDRESS_BITS - ROOT_RADIX, 0, 0);
    irq_control_cap_make(&root_slot(ROOT_IRQ_CONTROL)->cap);

    root_directory = (struct page_directory *)boot_allocate(PAGE_DIRECTORY_SIZE_BITS);
    kernel_maps_copy(root_directory);
    space_init(root_directory);
    space_make_directory(&root_slot(ROOT_PAGE_DIRECTORY)->cap, (word_t)root_directory);
    if (SPACE_BOOT_BITS != 0)
        space_boot(root_slot(ROOT_ASID_CONTROL), root_slot(ROOT_ASID_POOL),
                   boot_allocate(SPACE_BOOT_BITS), &root_slots[ROOT_PAGE_DIRECTORY]);
    space_make_table(&root_slot(ROOT_PAGE_TABLE)->cap, boot_allocate(PAGE_TABLE_SIZE_BITS));
    space_note(&root_slots[ROOT_PAGE_TABLE].cap, IMAGE_BASE,
               &root_slots[ROOT_PAGE_DIRECTORY].cap);
    vspace_map_table(&root_slots[ROOT_PAGE_TABLE],
                     &root_directory->descriptor[IMAGE_BASE >> 20]);
}

BOOT_CODE static void make_frame(struct slot *slot, word_t physical, word_t size,
                                 bool writable, bool device)
{
    create_frame(&slot->cap, physical, size);
    frame_cap_set_can_write(&slot->cap, writable);
    frame_cap_set_device(&slot->cap, device);
}

/* A 4 KiB frame of RAM in a slot, mapped into the first thread's space. */
BOOT_CODE static void map_frame(word_t index, word_t physical, word_t address, bool writable)
{
    struct slot *slot = root_slot(index);
    word_t *entry = NULL;

    make_frame(slot, physical, SIZE_4K, writable, false);
    if (vspace_find(root_directory, address, SIZE_4K, &entry) != ERROR_NONE)
        kernel_panic();
    space_note(&slot->cap, address, &root_slots[ROOT_PAGE_DIRECTORY].cap);
    vspace_write(slot, entry, physical | PAGE_SMALL | PAGE_LOCAL | MEMORY_CACHED | PIN_THROUGH_SMALL
                 | (writable ? PAGE_WRITE | PAGE_SMALL_NEVER : PAGE_READ), SIZE_4K);
}

/* The program: executable frames, then writable ones. */
BOOT_CODE static word_t map_image(struct boot_info *info)
{
    const word_t *image = (const word_t *)to_window(USER_IMAGE);
    word_t text = image[IMAGE_TEXT_BYTES / 4];
    word_t bytes = image[IMAGE_BYTES / 4];

    if (image[0] != IMAGE_MAGIC || text > bytes || bytes > IMAGE_BYTES_MAX)
        kernel_panic();
    info->text_frames = text >> 12;
    info->image_frames = (bytes + 4095) >> 12;
    /* bound: BOOT_IMAGE_FRAMES + 1: IMAGE_BYTES_MAX was checked */
    for (word_t i = 0; i < info->image_frames; i++)
        map_frame(ROOT_IMAGE + i, USER_IMAGE + (i << 12), IMAGE_BASE + (i << 12),
                  i >= info->text_frames);
    return image[IMAGE_ENTRY / 4];
}

BOOT_CODE static void make_thread(word_t entry, word_t buffer)
{
    root = (struct tcb *)boot_allocate(TCB_SIZE_BITS);
    thread_init(root);
    tcb_cap_make(&root_slot(ROOT_TCB)->cap, (word_t)root);
    slot_copy(&root->cspace, &root_slots[ROOT_CNODE].cap, &root_slots[ROOT_CNODE]);
    slot_copy(&root->vspace, &root_slots[ROOT_PAGE_DIRECTORY].cap,
              &root_slots[ROOT_PAGE_DIRECTORY]);
    root->buffer = (struct ipc_buffer *)buffer;
    root->priority = PRIORITIES - 1;
    lookup_set_priority(root, root->priority);
    root->regs[0] = ROOT_INFO;
    thread_set_pc(root, entry, 0);
}

BOOT_CODE static void give_device(word_t index, word_t physical)
{
    make_frame(root_slot(index), physical, SIZE_4K, true, true);
}

/*
 * Large frames, cleared here; then all the rest as untyped memory, cleared too but
 * for the first bytes of the first region, which count as used until its first retype.
 */
BOOT_CODE static void give_memory(struct boot_info *info)
{
    static const struct region regions[] BOOT_CONST = UNTYPED_REGIONS;
    word_t count = sizeof(regions) / sizeof(regions[0]);
    word_t dirty = DIRT_BYTES;

    boot_clear(to_window(ROOT_FRAME_1M_BASE), 1024 * 1024);
    boot_clear(to_window(ROOT_FRAME_16M_BASE), 16 * 1024 * 1024);
    make_frame(root_slot(ROOT_FRAME_1M), ROOT_FRAME_1M_BASE, SIZE_1M, true, false);
    make_frame(root_slot(ROOT_FRAME_16M), ROOT_FRAME_16M_BASE, SIZE_16M, true, false);
    machine_forget_instructions();
    info->untyped_count = count;
    /* bound: BOOT_UNTYPEDS + 1 */
    for (word_t i = 0; i < count; i++) {
        info->untyped_bits[i] = regions[i].bits;
        boot_clear(to_window(regions[i].base) + dirty, (1u << regions[i].bits) - dirty);
        untyped_cap_make(&root_slot(ROOT_UNTYPED + i)->cap, to_window(regions[i].base),
                         regions[i].bits, dirty >> 4, 0);
        dirty = 0;
    }
}

/* The addresses of the board's devices, except for the frames that are given separately. */
BOOT_CODE static void give_devices(struct boot_info *info)
{
    static const struct region regions[] BOOT_CONST = DEVICE_REGIONS;
    word_t count = sizeof(regions) / sizeof(regions[0]);

    info->device_count = count;
    /* bound: BOOT_DEVICES + 1 */
    for (word_t i = 0; i < count; i++) {
        info->device_base[i] = regions[i].base;
        info->device_bits[i] = regions[i].bits;
        device_cap_make(&root_slot(ROOT_DEVICE + i)->cap, regions[i].base >> 12, regions[i].bits, 0);
    }
}

/* The idle thread runs in system mode, so that it may wait for interrupts. */
BOOT_CODE static void make_idle(void)
{
    idle_thread.regs[REG_CPSR] = CPSR_IDLE;
    idle_thread.regs[REG_PC] = (word_t)idle_loop;
    current_saved = &idle_thread;
    current_thread = current_saved;
    delete_init();
}

/* Called by boot.S in the kernel window; returns into the first thread. */
BOOT_CODE void boot_main(void)
{
    struct boot_info *info;
    word_t buffer, entry;

    kernel_directory.descriptor[RAM_BASE >> 20] = 0;
    machine_clean_line(&kernel_directory.descriptor[RAM_BASE >> 20]);
    machine_drain();
    machine_tlb_flush();
    interrupts_init();
    make_idle();

    heap = to_window(BOOT_HEAP);
    make_space();
    info = (struct boot_info *)boot_allocate(12);
    buffer = boot_allocate(12);
    map_frame(ROOT_INFO_FRAME, to_physical((word_t)info), ROOT_INFO, false);
    map_frame(ROOT_BUFFER_FRAME, to_physical(buffer), ROOT_BUFFER, true);
    entry = map_image(info);
    make_thread(entry, buffer);
    if (TIMING_BOOT_BITS != 0)
        timing_boot(root, root_slot(ROOT_SCHED_CONTROL), root_slot(ROOT_CONTEXT),
                    boot_allocate(TIMING_BOOT_BITS));
    slot_copy(&root->buffer_frame, &root_slots[ROOT_BUFFER_FRAME].cap,
              &root_slots[ROOT_BUFFER_FRAME]);
    vspace_forget_mapping(&root->buffer_frame.cap);
    frame_cap_set_buffer(&root->buffer_frame.cap, 1);
    give_device(ROOT_UART_FRAME, UART_BASE);
    give_device(ROOT_TIMER_FRAME, TIMER_BASE);
    give_devices(info);
    give_memory(info);
    thread_wake(root);
    sched_run();
    timer_start();
    interrupts_unmask(TICK_IRQ);
    pin_outer();
    pin_lines();
}
