/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: long operations while interrupts come (ticker.h), at a short period.  Each
 * test fails unless the work was interrupted many times.
 */
#include "tests.h"
#include "ticker.h"

#define DATA_RIGHTS (RIGHT_READ | RIGHT_WRITE)
#define LARGE_PAGE  0x001e0000u
#define UNTYPED      CHILD_FREE
#define OBJECT       (CHILD_FREE + 1)
#ifdef PRESET_before /* which takes longer for each, and is not preempted as often */
#define TICKS        2000
#define AT_LEAST(count) ((count) > 10)
#else
#define TICKS        40
#define AT_LEAST(count) (count)
#endif
#define WAITERS      40

/* The worker's report is good, after enough interrupts. */
static bool with_interrupts(const struct child *worker, word_t expected, word_t least)
{
    if (!interrupted(worker, expected, (struct ticks){ TICKS, 0 }))
        return false;
    if (interrupts < AT_LEAST(least))
        SAME(interrupts, least);
    return true;
}

/* ---- workers ---------------------------------------------------------------------- */

static word_t own(word_t label, word_t slot)
{
    word_t words[] = { slot, 32 };

    return invoke(CHILD_CNODE, label, words, 2, NULL, 0);
}

static word_t retype(word_t type, word_t bits, word_t first, word_t count)
{
    return untyped_retype(UNTYPED, type, bits, CHILD_CNODE, 0, 0, first, count);
}

/* Fill memory, give it back, take it again: how many words were not zero. */
static void refill(word_t unused)
{
    volatile word_t *memory = (volatile word_t *)LARGE_PAGE;
    word_t bad = 0;

    (void)unused;
    for (word_t round = 0; round < 4; round++) {
        bad += retype(TYPE_FRAME_64K, 0, OBJECT, 1) != 0;
        bad += frame_map(OBJECT, OBJECT + 2, LARGE_PAGE, DATA_RIGHTS, 0) != 0;
        for (word_t i = 0; i < 0x4000; i++) {
            bad += memory[i] != 0;
            memory[i] = i << 16 | round << 4 | 0xf; /* like pointers, marks, descriptors */
        }
        bad += own(LABEL_CNODE_REVOKE, UNTYPED) != 0;
    }
    tell(bad);
    rest();
}

static bool clearing(void)
{
    struct child worker = make_child(refill, 0, 100, 0);

    give(&worker, OBJECT + 2, worker.directory, RIGHTS_ALL, 0);
    require(make_error(TYPE_UNTYPED, 17, worker.cnode, UNTYPED), "untyped");
    return with_interrupts(&worker, 0, 20);
}

static void revoke_untyped(word_t unused)
{
    (void)unused;
    tell(own(LABEL_CNODE_REVOKE, UNTYPED));
    rest();
}

static void waits(word_t value)
{
    word_t result = send(SYS_SEND, CHILD_ENDPOINT, value);

    if (result != (SYSCALL_FAILED | ERROR_ABORTED))
        tell(result);
    send(SYS_SEND, CHILD_OTHER, 0); /* a signal */
    rest();
}

/* A queue of threads that send, with four badges; they have run when this returns. */
static void make_queue(word_t endpoint, word_t awake)
{
    for (word_t i = 0; i < WAITERS; i++) {
        struct child waiter = make_child(waits, i, 50, 0);

        give(&waiter, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, i & 3);
        give(&waiter, CHILD_OTHER, awake, RIGHTS_ALL, 0);
        start(&waiter);
    }
    run_child(tells, 0, 5, 0, 0);
    wait_report();
}

/* An endpoint on which many wait is deleted, with all capabilities to it. */
static bool long_queue(void)
{
    struct child worker = make_child(revoke_untyped, 0, 100, 0);
    word_t untyped = make(TYPE_UNTYPED, ENDPOINT_SIZE_BITS);
    word_t endpoint = new_slots(1);

    SAME(untyped_retype(untyped, TYPE_ENDPOINT, 0, ROOT_CNODE, 0, 0, endpoint, 1), 0);
    make_queue(endpoint, make(TYPE_NOTIFICATION, 0));
    SAME(cnode_move(worker.cnode, UNTYPED, 32, ROOT_CNODE, untyped, 32), 0);
    if (!with_interrupts(&worker, 0, 5))
        return false;
    SAME(cnode_copy(ROOT_CNODE, endpoint, 32, ROOT_CNODE, report, 32, RIGHTS_ALL), 0);
    return true;
}

static void recycle_three(word_t unused)
{
    word_t error;

    (void)unused;
    error = own(LABEL_CNODE_RECYCLE, OBJECT + 1);
    error |= own(LABEL_CNODE_RECYCLE, OBJECT + 3);
    error |= own(LABEL_CNODE_RECYCLE, OBJECT + 2);
    tell(error);
    rest();
}

/* Senders with three badges are woken; those without one stay. */
static bool long_queue_of_badges(void)
{
    struct child worker = make_child(recycle_three, 0, 100, 0);
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    make_queue(endpoint, make(TYPE_NOTIFICATION, 0));
    for (word_t badge = 1; badge < 4; badge++)
        give(&worker, OBJECT + badge, endpoint, RIGHTS_ALL, badge);
    if (!with_interrupts(&worker, 0, 5))
        return false;
    for (word_t i = 0; i < WAITERS; i += 4) {
        struct message m = receive(endpoint);

        SAME(m.badge, 0);
        SAME(m.w[0], i);
        SAME(wait_report(), 0);
    }
    return true;
}

/* Many CNodes in each other, full of capabilities, of which each may be the last. */
static void build_and_delete(word_t unused)
{
    word_t error = 0;

    (void)unused;
    for (word_t round = 0; round < 8 && error == 0; round++) {
        word_t cnode = CHILD_CNODE;

        error |= retype(TYPE_CNODE, 3, OBJECT, 16);
        error |= retype(TYPE_ENDPOINT, 0, OBJECT + 16, 16);
        error |= retype(TYPE_TCB, 0, OBJECT + 32, 16);
        for (word_t i = 0; i < 16; i++) {
            word_t next = OBJECT + ((i + 1) & 15);

            for (word_t j = 0; j < 6; j++)
                error |= cnode_copy(OBJECT + i, j, 3, cnode,
                                    OBJECT + 16 + ((i + j) & 15), 32, RIGHTS_ALL);
            error |= cnode_copy(OBJECT + i, 6, 3, cnode, next, 32, RIGHTS_ALL);
            error |= cnode_move(OBJECT + i, 7, 3, cnode, OBJECT + 32 + i, 32);
        }
        for (word_t i = 0; i < 32; i++)
            error |= own(LABEL_CNODE_DELETE, OBJECT + i);
        error |= own(LABEL_CNODE_REVOKE, UNTYPED);
    }
    tell(error);
    rest();
}

static bool containers(void)
{
    struct child worker = make_child(build_and_delete, 0, 100, 0);

    require(make_error(TYPE_UNTYPED, 16, worker.cnode, UNTYPED), "untyped");
    return with_interrupts(&worker, 0, 50);
}

static void delete_space(word_t unused)
{
    word_t error = 0;

    (void)unused;
    for (word_t round = 0; round < 4; round++) {
        error |= retype(TYPE_PAGE_DIRECTORY, 0, OBJECT, 1);
        if (SPACES_HAVE_NUMBERS)
            error |= asid_assign(CHILD_POOL, OBJECT);
        error |= retype(TYPE_PAGE_TABLE, 0, OBJECT + 1, 4);
        error |= retype(TYPE_FRAME_4K, 0, OBJECT + 8, 32);
        for (word_t i = 0; i < 4; i++)
            error |= page_table_map(OBJECT + 1 + i, OBJECT, 0x40000000 + (i << 27));
        for (word_t i = 0; i < 32; i++)
            error |= frame_map(OBJECT + 8 + i, OBJECT, 0x40000000 + ((i & 3) << 27) + (i << 14),
                               DATA_RIGHTS, 0);
        error |= own(LABEL_CNODE_DELETE, OBJECT);
        for (word_t i = 0; i < 4; i++)
            error |= own(LABEL_CNODE_DELETE, OBJECT + 1 + i);
        error |= own(LABEL_CNODE_REVOKE, UNTYPED);
    }
    tell(error);
    rest();
}

static bool address_spaces(void)
{
    struct child worker = make_child(delete_space, 0, 100, 0);

    require(make_error(TYPE_UNTYPED, 18, worker.cnode, UNTYPED), "untyped");
    return with_interrupts(&worker, 0, 50);
}

const struct test preempt_tests[] = {
    { clearing, "memory is cleared to the last word while interrupts come" },
    { long_queue, "a long queue is woken while interrupts come" },
    { long_queue_of_badges, "senders are woken badge by badge while interrupts come" },
    { containers, "nested CNodes and threads are deleted while interrupts come" },
    { address_spaces, "address spaces are deleted while interrupts come" },
    { NULL, NULL },
};
