/* SPDX-License-Identifier: BSD-2-Clause */
/* Deletion of long queues, of CNodes in each other, of address spaces with many mappings. */
#include "steer.h"

#ifdef TIME_CONTEXTS
#define WAITING 200 /* no more contexts than 256 can be bound */
#else
#define WAITING   254 /* one of each priority between the first thread's and the least */
#endif
#define BADGED    (CHILD_ENDPOINT + 10)
#define BADGE     7
#define NESTED    64
#define TABLES    4
#define ENTRIES   64  /* mappings of each table, and as many in the directory itself */
#define PAGE      4096u
#define MEGABYTE  (1u << 20)
#define SPACE     0x20000000u /* where the mappings begin */
#define TABLES_AT 0x40000000u

/* ---- queues ------------------------------------------------------------------------------ */

static word_t stacks[WAITING + 1][32]; /* used in the crowd's address space */

static void waits(word_t endpoint)
{
    tell(send(SYS_SEND, endpoint, 0));
    rest();
}

/* Threads of one address space that send, every second with a badge; all wait on return. */
static void make_crowd(word_t endpoint)
{
    struct child crowd = make_child(tells, 0, 0, 0);
    word_t threads = new_slots(WAITING);

    give(&crowd, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&crowd, BADGED, endpoint, RIGHTS_ALL, BADGE);
    for (word_t i = 0; i < WAITING; i++) {
        word_t thread = threads + i;

        require(make_error(TYPE_TCB, 0, ROOT_CNODE, thread), "thread");
        require(tcb_configure(thread, 0, crowd.cnode, crowd.directory, 0, 0), "thread");
        require(tcb_write_registers(thread, (word_t)waits, (word_t)stacks[i + 1], 0,
                                    i & 1 ? BADGED : CHILD_ENDPOINT), "thread");
        require(tcb_set_priority(thread, i + 1), "thread");
        give_time(thread);
        require(tcb_resume(thread), "thread");
    }
    start(&crowd);
    wait_report();
}

/* That many of the crowd were sent away. */
static bool all_aborted(word_t count)
{
    for (word_t i = 0; i < count; i++)
        SAME(wait_report(), SYSCALL_FAILED | ERROR_ABORTED);
    return true;
}

static bool endpoint_with_crowd(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    make_crowd(endpoint);
    SAME(cnode_revoke(ROOT_CNODE, endpoint, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, endpoint, 32), 0);
    return all_aborted(WAITING);
}

/* Every second one is sent away, then the others. */
static bool badge_in_crowd(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t badge = badged(endpoint, RIGHTS_ALL, BADGE);

    make_crowd(endpoint);
    SAME(cnode_recycle(ROOT_CNODE, badge, 32), 0);
    if (!all_aborted(WAITING / 2))
        return false;
    SAME(cnode_recycle(ROOT_CNODE, endpoint, 32), 0);
    return all_aborted(WAITING / 2);
}

/* ---- containers ---------------------------------------------------------------------------- */

/* A chain: each CNode holds the only capabilities to a thread and to the next CNode. */
static bool nested_nodes(void)
{
    word_t nodes = new_slots(NESTED + 1);
    word_t thread = new_slots(1);

    for (word_t i = 0; i <= NESTED; i++)
        SAME(make_error(TYPE_CNODE, 1, ROOT_CNODE, nodes + i), 0);
    for (word_t i = NESTED; i-- > 0;) {
        SAME(make_error(TYPE_TCB, 0, ROOT_CNODE, thread), 0);
        SAME(tcb_configure(thread, 0, nodes + i, ROOT_PAGE_DIRECTORY, 0, 0), 0);
        SAME(cnode_move(nodes + i, 0, 1, ROOT_CNODE, thread, 32), 0);
        SAME(cnode_move(nodes + i, 1, 1, ROOT_CNODE, nodes + i + 1, 32), 0);
    }
    SAME(cnode_delete(ROOT_CNODE, nodes, 32), 0);
    SAME(cnode_copy(ROOT_CNODE, nodes, 32, ROOT_CNODE, report, 32, RIGHTS_ALL), 0);
    return true;
}

/* ---- address spaces -------------------------------------------------------------------------- */

static void map_copies(word_t frame, word_t directory, word_t at, word_t stride)
{
    for (word_t i = 0; i < ENTRIES; i++)
        require(frame_map(copy_of(frame), directory, at + i * stride, RIGHT_READ, 0), "map");
}

static bool mapped_space(void)
{
    word_t directory = make(TYPE_PAGE_DIRECTORY, 0);
    word_t tables = new_slots(TABLES);
    word_t page = make(TYPE_FRAME_4K, 0);

    map_copies(ROOT_FRAME_1M, directory, SPACE, MEGABYTE);
    for (word_t i = 0; i < TABLES; i++) {
        SAME(make_error(TYPE_PAGE_TABLE, 0, ROOT_CNODE, tables + i), 0);
        SAME(page_table_map(tables + i, directory, TABLES_AT + i * MEGABYTE), 0);
        map_copies(page, directory, TABLES_AT + i * MEGABYTE, PAGE);
    }
    require(frame_map(copy_of(ROOT_FRAME_16M), directory, 0x60000000u, RIGHT_READ, 0), "map");
    SAME(page_table_unmap(tables), 0);
    SAME(cnode_delete(ROOT_CNODE, tables + 1, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, directory, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, tables + 2, 32), 0);
    return true;
}

const struct test deletion_tests[] = {
    { endpoint_with_crowd, "an endpoint is deleted on which a thread of every priority waits" },
    { badge_in_crowd, "one badge of two is recycled in a long queue" },
    { nested_nodes, "CNodes and threads that hold each other are deleted" },
    { mapped_space, "an address space with many mappings of every kind is deleted" },
    { NULL, NULL },
};
