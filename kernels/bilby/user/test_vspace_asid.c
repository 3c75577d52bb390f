/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: address spaces with numbers; their remains are stale, and harmless. */
#include "tests.h"

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)
#define SPARE_PAGE  0x001f3000u
#define TABLE_BASE  0x31000000u

static word_t delete(word_t slot)
{
    return cnode_delete(ROOT_CNODE, slot, 32);
}

/* A directory without a number. */
static word_t bare_directory(void)
{
    word_t slot = new_slots(1);

    require(make_error(TYPE_PAGE_DIRECTORY, 0, ROOT_CNODE, slot), "directory");
    return slot;
}

static word_t make_pool(word_t untyped, word_t slot)
{
    return asid_make_pool(ROOT_ASID_CONTROL, untyped, ROOT_CNODE, slot, 32);
}

static word_t new_pool(void)
{
    word_t slot = new_slots(1);

    require(make_pool(make(TYPE_UNTYPED, 12), slot), "pool");
    return slot;
}

static bool table_forgets_its_mappings(void)
{
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t at = TABLE_BASE + 0x5000;

    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, TABLE_BASE), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, at, DATA_RIGHTS, 0), 0);
    *(volatile word_t *)at = 4;
    SAME(delete(table), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, at, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(frame_unmap(frame), 0); /* it was stale */
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, at, DATA_RIGHTS, 0), ERROR_NO_TABLE);
    table = make(TYPE_PAGE_TABLE, 0);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, TABLE_BASE), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, at, DATA_RIGHTS, 0), 0);
    SAME(*(volatile word_t *)at, 4);
    SAME(page_table_unmap(table), 0);
    SAME(page_table_unmap(table), 0);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, TABLE_BASE), 0);
    SAME(frame_map(make(TYPE_FRAME_4K, 0), ROOT_PAGE_DIRECTORY, at, DATA_RIGHTS, 0), 0);
    SAME(*(volatile word_t *)at, 0); /* the place was free: a moved table is empty */
    SAME(delete(table), 0);
    SAME(delete(frame), 0);
    return true;
}

static bool directory_is_deleted_lazily(void)
{
    word_t directory = make(TYPE_PAGE_DIRECTORY, 0);
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);

    SAME(page_table_map(table, directory, TABLE_BASE), 0);
    SAME(frame_map(frame, directory, TABLE_BASE, DATA_RIGHTS, 0), 0);
    SAME(delete(directory), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, TABLE_BASE), ERROR_ALREADY_MAPPED);
    SAME(frame_unmap(frame), 0);
    SAME(page_table_unmap(table), 0);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, TABLE_BASE), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, TABLE_BASE, DATA_RIGHTS, 0), 0); /* emptied */
    SAME(*(volatile word_t *)TABLE_BASE, 0);
    SAME(delete(frame), 0);
    SAME(delete(table), 0);
    return true;
}

/* The number of a space that was deleted is the next one's. */
static bool stale_numbers_are_harmless(void)
{
    word_t pool = new_pool();
    word_t first = bare_directory(), second = bare_directory();
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t section = make(TYPE_FRAME_1M, 0), other = make(TYPE_FRAME_1M, 0);

    SAME(asid_assign(pool, first), 0);
    SAME(page_table_map(table, first, TABLE_BASE), 0);
    SAME(frame_map(section, first, TABLE_BASE + 0x100000, DATA_RIGHTS, 0), 0);
    SAME(delete(first), 0);
    SAME(asid_assign(pool, second), 0);
    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), second, TABLE_BASE), 0);
    SAME(frame_map(other, second, TABLE_BASE + 0x100000, DATA_RIGHTS, 0), 0);
    SAME(page_table_unmap(table), 0);
    SAME(frame_unmap(section), 0);
    SAME(page_table_map(table, second, TABLE_BASE), ERROR_ALREADY_MAPPED); /* nothing was lost */
    SAME(frame_map(section, second, TABLE_BASE + 0x100000, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(frame_unmap(other), 0);
    SAME(frame_map(section, second, TABLE_BASE + 0x100000, DATA_RIGHTS, 0), 0);
    SAME(delete(pool), 0);
    return true;
}

static bool number_comes_first(void)
{
    word_t directory = bare_directory();
    word_t tcb = make(TYPE_TCB, 0);
    word_t copy = new_slots(1);

    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), directory, TABLE_BASE), ERROR_INVALID_CAPABILITY);
    SAME(frame_map(make(TYPE_FRAME_1M, 0), directory, TABLE_BASE, DATA_RIGHTS, 0),
         ERROR_INVALID_CAPABILITY);
    SAME(tcb_configure(tcb, 0, ROOT_CNODE, directory, 0, 0), ERROR_INVALID_CAPABILITY);
    SAME(cnode_copy(ROOT_CNODE, copy, 32, ROOT_CNODE, directory, 32, RIGHTS_ALL),
         ERROR_ILLEGAL_OPERATION);
    SAME(asid_assign(ROOT_ASID_POOL, directory), 0);
    SAME(asid_assign(ROOT_ASID_POOL, directory), ERROR_INVALID_CAPABILITY);
    SAME(asid_assign(ROOT_ASID_POOL, ROOT_PAGE_DIRECTORY), ERROR_INVALID_CAPABILITY);
    SAME(asid_assign(ROOT_ASID_POOL, tcb), ERROR_INVALID_CAPABILITY);
    SAME(invoke(ROOT_ASID_POOL, LABEL_ASID_ASSIGN, NULL, 0, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(ROOT_ASID_POOL, LABEL_ASID_MAKE_POOL, NULL, 0, NULL, 0), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_copy(ROOT_CNODE, copy, 32, ROOT_CNODE, directory, 32, RIGHTS_ALL), 0);
    SAME(delete(directory), 0);
    SAME(page_table_map(make(TYPE_PAGE_TABLE, 0), copy, TABLE_BASE), 0); /* it still exists */
    SAME(delete(copy), 0);
    return true;
}

static bool pools_are_made(void)
{
    word_t untyped = make(TYPE_UNTYPED, 12), small = make(TYPE_UNTYPED, 11);
    word_t slot = new_slots(2), words[] = { slot, 32 }, pools = new_slots(16), made = 0;

    SAME(make_pool(small, slot), ERROR_INVALID_CAPABILITY);
    SAME(make_pool(ROOT_TCB, slot), ERROR_INVALID_CAPABILITY);
    SAME(make_pool(untyped, ROOT_TCB), ERROR_SLOT_OCCUPIED);
    SAME(invoke(ROOT_ASID_CONTROL, LABEL_ASID_MAKE_POOL, words, 2, &untyped, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_ASID_CONTROL, LABEL_ASID_ASSIGN, words, 2, NULL, 0), ERROR_ILLEGAL_OPERATION);
    SAME(make_pool(untyped, slot), 0);
    SAME(make_pool(untyped, slot + 1), ERROR_NO_MEMORY); /* the pool is in it */
    SAME(cnode_revoke(ROOT_CNODE, untyped, 32), 0);
    SAME(make_pool(untyped, slot), 0);
    SAME(delete(slot), 0);
    SAME(cnode_copy(ROOT_CNODE, slot, 32, ROOT_CNODE, ROOT_ASID_CONTROL, 32, RIGHTS_ALL),
         ERROR_ILLEGAL_OPERATION);
    while (make_pool(make(TYPE_UNTYPED, 12), pools + made) == 0)
        made++;
    SAME(made, 15); /* and the first thread's */
    SAME(make_pool(untyped, slot), ERROR_NO_NUMBER);
    for (word_t i = 0; i < made; i++)
        SAME(delete(pools + i), 0);
    return true;
}

#define NUMBERS 1024

/* With a frame right behind it that is not empty, as a pool's next number would be. */
static bool pool_is_filled(void)
{
    word_t region = make(TYPE_UNTYPED, 13), parts = new_slots(4), pool = parts + 2, frame = parts + 3;
    word_t untyped = make(TYPE_UNTYPED, 24);
    word_t slot = new_slots(NUMBERS);
    word_t spare = bare_directory();

    SAME(untyped_retype(region, TYPE_UNTYPED, 12, ROOT_CNODE, 0, 0, parts, 2), 0);
    SAME(make_pool(parts, pool), 0);
    SAME(untyped_retype(parts + 1, TYPE_FRAME_4K, 0, ROOT_CNODE, 0, 0, frame, 1), 0);
    *(volatile word_t *)look_at(frame) = 1;
    for (word_t i = 0; i < NUMBERS; i++)
        SAME(untyped_retype(untyped, TYPE_PAGE_DIRECTORY, 0, ROOT_CNODE, 0, 0, slot + i, 1), 0);
    for (word_t i = 0; i < NUMBERS; i++)
        SAME(asid_assign(pool, slot + i), 0);
    SAME(asid_assign(pool, spare), ERROR_NO_NUMBER);
    SAME(delete(slot + NUMBERS / 2), 0);
    SAME(asid_assign(pool, spare), 0);
    SAME(delete(pool), 0);
    SAME(frame_map(ROOT_UART_FRAME, slot, TABLE_BASE, DATA_RIGHTS, 0), ERROR_INVALID_CAPABILITY);
    SAME(frame_map(ROOT_UART_FRAME, spare, TABLE_BASE, DATA_RIGHTS, 0), ERROR_INVALID_CAPABILITY);
    SAME(cnode_revoke(ROOT_CNODE, untyped, 32), 0);
    SAME(delete(untyped), 0);
    SAME(cnode_revoke(ROOT_CNODE, region, 32), 0);
    return true;
}

static void report_twice(word_t unused)
{
    (void)unused;
    tell(1);
    tell(2);
    rest();
}

static bool threads_lose_their_space(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t pool = new_pool(), before = asid_pool;
    struct child child;

    asid_pool = pool;
    child = make_child(report_twice, 0, 10, CHILD_ENDPOINT);
    asid_pool = before;
    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 5);
    start(&child);
    SAME(wait_report(), 1);
    SAME(delete(pool), 0);
    SAME(message_label(receive(endpoint).info), FAULT_PREFETCH_ABORT);
    return true;
}

const struct test vspace_tests[] = {
    { table_forgets_its_mappings, "a page table leaves its mappings when it moves or is deleted" },
    { directory_is_deleted_lazily, "an address space is deleted and what was mapped is told later" },
    { stale_numbers_are_harmless, "what remembers a deleted space does nothing to the next" },
    { number_comes_first, "a page directory has no use and no copy before it has a number" },
    { pools_are_made, "pools are made from untyped memory, sixteen of them" },
    { pool_is_filled, "a pool gives 1024 numbers, one of them again, and takes all with it" },
    { threads_lose_their_space, "threads fault whose spaces lose their numbers" },
    { NULL, NULL },
};
