/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: capability spaces and address spaces, and configuring threads. */
#include "tests.h"

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)

/* ---- capability spaces ------------------------------------------------------ */

#define DEEP_ADDRESS 0x5a3cc3a6u

static word_t bit_of(word_t address, word_t level)
{
    return address >> (31 - level) & 1;
}

/* 32 CNodes of two slots; the capability at slot "leaf" ends up at DEEP_ADDRESS. */
static word_t deep_space(word_t leaf)
{
    word_t nodes = new_slots(32);

    require(untyped_retype(ROOT_UNTYPED + 2, TYPE_CNODE, 1, ROOT_CNODE, 0, 0, nodes, 32),
            "deep nodes");
    for (word_t level = 0; level < 32; level++)
        require(cnode_copy(nodes + level, bit_of(DEEP_ADDRESS, level), 1, ROOT_CNODE,
                           level == 31 ? leaf : nodes + level + 1, 32, RIGHTS_ALL),
                "deep link");
    return nodes;
}

/* Sends through every address that differs in one bit, then through the right one. */
static void deep_sender(word_t unused)
{
    word_t wrong = 0;

    (void)unused;
    for (word_t bit = 0; bit < 32; bit++) {
        word_t error = send(SYS_NB_SEND, DEEP_ADDRESS ^ 1u << bit, 0);

        wrong += error != (SYSCALL_FAILED
                           | (bit == 0 ? ERROR_INVALID_CAPABILITY : ERROR_LOOKUP_FAILED));
    }
    send(SYS_SEND, DEEP_ADDRESS, 7000 + wrong);
    call(DEEP_ADDRESS, 0, 0); /* not answered: the end */
}

static bool deep_lookup(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t leaf = badged(endpoint, RIGHT_SEND, 32);
    word_t nodes = deep_space(leaf);
    struct child child = make_child(deep_sender, 0, 10, 0);
    word_t tcb = make(TYPE_TCB, 0);
    struct message m;

    /* A thread of its own, in the child's address space, with the deep space. */
    SAME(tcb_configure(tcb, 0, nodes, child.directory, 0, 0), 0);
    SAME(tcb_write_registers(tcb, (word_t)deep_sender, ROOT_BUFFER + 4096, 0, 0), 0);
    SAME(tcb_set_priority(tcb, 10), 0);
    give_time(tcb);
    SAME(tcb_resume(tcb), 0);
    m = receive(endpoint);
    SAME(m.badge, 32);
    SAME(m.w[0], 7000);
    return true;
}

/* The same by a CNode invocation, for every depth. */
static bool deep_copy(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t nodes = deep_space(endpoint);
    word_t slot = new_slots(1);

    SAME(cnode_copy(ROOT_CNODE, slot, 32, nodes, DEEP_ADDRESS, 32, RIGHTS_ALL), 0);
    for (word_t depth = 1; depth <= 32; depth++)
        SAME(cnode_copy(nodes, DEEP_ADDRESS >> (32 - depth), depth, ROOT_CNODE, endpoint, 32, 7),
             ERROR_SLOT_OCCUPIED);
    for (word_t depth = 2; depth <= 32; depth++) /* the brother of each is in an empty node's reach */
        SAME(cnode_copy(nodes, DEEP_ADDRESS >> (32 - depth) ^ 2, depth, ROOT_CNODE, endpoint, 32, 7),
             ERROR_LOOKUP_FAILED);
    return true;
}

/* Faults are delivered through the deep space too. */
static void fault_now(word_t unused)
{
    (void)unused;
    __asm__ volatile(".inst 0xe7f000f0");
}

static bool deep_fault_handler(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t nodes = deep_space(endpoint);
    struct child child = make_child(fault_now, 0, 10, 0);
    word_t tcb = make(TYPE_TCB, 0);

    SAME(tcb_configure(tcb, DEEP_ADDRESS, nodes, child.directory, 0, 0), 0);
    SAME(tcb_write_registers(tcb, (word_t)fault_now, 0, 0, 0), 0);
    SAME(tcb_set_priority(tcb, 10), 0);
    give_time(tcb);
    SAME(tcb_resume(tcb), 0);
    SAME(message_label(receive(endpoint).info), FAULT_UNDEFINED);
    return true;
}

static bool guards(void)
{
    word_t inner = make(TYPE_CNODE, 2);
    word_t outer = make(TYPE_CNODE, 12);
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t guarded = new_slots(1);
    word_t address = 0x123u << 20 | 0x2abcdu << 2 | 3;

    SAME(cnode_mint(ROOT_CNODE, guarded, 32, ROOT_CNODE, inner, 32, 7,
                    guard_data_make(18, 0x2abcd)), 0);
    SAME(cnode_copy(outer, 0x123, 12, ROOT_CNODE, guarded, 32, 7), 0);
    SAME(cnode_copy(outer, address, 32, ROOT_CNODE, endpoint, 32, 7), 0);
    SAME(cnode_copy(outer, address, 32, ROOT_CNODE, endpoint, 32, 7), ERROR_SLOT_OCCUPIED);
    for (word_t bit = 2; bit < 20; bit++) /* each bit of the guard matters */
        SAME(cnode_copy(outer, address ^ 1u << bit, 32, ROOT_CNODE, endpoint, 32, 7),
             ERROR_LOOKUP_FAILED);
    for (word_t i = 0; i < 3; i++) /* the three other slots are there and empty */
        SAME(cnode_copy(outer, (address & ~3u) | i, 32, ROOT_CNODE, endpoint, 32, 7), 0);
    SAME(cnode_copy(outer, address >> 1, 31, ROOT_CNODE, endpoint, 32, 7), ERROR_LOOKUP_FAILED);
    return true;
}

/* A CNode that contains itself: every even depth leads somewhere, no odd one. */
static bool cyclic_space(void)
{
    word_t cnode = make(TYPE_CNODE, 2);

    for (word_t i = 0; i < 4; i++)
        SAME(cnode_copy(cnode, i, 2, ROOT_CNODE, cnode, 32, RIGHTS_ALL), 0);
    for (word_t depth = 1; depth <= 32; depth++)
        SAME(cnode_copy(cnode, 0x9999, depth, ROOT_CNODE, cnode, 32, RIGHTS_ALL),
             depth % 2 ? ERROR_LOOKUP_FAILED : ERROR_SLOT_OCCUPIED);
    return true;
}

/* ---- address spaces ------------------------------------------------------------- */

#define LARGE_ADDRESS 0x20000000u
#define MEGABYTE      (1u << 20)

static bool large_pages(void)
{
    word_t frame = make(TYPE_FRAME_64K, 0);
    word_t small = make(TYPE_FRAME_4K, 0);
    volatile word_t *at = (volatile word_t *)(LARGE_ADDRESS + 0x30000);

    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), ROOT_PAGE_DIRECTORY, LARGE_ADDRESS), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS + 0x1000, DATA_RIGHTS, 0),
         ERROR_ALIGNMENT);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS + 0x30000, DATA_RIGHTS, 0), 0);
    for (word_t i = 0; i < 16384; i++)
        SAME(at[i], 0);
    for (word_t i = 0; i < 16; i++)
        at[i * 1024] = i;
    for (word_t i = 0; i < 16; i++)
        SAME(at[i * 1024], i);
    SAME(frame_map(small, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS + 0x3f000, DATA_RIGHTS, 0),
         ERROR_ALREADY_MAPPED);
    SAME(frame_map(small, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS + 0x4f000, DATA_RIGHTS, 0), 0);
    SAME(frame_map(make(TYPE_FRAME_64K, 0), ROOT_PAGE_DIRECTORY, LARGE_ADDRESS + 0x40000,
                   DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED); /* its last page is taken */
    return true;
}

static bool sections(void)
{
    volatile word_t *one = (volatile word_t *)(LARGE_ADDRESS + 0x100000);
    volatile word_t *sixteen = (volatile word_t *)(LARGE_ADDRESS + 0x1000000);

    SAME(frame_map(ROOT_FRAME_16M, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS, DATA_RIGHTS, 0),
         ERROR_ALREADY_MAPPED); /* a page table is in the way */
    SAME(frame_map(ROOT_FRAME_1M, ROOT_PAGE_DIRECTORY, LARGE_ADDRESS, DATA_RIGHTS, 0),
         ERROR_ALREADY_MAPPED);
    SAME(frame_map(ROOT_FRAME_1M, ROOT_PAGE_DIRECTORY, (word_t)one, DATA_RIGHTS, 0), 0);
    SAME(frame_map(ROOT_FRAME_16M, ROOT_PAGE_DIRECTORY, (word_t)one, DATA_RIGHTS, 0),
         ERROR_ALIGNMENT);
    SAME(frame_map(ROOT_FRAME_16M, ROOT_PAGE_DIRECTORY, (word_t)sixteen, DATA_RIGHTS, 0), 0);
    for (word_t i = 0; i < MEGABYTE; i += 4096)
        one[i / 4] = i + 1;
    for (word_t i = 0; i < 16 * MEGABYTE; i += 65536)
        sixteen[i / 4] = i + 2;
    for (word_t i = 0; i < MEGABYTE; i += 4096)
        SAME(one[i / 4], i + 1);
    for (word_t i = 0; i < 16 * MEGABYTE; i += 65536)
        SAME(sixteen[i / 4], i + 2);
    SAME(frame_map(make(TYPE_FRAME_4K, 0), ROOT_PAGE_DIRECTORY, (word_t)one, DATA_RIGHTS, 0),
         ERROR_ALREADY_MAPPED);
    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), ROOT_PAGE_DIRECTORY, (word_t)one),
         ERROR_ALREADY_MAPPED);
    return true;
}

static bool map_errors(void)
{
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t directory = ROOT_PAGE_DIRECTORY;
    word_t words[] = { 0x30000000, DATA_RIGHTS, 0 };

    SAME(frame_map(frame, directory, 0x30000000, DATA_RIGHTS, 0), ERROR_NO_TABLE);
    SAME(frame_map(frame, directory, 0xf0000000, DATA_RIGHTS, 0), ERROR_RANGE);
    SAME(frame_map(frame, directory, 0xffff0000, DATA_RIGHTS, 0), ERROR_RANGE);
    SAME(frame_map(frame, directory, IMAGE_BASE + 1, DATA_RIGHTS, 0), ERROR_ALIGNMENT);
    SAME(frame_map(frame, directory, IMAGE_BASE, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(frame_map(frame, ROOT_TCB, 0x30000000, DATA_RIGHTS, 0), ERROR_INVALID_CAPABILITY);
    SAME(frame_map(frame, 0xff000000, 0x30000000, DATA_RIGHTS, 0), ERROR_LOOKUP_FAILED);
    SAME(frame_map(ROOT_TIMER_FRAME, directory, 0x001f9000, RIGHT_READ, MAP_EXECUTE),
         ERROR_NO_RIGHT);
    SAME(page_table_map(table, directory, 0xf0000000), ERROR_RANGE);
    SAME(page_table_map(table, directory, 0x30001000), ERROR_ALIGNMENT);
    SAME(page_table_map(table, directory, IMAGE_BASE), ERROR_ALREADY_MAPPED);
    SAME(page_table_map(table, frame, 0x30000000), ERROR_INVALID_CAPABILITY);
    SAME(page_table_map(table, directory, 0x30000000), 0);
    SAME(page_table_map(table, directory, 0x30100000), ERROR_ALREADY_MAPPED);
    SAME(page_table_map(table, directory, 0x30100000), ERROR_ALREADY_MAPPED);
    SAME(invoke(frame, LABEL_FRAME_MAP, words, 2, &directory, 1), ERROR_TRUNCATED);
    SAME(invoke(frame, LABEL_FRAME_MAP, words, 3, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(frame, LABEL_PAGE_TABLE_MAP, words, 3, &directory, 1), ERROR_ILLEGAL_OPERATION);
    SAME(invoke(table, LABEL_PAGE_TABLE_MAP, words, 0, &directory, 1), ERROR_TRUNCATED);
    SAME(invoke(table, LABEL_PAGE_TABLE_MAP, words, 1, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(table, LABEL_FRAME_MAP, words, 1, &directory, 1), ERROR_ILLEGAL_OPERATION);
    SAME(invoke(directory, LABEL_FRAME_MAP, words, 3, &directory, 1), ERROR_ILLEGAL_OPERATION);
    SAME(frame_map(frame, directory, 0x30000000, DATA_RIGHTS, 0), 0);
    SAME(frame_map(frame, directory, 0x30001000, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(frame_map(copy_of(frame), directory, 0x30001000, DATA_RIGHTS, MAP_UNCACHED), 0);
    return true;
}

/*
 * More address spaces than hardware numbers.  Each thread has one page of text
 * and one of data, at the same addresses; it reads its data anew for every call.
 */
#ifdef TIME_CONTEXTS
#define SPACES      240 /* no more contexts than 256 can be bound */
#define SPACES_SHARE "240 address spaces, and those of earlier tests, share 255 hardware numbers"
#else
#define SPACES      300
#define SPACES_SHARE "300 address spaces share 255 hardware numbers"
#endif
#define TINY_DATA   0x00180000u

void tiny(word_t cap);
__asm__(
    "    .text\n"
    "    .arm\n"
    "    .balign 64\n"
    "    .global tiny\n"
    "    .type tiny, %function\n"
    "tiny:\n"
    "    mov     r6, r0\n"
    "    mov     r8, #0x00180000\n"
    "1:  mov     r0, r6\n"
    "    mov     r1, #2\n"
    "    add     r2, r2, #1\n"
    "    ldr     r3, [r8]\n"
    "    mov     r7, #1\n"
    "    svc     0\n"
    "    b       1b\n");

static void make_tiny(word_t endpoint, word_t number)
{
    word_t page = (word_t)tiny >> 12;
    word_t directory = make(TYPE_PAGE_DIRECTORY, 0);
    word_t data = make(TYPE_FRAME_4K, 0);
    word_t tcb = make(TYPE_TCB, 0);
    word_t *window = look_at(data);

    *window = number * 3;
    require(page_table_map(make(TYPE_PAGE_TABLE, 0), directory, IMAGE_BASE), "tiny table");
    require(frame_map(copy_of(ROOT_IMAGE + page - (IMAGE_BASE >> 12)), directory, page << 12,
                      RIGHT_READ, MAP_EXECUTE), "tiny text");
    require(frame_map(copy_of(data), directory, TINY_DATA, RIGHT_READ, 0), "tiny data");
    require(tcb_configure(tcb, 0, ROOT_CNODE, directory, 0, 0), "tiny thread");
    require(tcb_write_registers(tcb, (word_t)tiny, 0, 0, badged(endpoint, RIGHT_SEND, number)),
            "tiny registers");
    require(tcb_set_priority(tcb, 10), "tiny priority");
    give_time(tcb);
    require(tcb_resume(tcb), "tiny resume");
}

/* In which order they call is up to their time slices; each goes on from its own last answer. */
static bool many_spaces(void)
{
    static word_t expected[SPACES + 1];
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    for (word_t i = 1; i <= SPACES; i++) {
        expected[i] = 1;
        make_tiny(endpoint, i);
    }
    m = receive(endpoint);
    for (word_t answer = 1000; answer < 1000 + 3 * SPACES; answer++) {
        if (m.badge < 1 || m.badge > SPACES)
            return false;
        SAME(m.w[0], expected[m.badge]);
        SAME(m.w[1], m.badge * 3);
        expected[m.badge] = answer + 1;
        m = reply_receive(endpoint, 0, answer);
    }
    for (word_t i = 1; i <= SPACES; i++)
        if (expected[i] == 1)
            return false;
    return true;
}

/* ---- threads ------------------------------------------------------------------ */

static bool configure_errors(void)
{
    word_t tcb = make(TYPE_TCB, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t read_only = new_slots(1);
    word_t words[20] = { 0 };
    word_t caps[] = { ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame };

    SAME(cnode_copy(ROOT_CNODE, read_only, 32, ROOT_CNODE, frame, 32, RIGHT_READ), 0);
    SAME(tcb_resume(tcb), ERROR_ILLEGAL_OPERATION); /* not configured */
    SAME(tcb_configure(tcb, 0, frame, ROOT_PAGE_DIRECTORY, frame, 0), ERROR_INVALID_CAPABILITY);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_CNODE, frame, 0), ERROR_INVALID_CAPABILITY);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, tcb, 0), ERROR_INVALID_CAPABILITY);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame, 256), ERROR_ALIGNMENT);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame, 4096), ERROR_RANGE);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame, 0xfffffe00), ERROR_RANGE);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, read_only, 0), ERROR_NO_RIGHT);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, ROOT_UART_FRAME, 0),
         ERROR_ILLEGAL_OPERATION);
    SAME(invoke(tcb, LABEL_TCB_CONFIGURE, words, 1, caps, 3), ERROR_TRUNCATED);
    SAME(invoke(tcb, LABEL_TCB_CONFIGURE, words, 2, caps, 1), ERROR_TRUNCATED);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame, 3584), 0);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, frame, 0), ERROR_ILLEGAL_OPERATION);
    SAME(invoke(tcb, LABEL_TCB_WRITE_REGISTERS, words, 16, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(tcb, LABEL_TCB_SET_PRIORITY, words, 0, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(tcb, LABEL_FRAME_MAP, words, 3, caps, 3), ERROR_ILLEGAL_OPERATION);
    SAME(tcb_write_registers(ROOT_TCB, 0, 0, 0, 0), ERROR_ILLEGAL_OPERATION); /* running */
    SAME(tcb_resume(ROOT_TCB), ERROR_ILLEGAL_OPERATION);
    return true;
}

/* Instructions that are written into a frame, published, and executed by another mapping. */
static bool published(void)
{
    static const word_t returns[] = { 0xe3a0002a, 0xe12fff1e }; /* mov r0, #42; bx lr */
    word_t frame = make(TYPE_FRAME_4K, 0);
    volatile word_t *text = look_at(frame);
    word_t executed = copy_of(frame);

    SAME(frame_map(executed, ROOT_PAGE_DIRECTORY, 0x001f3000, RIGHT_READ, MAP_EXECUTE), 0);
    text[1022] = returns[0];
    text[1023] = returns[1];
    for (word_t first = 0; first < 4096; first += FRAME_CLEAN_BYTES_MAX)
        SAME(frame_publish(frame, first, FRAME_CLEAN_BYTES_MAX), 0);
    SAME(((word_t (*)(void))0x001f3ff8)(), 42);
    SAME(frame_clean(frame, 4096 - 32, 32), 0);
    SAME(frame_clean(frame, 4096 - 32, 64), ERROR_RANGE);
    SAME(frame_clean(frame, 0, FRAME_CLEAN_BYTES_MAX + 32), ERROR_RANGE);
    SAME(frame_clean(frame, 16, 32), ERROR_ALIGNMENT);
    SAME(frame_clean(ROOT_UART_FRAME, 0, 32), ERROR_ILLEGAL_OPERATION);
    SAME(frame_unmap(executed), 0);
    return true;
}

const struct test space_tests[] = {
    { deep_lookup, "a capability 32 levels deep resolves, and no neighbour of its address" },
    { deep_copy, "a CNode invocation resolves every depth from 1 to 32" },
    { deep_fault_handler, "a fault handler 32 levels deep receives" },
    { guards, "every bit of an 18-bit guard is compared" },
    { cyclic_space, "a CNode that contains itself resolves 16 times and no further" },
    { large_pages, "a 64 KiB frame is mapped whole, and overlaps are refused" },
    { sections, "1 MiB and 16 MiB frames are mapped whole, and overlaps are refused" },
    { map_errors, "mapping refuses wrong addresses, tables, rights and second mappings" },
    { many_spaces, SPACES_SHARE },
    { published, "instructions that were written and published can be executed" },
    { configure_errors, "configuring a thread refuses wrong capabilities and places" },
    { NULL, NULL },
};
