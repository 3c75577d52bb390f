/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: equals get equal shares of the processor, for any actions just before their slices end.
 *
 * Each thread adds up the time in which it runs, by a timer that all of them read.
 */
#include "tests.h"
#include <devices.h>
#include <tick.h>

#define TIMER_ADDRESS  0x001fb000u
#define SHARED_ADDRESS 0x001fa000u /* one frame, in several spaces */
#define SLICE    TICK_CLOCKS              /* of time, in clocks of the timer: the kernel's */
#define TURN     (1u << 30)               /* the timer begins again so seldom */
#define GAP      (SLICE / 100)            /* who reads the timer as late as this has not run */
#define SLICES   100                      /* of one measurement */
#define EQUALS   50                       /* their priority */
#define HELPS    200

/* The memory shared by the first thread and children. */
struct shared {
    volatile word_t used[4]; /* clocks in which each has run */
    volatile word_t begun;
    volatile word_t stop;
};

#define SEEN ((struct shared *)SHARED_ADDRESS)

static word_t now(void)
{
    return timer_elapsed(TIMER_ADDRESS, TURN);
}

/* Some microseconds: reading the timer is slow in an emulator. */
static void work(void)
{
    for (word_t i = 0; i < 2000; i++)
        __asm__ volatile("");
}

/* Runs for so many clocks without a pause, or until all is over. */
static void run_for(word_t which, word_t clocks)
{
    word_t first = now(), last = first;

    while (last - first < clocks && !SEEN->stop) {
        word_t next;

        work();
        next = now();
        if (next - last < GAP)
            SEEN->used[which] += next - last;
        else
            first = next; /* others have run */
        last = next;
        if (last - SEEN->begun >= SLICES * SLICE)
            SEEN->stop = 1;
    }
}

/* Does nothing but run. */
static void spins(word_t which)
{
    run_for(which, TURN);
    tells(which);
}

static void runs(word_t unused)
{
    (void)unused;
    spins(0);
}

/* Yields when so many hundredths of its slice are over. */
static void yields(word_t hundredths)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    while (!SEEN->stop) {
        run_for(0, SLICE / 100 * hundredths);
        syscall(SYS_YIELD, &m);
    }
    tells(0);
}

/* Calls a more urgent thread then, which answers at once. */
static void calls(word_t hundredths)
{
    while (!SEEN->stop) {
        run_for(0, SLICE / 100 * hundredths);
        call(CHILD_ENDPOINT, 0, 0);
    }
    tells(0);
}

static void answers(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    for (;;)
        reply_receive(CHILD_ENDPOINT, 0, 0);
}

static struct child sharer(void (*run)(word_t), word_t argument, word_t frame, word_t endpoint)
{
    struct child child = make_child(run, argument, EQUALS, 0);

    require(frame_map(copy_of(ROOT_TIMER_FRAME), child.directory, TIMER_ADDRESS, RIGHT_WRITE, 0),
            "timer frame");
    require(frame_map(copy_of(frame), child.directory, SHARED_ADDRESS, RIGHT_WRITE, 0),
            "shared frame");
    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    return child;
}

static void put_share(const char *text, word_t clocks)
{
    put_string(text);
    put_number(clocks / (SLICE / 10));
}

/* Of a thread that uses so many hundredths of its turns, while its equal uses the whole of its own. */
static word_t share_of(word_t hundredths)
{
    return SLICE / (100 + hundredths) * hundredths * SLICES;
}

/*
 * Two threads: one acts when so many hundredths of its slice are over, the other one only runs.  Of a
 * hundred slices each has its share, but for one.  That is half of them; less for the first if it gives
 * away the rest of its turns: the other one has no more of a turn then, but there are more of them.
 */
static bool share(void (*run)(word_t), word_t hundredths, word_t endpoint)
{
    word_t frame = make(TYPE_FRAME_4K, 0);
    struct shared *shared = look_at(frame);
    struct child first = sharer(run, hundredths, frame, endpoint);
    struct child second = sharer(spins, 1, frame, endpoint);
    word_t fair = share_of(hundredths);

    shared->begun = now();
    start(&first);
    start(&second);
    wait_report();
    wait_report();
    put_share("# tenths of slices used: ", shared->used[0]);
    put_share(", and ", shared->used[1]);
    put_string("\n");
    return shared->used[0] >= fair - SLICE && shared->used[0] <= share_of(100) + SLICE
        && shared->used[1] >= share_of(100) - SLICE
        && shared->used[1] <= SLICES * SLICE - fair + SLICE;
}

static bool of_who_spins(void)
{
    require(frame_map(ROOT_TIMER_FRAME, ROOT_PAGE_DIRECTORY, TIMER_ADDRESS, RIGHT_WRITE, 0), "timer");
    timer_start_every(TIMER_ADDRESS, TURN);
    return share(runs, 100, make(TYPE_ENDPOINT, 0));
}

static bool of_who_yields(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    return share(yields, 95, endpoint) && share(yields, 99, endpoint);
}

static bool of_who_blocks(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(answers, 0, HELPS, endpoint, 0);
    return share(calls, 95, endpoint) && share(calls, 99, endpoint);
}

static const struct test tests[] = {
    { of_who_spins, "two threads that only run have equal shares" },
    { of_who_yields, "who yields just before its slice ends takes nothing from its equal" },
    { of_who_blocks, "nor does who blocks then, and is woken at once" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
