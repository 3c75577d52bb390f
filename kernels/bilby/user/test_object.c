/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: making objects, copying and minting capabilities, and refusals. */
#include "tests.h"

/* The loader fills the start of the first untyped region with this program's
   section .dirt, so that cleared memory can be told from untouched memory. */
#define DIRT_WORDS 65536
__attribute__((section(".dirt"), used)) static const word_t dirt[DIRT_WORDS] = {
    [0 ... DIRT_WORDS - 1] = 0xdeadbeef
};

static void small_waiter(word_t value)
{
    receive(CHILD_ENDPOINT);
    tell(value);
    rest();
}

static void small_sender(word_t value)
{
    send(SYS_SEND, CHILD_ENDPOINT, value);
    rest();
}

static bool frames_are_cleared(void)
{
    word_t slot = new_slots(16);
    word_t *frame;

    SAME(untyped_retype(ROOT_UNTYPED, TYPE_FRAME_4K, 0, ROOT_CNODE, 0, 0, slot, 16), 0);
    for (word_t i = 0; i < 16; i++) {
        frame = look_at(slot + i);
        for (word_t j = 0; j < 1024; j++)
            SAME(frame[j], 0);
        frame[5] = i; /* memory, and each its own */
    }
    for (word_t i = 0; i < 16; i++)
        SAME(((word_t *)(SCRATCH_BASE + (i << 12)))[5], i);
    return true;
}

/* Small objects from dirty memory work: nobody waits, nothing is pending. */
static bool small_objects_are_cleared(void)
{
    word_t slot = new_slots(64);

    SAME(untyped_retype(ROOT_UNTYPED, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, slot, 32), 0);
    SAME(untyped_retype(ROOT_UNTYPED, TYPE_ENDPOINT, 0, ROOT_CNODE, 0, 0, slot + 32, 32), 0);
    for (word_t i = 0; i < 32; i += 10) {
        SAME(send(SYS_NB_SEND, slot + 32 + i, 0), 0);
        run_child(small_waiter, i, 10, slot + i, 0);
        run_child(small_sender, i, 9, slot + 32 + i, 0);
        SAME(receive(slot + 32 + i).w[0], i); /* the waiter has blocked, the sender not */
        SAME(send(SYS_SEND, slot + i, 0), 0);
        SAME(wait_report(), i);
    }
    return true;
}

static bool every_type(void)
{
    static const struct { word_t type, bits; } made[] = {
        { TYPE_UNTYPED, 4 }, { TYPE_UNTYPED, 20 }, { TYPE_CNODE, 1 }, { TYPE_CNODE, 12 },
        { TYPE_TCB, 0 }, { TYPE_ENDPOINT, 0 }, { TYPE_NOTIFICATION, 0 },
        { TYPE_FRAME_4K, 0 }, { TYPE_FRAME_64K, 0 }, { TYPE_PAGE_TABLE, 0 },
        { TYPE_PAGE_DIRECTORY, 0 },
    };

    for (word_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        SAME(make_error(made[i].type, made[i].bits, ROOT_CNODE, new_slots(1)), ERROR_NONE);
    return true;
}

/* A CNode made in dirty memory has only empty slots: each can be filled. */
static bool cnode_is_cleared(void)
{
    word_t cnode = make(TYPE_CNODE, 4);
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    for (word_t i = 0; i < 16; i++)
        SAME(cnode_copy(cnode, i, 4, ROOT_CNODE, endpoint, 32, RIGHTS_ALL), 0);
    SAME(cnode_copy(cnode, 3, 4, ROOT_CNODE, endpoint, 32, RIGHTS_ALL), ERROR_SLOT_OCCUPIED);
    return true;
}

static bool untyped_of_untyped(void)
{
    word_t small = make(TYPE_UNTYPED, NOTIFICATION_SIZE_BITS + 2);
    word_t half = NOTIFICATION_SIZE_BITS + 1;
    word_t slot = new_slots(8);

    SAME(untyped_retype(small, TYPE_UNTYPED, half, ROOT_CNODE, 0, 0, slot, 1), 0);
    SAME(untyped_retype(small, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, slot + 1, 1), 0);
    SAME(untyped_retype(small, TYPE_UNTYPED, half, ROOT_CNODE, 0, 0, slot + 2, 1), ERROR_NO_MEMORY);
    SAME(untyped_retype(small, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, slot + 2, 2), ERROR_NO_MEMORY);
    SAME(untyped_retype(small, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, slot + 2, 1), 0);
    SAME(untyped_retype(small, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, slot + 3, 1), ERROR_NO_MEMORY);
    return true;
}

static bool retype_into_nested_node(void)
{
    word_t cnode = make(TYPE_CNODE, 2);
    word_t outer = make(TYPE_CNODE, 3);
    word_t words[] = { TYPE_ENDPOINT, 0, 5, 3, 1, 2 };

    SAME(cnode_copy(outer, 5, 3, ROOT_CNODE, cnode, 32, RIGHTS_ALL), 0);
    SAME(invoke(ROOT_UNTYPED + 1, LABEL_UNTYPED_RETYPE, words, 6, &outer, 1), 0);
    SAME(cnode_copy(cnode, 0, 2, cnode, 1, 2, RIGHTS_ALL), 0);
    SAME(cnode_copy(cnode, 3, 2, cnode, 2, 2, RIGHTS_ALL), 0);
    words[2] = 4; /* an empty slot */
    SAME(invoke(ROOT_UNTYPED + 1, LABEL_UNTYPED_RETYPE, words, 6, &outer, 1),
         ERROR_INVALID_CAPABILITY);
    words[2] = 5, words[3] = 9; /* too deep: 3 + 2 bits lead to an endpoint */
    SAME(invoke(ROOT_UNTYPED + 1, LABEL_UNTYPED_RETYPE, words, 6, &outer, 1),
         ERROR_LOOKUP_FAILED);
    words[3] = 33;
    SAME(invoke(ROOT_UNTYPED + 1, LABEL_UNTYPED_RETYPE, words, 6, &outer, 1), ERROR_RANGE);
    return true;
}

/* RETYPE with everything right but one argument. */
static word_t retype(word_t type, word_t bits, word_t first, word_t count)
{
    return untyped_retype(ROOT_UNTYPED + 1, type, bits, ROOT_CNODE, 0, 0, first, count);
}

static bool retype_errors(void)
{
    word_t slot = new_slots(40);
    word_t words[] = { TYPE_ENDPOINT, 0, 0, 0, slot, 1 };
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    SAME(retype(12, 0, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(~0u, 0, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_UNTYPED, 3, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_UNTYPED, 27, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_CNODE, 0, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_CNODE, 13, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_CNODE, ~0u, slot, 1), ERROR_INVALID_ARGUMENT);
    SAME(retype(TYPE_ENDPOINT, 0, slot, 0), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, slot, 33), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, slot, ~0u), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, 1u << ROOT_RADIX, 1), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, ~0u, 1), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, (1u << ROOT_RADIX) - 1, 2), ERROR_RANGE);
    SAME(retype(TYPE_ENDPOINT, 0, ROOT_CNODE, 1), ERROR_SLOT_OCCUPIED);
    SAME(retype(TYPE_FRAME_1M, 0, slot, 9), ERROR_NO_MEMORY);
    SAME(retype(TYPE_FRAME_16M, 0, slot, 1), ERROR_NO_MEMORY);
    SAME(retype(TYPE_PAGE_DIRECTORY, 0, slot, 2), ERROR_RANGE);
    SAME(retype(TYPE_UNTYPED, 26, slot, 1), ERROR_NO_MEMORY);
    SAME(invoke(ROOT_UNTYPED, LABEL_UNTYPED_RETYPE, words, 6, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(ROOT_UNTYPED, LABEL_UNTYPED_RETYPE, words, 5, &endpoint, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_UNTYPED, LABEL_UNTYPED_RETYPE, words, 6, &endpoint, 1),
         ERROR_INVALID_CAPABILITY);
    SAME(invoke(ROOT_UNTYPED, LABEL_TCB_RESUME, words, 6, &endpoint, 1),
         ERROR_ILLEGAL_OPERATION);
    SAME(retype(TYPE_ENDPOINT, 0, slot, 32), ERROR_NONE);
    return true;
}

static bool copy_errors(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t slot = new_slots(4);
    word_t words[] = { slot, 32, endpoint, 32, RIGHTS_ALL };
    word_t root = ROOT_CNODE;

    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, slot + 1, 32, 7), ERROR_INVALID_CAPABILITY);
    SAME(cnode_copy(ROOT_CNODE, endpoint, 32, ROOT_CNODE, endpoint, 32, 7), ERROR_SLOT_OCCUPIED);
    SAME(cnode_copy(ROOT_CNODE, slot, 0, ROOT_CNODE, endpoint, 32, 7), ERROR_RANGE);
    SAME(cnode_copy(ROOT_CNODE, slot, 33, ROOT_CNODE, endpoint, 32, 7), ERROR_RANGE);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 0, 7), ERROR_RANGE);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, ~0u, 7), ERROR_RANGE);
    SAME(cnode_copy(ROOT_CNODE, slot, 31, ROOT_CNODE, endpoint, 32, 7), ERROR_LOOKUP_FAILED);
    SAME(cnode_copy(ROOT_CNODE, slot | 1u << 31, 32, ROOT_CNODE, endpoint, 32, 7),
         ERROR_LOOKUP_FAILED);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, endpoint, endpoint, 32, 7), ERROR_INVALID_CAPABILITY);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, ROOT_UNTYPED, 32, 7),
         ERROR_ILLEGAL_OPERATION);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, ROOT_IRQ_CONTROL, 32, 7),
         ERROR_ILLEGAL_OPERATION);
    SAME(invoke(ROOT_CNODE, LABEL_CNODE_COPY, words, 4, &root, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_CNODE, LABEL_CNODE_COPY, words, 5, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(ROOT_CNODE, LABEL_CNODE_MINT, words, 5, &root, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_CNODE, 99, words, 5, &root, 1), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 32, 7), ERROR_NONE);
    return true;
}

static bool mint_errors(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cnode = make(TYPE_CNODE, 4);
    word_t tcb = make(TYPE_TCB, 0);
    word_t slot = new_slots(8);

    SAME(cnode_mint(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 32, 7, 1u << 28), ERROR_RANGE);
    SAME(cnode_mint(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 32, 7, (1u << 28) - 1), 0);
    SAME(cnode_mint(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, slot, 32, 7, 3), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_mint(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, tcb, 32, 7, 3), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_mint(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, cnode, 32, 7, guard_data_make(29, 0)),
         ERROR_RANGE);
    SAME(cnode_mint(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, cnode, 32, 7, guard_data_make(2, 4)),
         ERROR_RANGE);
    SAME(cnode_mint(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, cnode, 32, 7, guard_data_make(2, 3)), 0);
    return true;
}

/* Rights that a copy lacks are lacking in its copies too. */
static bool rights_shrink(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t slot = new_slots(4);
    struct message m;

    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, endpoint, 32, RIGHT_RECEIVE), 0);
    SAME(cnode_copy(ROOT_CNODE, slot + 1, 32, ROOT_CNODE, slot, 32, RIGHTS_ALL), 0);
    SAME(send(SYS_SEND, slot + 1, 0), SYSCALL_FAILED | ERROR_NO_RIGHT);
    SAME(cnode_copy(ROOT_CNODE, slot + 2, 32, ROOT_CNODE, endpoint, 32, RIGHT_SEND), 0);
    m = receive(slot + 2);
    SAME(m.badge, SYSCALL_FAILED | ERROR_NO_RIGHT);
    SAME(cnode_copy(ROOT_CNODE, slot + 3, 32, ROOT_CNODE, frame, 32, RIGHT_READ), 0);
    SAME(frame_map(slot + 3, ROOT_PAGE_DIRECTORY, 0x001f0000, RIGHT_WRITE, 0), ERROR_NO_RIGHT);
    SAME(frame_map(slot + 3, ROOT_PAGE_DIRECTORY, 0x001f0000, RIGHT_READ, 0), 0);
    return true;
}

/* ---- threads that do not run, and frames --------------------------------- */

#define REGISTERS 17

/* Written registers are read, as far as a user may choose them. */
static bool registers_are_read(void)
{
    struct child child = make_child(tells, 1, 20, 0);
    word_t words[REGISTERS];
    struct registers r;

    for (word_t i = 0; i < REGISTERS; i++)
        words[i] = 0x00101010u * (i + 1) | 3;
    words[2] = 0xf00000d3u; /* another mode, interrupts masked */
    SAME(invoke(child.tcb, LABEL_TCB_WRITE_REGISTERS, words, REGISTERS, NULL, 0), ERROR_NONE);
    for (word_t i = 0; i < REGISTERS; i++)
        BUFFER[BUFFER_WORDS + i] = 0; /* where they were sent, they are received */
    SAME(tcb_read_registers(child.tcb, &r), ERROR_NONE);
    SAME(r.pc, words[0] & ~3u);
    SAME(r.sp, words[1]);
    SAME(r.cpsr, 0xf0000150u);
    for (word_t i = 0; i < 13; i++)
        SAME(r.r[i], words[3 + i]);
    SAME(r.lr, words[16]);
    SAME(tcb_read_registers(ROOT_TCB, &r), ERROR_ILLEGAL_OPERATION);
    return true;
}

/* A thread that was stopped in a call goes on elsewhere and comes back. */
static bool a_stopped_thread_is_moved(void)
{
    struct child child = make_child(tells, 3, 20, 0);
    struct registers first, r;

    SAME(tcb_read_registers(child.tcb, &first), ERROR_NONE);
    start(&child);
    SAME(wait_report(), 3);
    let_others_run();
    SAME(tcb_read_registers(child.tcb, &r), ERROR_ILLEGAL_OPERATION); /* it waits */
    SAME(tcb_suspend(child.tcb), ERROR_NONE);
    SAME(tcb_read_registers(child.tcb, &r), ERROR_NONE);
    SAME(r.r[7], SYS_RECEIVE);
    SAME(tcb_write_registers(child.tcb, first.pc, first.sp, first.cpsr, 4), ERROR_NONE);
    SAME(tcb_resume(child.tcb), ERROR_NONE);
    SAME(wait_report(), 4);
    return true;
}

/* The same thread in another capability space, in which others hear of it. */
static bool a_thread_is_configured_again(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t node = make(TYPE_CNODE, CHILD_RADIX);
    word_t space = badged(node, RIGHTS_ALL, guard_data_make(32 - CHILD_RADIX, 0));
    word_t buffer = make(TYPE_FRAME_4K, 0);
    struct child child = make_child(tells, 5, 20, 0);
    struct registers r;

    SAME(cnode_copy(space, CHILD_REPORT, 32, ROOT_CNODE, endpoint, 32, RIGHTS_ALL), ERROR_NONE);
    SAME(tcb_read_registers(child.tcb, &r), ERROR_NONE);
    SAME(tcb_configure(child.tcb, 0, space, child.directory, buffer, 0), ERROR_ILLEGAL_OPERATION);
    SAME(tcb_unconfigure(ROOT_TCB), ERROR_ILLEGAL_OPERATION);
    SAME(tcb_unconfigure(child.tcb), ERROR_NONE);
    SAME(tcb_resume(child.tcb), ERROR_ILLEGAL_OPERATION);
    SAME(tcb_unconfigure(child.tcb), ERROR_NONE);
    SAME(tcb_configure(child.tcb, 0, space, child.directory, buffer, 0), ERROR_NONE);
    SAME(tcb_resume(child.tcb), ERROR_NONE);
    SAME(receive(endpoint).w[0], 5);
    SAME(tcb_suspend(child.tcb), ERROR_NONE); /* it would not rest there */
    return true;
}

static bool frames_have_addresses(void)
{
    word_t first = 0, next = 0, copied = 0;
    word_t frame = make(TYPE_FRAME_4K, 0);

    SAME(frame_address(ROOT_IMAGE, &first), ERROR_NONE);
    SAME(frame_address(ROOT_IMAGE + 1, &next), ERROR_NONE);
    SAME(first % 0x00100000, 0);
    SAME(next, first + 4096);
    SAME(frame_address(ROOT_FRAME_1M, &next), ERROR_NONE);
    SAME(next, first + 0x00100000); /* as boards/ram.h has them */
    SAME(frame_address(frame, &first), ERROR_NONE);
    SAME(frame_address(copy_of(frame), &copied), ERROR_NONE);
    SAME(copied, first);
    return true;
}

const struct test object_tests[] = {
    { frames_are_cleared, "frames made from dirty memory read as zero and are writable" },
    { small_objects_are_cleared, "notifications and endpoints made from dirty memory work" },
    { every_type, "every type of object can be made" },
    { cnode_is_cleared, "a new CNode has only empty slots, and a slot is filled once" },
    { untyped_of_untyped, "untyped memory is handed out once, to the last byte" },
    { retype_into_nested_node, "retype fills a CNode found by index and depth" },
    { retype_errors, "retype refuses wrong types, sizes, counts and places" },
    { copy_errors, "copy refuses empty, occupied, missing and uncopyable slots" },
    { mint_errors, "mint refuses badges over 28 bits, second badges and impossible guards" },
    { rights_shrink, "rights can be removed and do not come back" },
    { registers_are_read, "registers of a thread that does not run are read as written" },
    { a_stopped_thread_is_moved, "a stopped thread goes on where it is told" },
    { a_thread_is_configured_again, "a stopped thread is configured again, in other spaces" },
    { frames_have_addresses, "a frame tells its physical address" },
    { NULL, NULL },
};
