/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt latency: a timer interrupts at ever new moments while operations run that
 * take long.  Each interrupt has to be delivered once (ticker.h).  At which preemption
 * points they were taken shows in a recording: bench/interrupts.py.
 */
#include "tests.h"
#include "ticker.h"

#define WORKER   100 /* priority */
#define WAITERS  48
#define RING     16
#define AGAIN    32
#define OBJECT   CHILD_FREE
#define OTHER    (CHILD_FREE + 1)
#define UNTYPED  (CHILD_FREE + 2)
#define FIRST    (CHILD_FREE + 4)
#define ENTRIES  24
#define SPACE    0x40000000u
#ifdef PRESET_before /* whose operations take longer, and are not preempted as often */
#define EVERY    ((struct ticks){ 200, 300 })
#else
#define EVERY    ((struct ticks){ 20, 60 })
#endif

static word_t own(word_t label, word_t slot)
{
    word_t words[] = { slot, 32 };

    return invoke(CHILD_CNODE, label, words, 2, NULL, 0);
}

static word_t retype(word_t type, word_t bits, word_t first, word_t count)
{
    return untyped_retype(UNTYPED, type, bits, CHILD_CNODE, 0, 0, first, count);
}

/* Some interrupts came during the work, each once; says how many. */
static bool under_interrupts(const struct child *worker)
{
    if (!interrupted(worker, 0, EVERY))
        return false;
    put_string("# interrupts ");
    put_number(interrupts);
    put_string("\n");
    return interrupts != 0;
}

/* A worker with memory of its own, and its interrupts. */
static bool with_memory(void (*run)(word_t), word_t bits)
{
    struct child worker = make_child(run, 0, WORKER, 0);

    require(make_error(TYPE_UNTYPED, bits, worker.cnode, UNTYPED), "untyped");
    return under_interrupts(&worker);
}

/* ---- answering ------------------------------------------------------------------------ */

static void answers(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    (void)unused;
    syscall(SYS_RECEIVE, &m);
    for (;;) {
        m.w[0]++;
        m.badge = CHILD_ENDPOINT;
        m.info = message_make(MESSAGE_WORDS_MAX, 0, 0, 0); /* too long for the fastpath */
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

static void asks(word_t unused)
{
    word_t wrong = 0;

    (void)unused;
    for (word_t i = 0; i < 4 * AGAIN; i++)
        wrong += call(CHILD_ENDPOINT, 0, i).w[0] != i + 1;
    tells(wrong);
}

static bool answering(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child worker = make_child(asks, 0, WORKER, 0);

    give(&worker, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    run_child(answers, 0, WORKER, endpoint, 0);
    return under_interrupts(&worker);
}

/* ---- queues ------------------------------------------------------------------------------ */

/* Senders with a badge, then all others, with the endpoint. */
static void sends_away(word_t unused)
{
    word_t error = 0;

    (void)unused;
    error |= own(LABEL_CNODE_RECYCLE, OBJECT);
    error |= own(LABEL_CNODE_REVOKE, OTHER);
    error |= own(LABEL_CNODE_DELETE, OTHER);
    tells(error);
}

/* With a queue, and again without. */
static void recycles(word_t unused)
{
    word_t error = 0;

    (void)unused;
    for (word_t i = 0; i < AGAIN; i++)
        error |= own(LABEL_CNODE_RECYCLE, OBJECT);
    tells(error);
}

static void waits(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    rest();
}

static void sends(word_t unused)
{
    (void)unused;
    send(SYS_SEND, CHILD_ENDPOINT, 0);
    rest();
}

/* Children that run "wait", every fourth with a badge; all wait on return. */
static void make_queue(word_t object, void (*wait)(word_t))
{
    for (word_t i = 0; i < WAITERS; i++)
        run_child(wait, 0, 50, object, (i & 3) == 0);
    run_child(tells, 0, 5, 0, 0);
    wait_report();
}

static bool endpoint_queue(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child worker = make_child(sends_away, 0, WORKER, 0);

    make_queue(endpoint, sends);
    require(cnode_mint(worker.cnode, OBJECT, 32, ROOT_CNODE, endpoint, 32, RIGHTS_ALL, 1),
            "badge");
    require(cnode_move(worker.cnode, OTHER, 32, ROOT_CNODE, endpoint, 32), "endpoint");
    return under_interrupts(&worker);
}

static bool notification_queue(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child worker = make_child(recycles, 0, WORKER, 0);

    give(&worker, OBJECT, notification, RIGHTS_ALL, 0);
    make_queue(notification, waits);
    return under_interrupts(&worker);
}

/* ---- memory and containers ------------------------------------------------------------------ */

static void clears(word_t unused)
{
    word_t error = 0;

    (void)unused;
    for (word_t i = 0; i < 3; i++) {
        error |= retype(TYPE_FRAME_64K, 0, OBJECT, 1);
        error |= own(LABEL_CNODE_REVOKE, UNTYPED);
    }
    tells(error);
}

static bool clearing(void)
{
    return with_memory(clears, 16);
}

/* CNodes that hold each other in a ring, and threads. */
static void deletes_ring(word_t unused)
{
    word_t error = 0;

    (void)unused;
    error |= retype(TYPE_CNODE, 2, FIRST, RING);
    error |= retype(TYPE_TCB, 0, FIRST + RING, RING);
    for (word_t i = 0; i < RING; i++) {
        error |= cnode_copy(FIRST + i, 0, 2, CHILD_CNODE, FIRST + (i + 1) % RING, 32,
                            RIGHTS_ALL);
        error |= cnode_move(FIRST + i, 1, 2, CHILD_CNODE, FIRST + RING + i, 32);
    }
    for (word_t i = 0; i < RING; i++)
        error |= own(LABEL_CNODE_DELETE, FIRST + i);
    tells(error);
}

static bool containers(void)
{
    return with_memory(deletes_ring, 15);
}

/* A table, then a directory with tables and frames. */
static void deletes_space(word_t unused)
{
    word_t error = 0;

    (void)unused;
    error |= retype(TYPE_PAGE_DIRECTORY, 0, OBJECT, 1);
    if (SPACES_HAVE_NUMBERS)
        error |= asid_assign(CHILD_POOL, OBJECT);
    error |= retype(TYPE_PAGE_TABLE, 0, FIRST, ENTRIES);
    error |= retype(TYPE_FRAME_4K, 0, FIRST + ENTRIES, ENTRIES);
    for (word_t i = 0; i < ENTRIES; i++)
        error |= page_table_map(FIRST + i, OBJECT, SPACE + (i << 20));
    for (word_t i = 0; i < ENTRIES; i++)
        error |= frame_map(FIRST + ENTRIES + i, OBJECT, SPACE + (i << 12), RIGHT_READ, 0);
    error |= own(LABEL_CNODE_DELETE, FIRST);
    error |= own(LABEL_CNODE_DELETE, OBJECT);
    error |= own(LABEL_CNODE_REVOKE, UNTYPED);
    tells(error);
}

static bool address_space(void)
{
    return with_memory(deletes_space, 18);
}

static const struct test latency_tests[] = {
    { answering, "calls are answered while interrupts come" },
    { endpoint_queue, "senders are sent away, by badge and with the endpoint, while interrupts come" },
    { notification_queue, "a notification is recycled while interrupts come" },
    { clearing, "memory is cleared while interrupts come" },
    { containers, "CNodes and threads are deleted while interrupts come" },
    { address_space, "an address space is deleted while interrupts come" },
    { NULL, NULL },
};

const struct test *const suite[] = { latency_tests, NULL };
