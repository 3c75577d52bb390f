/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: address spaces with shadow tables; nothing that was mapped stays behind. */
#include "tests.h"

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)
#define SPARE_PAGE  0x001f3000u

static word_t delete(word_t slot)
{
    return cnode_delete(ROOT_CNODE, slot, 32);
}

static bool table_goes_with_its_mappings(void)
{
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);

    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, 0x31000000), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, 0x31005000, DATA_RIGHTS, 0), 0);
    *(volatile word_t *)0x31005000 = 4;
    SAME(delete(table), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, 0x31005000, DATA_RIGHTS, 0), ERROR_NO_TABLE);
    table = make(TYPE_PAGE_TABLE, 0);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, 0x31000000), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, 0x31006000, DATA_RIGHTS, 0), 0);
    SAME(*(volatile word_t *)0x31006000, 4);
    SAME(page_table_unmap(table), 0);
    SAME(page_table_unmap(table), 0);
    SAME(page_table_map(table, ROOT_PAGE_DIRECTORY, 0x32000000), 0); /* with its mapping */
    SAME(*(volatile word_t *)0x32006000, 4);
    SAME(delete(table), 0);
    SAME(delete(frame), 0);
    return true;
}

static bool directory_goes_with_its_mappings(void)
{
    word_t directory = make(TYPE_PAGE_DIRECTORY, 0);
    word_t table = make(TYPE_PAGE_TABLE, 0);
    word_t frame = make(TYPE_FRAME_4K, 0);
    word_t section = make(TYPE_FRAME_1M, 0);

    SAME(page_table_map(table, directory, 0x31000000), 0);
    SAME(frame_map(frame, directory, 0x31005000, DATA_RIGHTS, 0), 0);
    SAME(frame_map(section, directory, 0x31100000, DATA_RIGHTS, 0), 0);
    SAME(delete(directory), 0);
    directory = make(TYPE_PAGE_DIRECTORY, 0);
    SAME(page_table_map(table, directory, 0x32000000), 0); /* it is free again */
    SAME(frame_map(section, directory, 0x31100000, DATA_RIGHTS, 0), 0);
    SAME(frame_map(frame, directory, 0x32006000, DATA_RIGHTS, 0), ERROR_ALREADY_MAPPED);
    SAME(delete(table), 0);
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, SPARE_PAGE, DATA_RIGHTS, 0), 0);
    SAME(delete(frame), 0);
    SAME(delete(directory), 0);
    SAME(delete(section), 0);
    return true;
}

const struct test vspace_tests[] = {
    { table_goes_with_its_mappings, "a page table is deleted with its mappings, or moved with them" },
    { directory_goes_with_its_mappings, "an address space is deleted with its mappings" },
    { NULL, NULL },
};
