/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worst cases of lazy scheduling and of atomic clearing at the fixed sizes of docs/ilp.md.
 *
 * A thread that calls stays in its ready queue if the scheduler switches to the called thread at
 * once, that is, to one at least as urgent.  So a chain of calls leaves each of its threads queued
 * and blocked.  When the last one faults and stops, or its slice ends, the scheduler removes them.
 */
#include "tests.h"

#define BLOCKED     PRIORITIES /* blocked_threads */
#define MEMORY_BITS 20         /* object_chunks: 1,024 of 1 KiB */
#define ROW_BITS    5          /* objects of one retype, at most */
#define LONG        message_make(MESSAGE_REGISTERS + 1, 0, 0, 0) /* no fastpath, which queues nobody */
#define NOWHERE     0x08000000u

static word_t stacks[BLOCKED + 2][32];
static word_t threads, endpoints; /* slots of the chain; its threads share the first thread's spaces */
static word_t last, reached;
static void (*end)(void);

/* Is called, and calls the next; nobody answers. */
static void link(word_t place)
{
    struct message m = { endpoints + place + 1, LONG, { 0, 0, 0, 0 } };

    if (place != 0)
        receive(endpoints + place);
    reached++;
    if (place == last)
        end();
    else
        syscall(SYS_CALL, &m);
    send(SYS_SEND, report, SYSCALL_FAILED);
    for (;;)
        receive(park);
}

static void make_chain(void)
{
    if (threads != 0)
        return;
    threads = new_slots(BLOCKED + 1);
    endpoints = new_slots(BLOCKED + 1);
    for (word_t i = 0; i <= BLOCKED; i++) {
        require(make_error(TYPE_TCB, 0, ROOT_CNODE, threads + i), "thread");
        require(make_error(TYPE_ENDPOINT, 0, ROOT_CNODE, endpoints + i), "endpoint");
        require(tcb_configure(threads + i, 0, ROOT_CNODE, ROOT_PAGE_DIRECTORY, 0, 0), "thread");
    }
}

static void restart(word_t place, word_t priority)
{
    word_t thread = threads + place;

    require(tcb_suspend(thread), "thread");
    require(tcb_write_registers(thread, (word_t)link, (word_t)stacks[place + 1], 0, place), "thread");
    require(tcb_set_priority(thread, priority), "thread");
    require(tcb_resume(thread), "thread");
}

/*
 * The first thread of the chain is of the least priority, and calls when all others wait.  Queued
 * behind it is a thread in another address space: only that one can run after the last.
 */
static bool chain(word_t length, bool rises, void (*how)(void))
{
    struct child behind = make_child(tells, length, 0, 0);

    make_chain();
    last = length - 1;
    reached = 0;
    end = how;
    for (word_t place = length; place-- != 0;)
        restart(place, rises ? place : 0);
    start(&behind);
    SAME(wait_report(), length);
    SAME(reached, length);
    SAME(tcb_suspend(threads + last), 0);
    return true;
}

/* ---- faults without a handler: a blocked thread of each priority --------------------------- */

static void undefined(void)
{
    __asm__ volatile(".inst 0xe7f000f0");
}

static void jumps_away(void)
{
    ((void (*)(void))NOWHERE)();
}

static void reads_nothing(void)
{
    (void)*(volatile word_t *)NOWHERE;
}

static bool undefined_ends(void)
{
    return chain(BLOCKED, true, undefined);
}

static bool prefetch_abort_ends(void)
{
    return chain(BLOCKED, true, jumps_away);
}

static bool data_abort_ends(void)
{
    return chain(BLOCKED, true, reads_nothing);
}

/* ---- the interrupt of a tick: nobody who is blocked is more urgent than who runs ------------ */

static void spins(void)
{
    for (;;)
        continue;
}

static bool slice_ends(void)
{
    return chain(BLOCKED + 1, false, spins);
}

/* ---- clearing ------------------------------------------------------------------------------ */

static bool large_row(void)
{
    word_t radix = MEMORY_BITS - ROW_BITS - SLOT_SIZE_BITS, row = 1u << ROW_BITS;
    word_t memory = make(TYPE_UNTYPED, MEMORY_BITS), nodes = new_slots(row);

    SAME(untyped_retype(memory, TYPE_CNODE, radix, ROOT_CNODE, 0, 0, nodes, row), 0);
    SAME(cnode_copy(nodes + row - 1, (1u << radix) - 1, radix, ROOT_CNODE, park, 32, RIGHTS_ALL), 0);
    return true;
}

static const struct test tests[] = {
    { undefined_ends, "a thread behind all blocked ones runs after an undefined instruction" },
    { prefetch_abort_ends, "the same after a prefetch abort" },
    { data_abort_ends, "the same after a data abort" },
    { slice_ends, "the same when a slice ends, and all have one priority" },
    { large_row, "a row of CNodes takes 1 MiB" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
