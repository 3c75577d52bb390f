/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: frames of devices that are not the kernel's, out of the regions that boot gives. */
#include "device.h"
#include "tests.h"
#include <board.h>
#include <devices.h>

static bool maps_a_known_device(void)
{
    word_t slots = new_slots(DEVICE_SLOTS), frame, address = 0;

    SAME(device_frame(info, KNOWN_DEVICE, slots, &frame), ERROR_NONE);
    SAME(frame_address(frame, &address), ERROR_NONE);
    SAME(address, KNOWN_DEVICE);
    SAME(DEVICE_REGISTER((word_t)look_at(frame) + KNOWN_REGISTER), KNOWN_VALUE);
    SAME(device_frame(info, KNOWN_DEVICE, new_slots(DEVICE_SLOTS), &frame), ERROR_NO_MEMORY);
    return true;
}

/* Memory, the kernel's own devices, and the devices that are given as frames. */
static bool gives_nothing_else(void)
{
    static const word_t others[] = {
        RAM_BASE, INTERRUPTS_PAGE, TICK_PAGE, UART_BASE, TIMER_BASE, 0, 0xfffff000u,
    };
    word_t slots = new_slots(DEVICE_SLOTS), frame;

    for (word_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        SAME(device_frame(info, others[i], slots, &frame), ERROR_RANGE);
    return true;
}

static bool refuses_other_objects(void)
{
    static const word_t refused[] = { TYPE_CNODE, TYPE_TCB, TYPE_ENDPOINT, TYPE_PAGE_TABLE };
    word_t slot = new_slots(1), region = ROOT_DEVICE + info->device_count - 1;

    for (word_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        SAME(untyped_retype(region, refused[i], 4, ROOT_CNODE, 0, 0, slot, 1),
             ERROR_INVALID_ARGUMENT);
    SAME(untyped_retype(region, TYPE_UNTYPED, 11, ROOT_CNODE, 0, 0, slot, 1),
         ERROR_INVALID_ARGUMENT);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, region, 32, RIGHTS_ALL),
         ERROR_ILLEGAL_OPERATION);
    return true;
}

/* A piece of a region, its frame mapped; revoking the piece takes the mapping along. */
static bool revokes_what_was_given(void)
{
    word_t region = ROOT_DEVICE + info->device_count - 1, piece = new_slots(2), frame = piece + 1;
    word_t address = 0, last = 0;
    struct child looks;

    SAME(untyped_retype(region, TYPE_UNTYPED, 13, ROOT_CNODE, 0, 0, piece, 1), ERROR_NONE);
    SAME(untyped_retype(piece, TYPE_FRAME_4K, 0, ROOT_CNODE, 0, 0, frame, 1), ERROR_NONE);
    SAME(frame_address(frame, &address), ERROR_NONE);
    looks = make_child(tells, 1, 10, 0);
    SAME(frame_map(frame, looks.directory, SCRATCH_BASE, RIGHT_WRITE, 0), ERROR_NO_TABLE);
    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), looks.directory, SCRATCH_BASE), ERROR_NONE);
    SAME(frame_map(frame, looks.directory, SCRATCH_BASE, RIGHT_WRITE, MAP_EXECUTE),
         ERROR_NO_RIGHT);
    SAME(frame_map(frame, looks.directory, SCRATCH_BASE, RIGHT_WRITE, 0), ERROR_NONE);
    SAME(frame_map(frame, looks.directory, SCRATCH_BASE, RIGHT_WRITE, 0), ERROR_ALREADY_MAPPED);
    SAME(frame_clean(frame, 0, 32), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_revoke(ROOT_CNODE, piece, 32), ERROR_NONE);
    SAME(frame_map(make(TYPE_FRAME_4K, 0), looks.directory, SCRATCH_BASE, RIGHT_WRITE, 0),
         ERROR_NONE);
    SAME(untyped_retype(piece, TYPE_FRAME_4K, 0, ROOT_CNODE, 0, 0, frame, 1), ERROR_NONE);
    SAME(frame_address(frame, &last), ERROR_NONE);
    SAME(last, address);
    return true;
}

const struct test device_tests[] = {
    { maps_a_known_device, "a frame of a device is made from its region, and its register read" },
    { gives_nothing_else, "no region has memory, or the kernel's own devices" },
    { refuses_other_objects, "a device region gives frames and smaller regions, nothing else" },
    { revokes_what_was_given, "revoking a piece of a device region unmaps its frames" },
    { NULL, NULL },
};
