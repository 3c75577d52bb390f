/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt latency: a timer interrupts at ever new moments while operations run that
 * take long.  Each interrupt has to be delivered once (ticker.h).  At which preemption
 * points they were taken shows in a recording: bench/interrupts.py.
 */
#include "tests.h"
#include "ticker.h"

#define WAITERS  24
#define ROUNDS   200
#define AGAIN    32
#define OBJECT   CHILD_FREE
#define UNTYPED  (CHILD_FREE + 2)
#define FIRST    (CHILD_FREE + 4)
#define TABLES   2
#define PAGES    32
#define SPACE    0x40000000u
#ifdef PRESET_before /* whose operations take longer, and are not preempted as often */
#define EVERY    ((struct ticks){ 200, 300 })
#else
#define EVERY    ((struct ticks){ 40, 60 })
#endif

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
    for (word_t i = 0; i < ROUNDS; i++)
        wrong += call(CHILD_ENDPOINT, 0, i).w[0] != i + 1;
    tell(wrong);
    rest();
}

static bool answering(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child worker = make_child(asks, 0, 100, 0);

    give(&worker, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    run_child(answers, 0, 100, endpoint, 0);
    return under_interrupts(&worker);
}

/* ---- a notification with a queue ---------------------------------------------------------- */

static void recycles(word_t unused)
{
    word_t words[] = { OBJECT, 32 };
    word_t error = 0;

    (void)unused;
    for (word_t i = 0; i < AGAIN; i++) /* the first time with a queue */
        error |= invoke(CHILD_CNODE, LABEL_CNODE_RECYCLE, words, 2, NULL, 0);
    tell(error);
    rest();
}

static void waits(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    rest();
}

static void tells(word_t value)
{
    tell(value);
    rest();
}

static bool notification_queue(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child worker = make_child(recycles, 0, 100, 0);

    give(&worker, OBJECT, notification, RIGHTS_ALL, 0);
    for (word_t i = 0; i < WAITERS; i++)
        run_child(waits, 0, 50, notification, 0);
    run_child(tells, 0, 5, 0, 0);
    wait_report();
    return under_interrupts(&worker);
}

/* ---- tables with many mappings ------------------------------------------------------------ */

static word_t own(word_t label, word_t slot)
{
    word_t words[] = { slot, 32 };

    return invoke(CHILD_CNODE, label, words, 2, NULL, 0);
}

static word_t retype(word_t type, word_t first, word_t count)
{
    return untyped_retype(UNTYPED, type, 0, CHILD_CNODE, 0, 0, first, count);
}

static void empties_tables(word_t unused)
{
    word_t error = 0;

    (void)unused;
    error |= retype(TYPE_PAGE_DIRECTORY, OBJECT, 1);
    if (SPACES_HAVE_NUMBERS)
        error |= asid_assign(CHILD_POOL, OBJECT);
    error |= retype(TYPE_PAGE_TABLE, FIRST, TABLES);
    for (word_t i = 0; i < TABLES; i++) {
        error |= retype(TYPE_FRAME_4K, FIRST + TABLES, PAGES);
        error |= page_table_map(FIRST + i, OBJECT, SPACE + (i << 20));
        for (word_t j = 0; j < PAGES; j++)
            error |= frame_map(FIRST + TABLES + j, OBJECT, SPACE + (i << 20) + (j << 12),
                               RIGHT_READ, 0);
        error |= own(LABEL_CNODE_DELETE, FIRST + i); /* the frames are unmapped */
        for (word_t j = 0; j < PAGES; j++)
            error |= own(LABEL_CNODE_DELETE, FIRST + TABLES + j);
    }
    error |= own(LABEL_CNODE_REVOKE, UNTYPED);
    tell(error);
    rest();
}

static bool page_tables(void)
{
    struct child worker = make_child(empties_tables, 0, 100, 0);

    require(make_error(TYPE_UNTYPED, 19, worker.cnode, UNTYPED), "untyped");
    return under_interrupts(&worker);
}

static const struct test latency_tests[] = {
    { answering, "calls are answered while interrupts come" },
    { notification_queue, "a notification is recycled while interrupts come" },
    { page_tables, "page tables are emptied while interrupts come" },
    { NULL, NULL },
};

const struct test *const suite[] = { preempt_tests, latency_tests, NULL };
