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

/* The argument of a child that acts when so many hundredths of its slice are over. */
#define ACT(which, hundredths) ((hundredths) << 2 | (which))
#define WHICH(argument)         ((argument) & 3)
#define CLOCKS(argument)        (SLICE / 100 * ((argument) >> 2))

/* Does nothing but run. */
static void spins(word_t argument)
{
    run_for(WHICH(argument), TURN);
    tells(0);
}

/* Yields then. */
static void yields(word_t argument)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    while (!SEEN->stop) {
        run_for(WHICH(argument), CLOCKS(argument));
        syscall(SYS_YIELD, &m);
    }
    tells(0);
}

/* Calls a more urgent thread then, which answers at once. */
static void calls(word_t argument)
{
    while (!SEEN->stop) {
        run_for(WHICH(argument), CLOCKS(argument));
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

struct act {
    void (*run)(word_t);
    word_t hundredths; /* of its turns that it uses */
};

#define WHOLE 100          /* hundredths of who does nothing but run */

/*
 * Of a hundred slices each has its share, but for one: nobody takes anything from who only runs.  Who gives
 * away the rest of its turns has less: the others have no more of a turn then, but there are more of them.
 */
static bool has_its_share(word_t used, word_t hundredths, word_t total, word_t equal)
{
    word_t fair = SLICES * SLICE / total * hundredths;

    if (hundredths < WHOLE)
        return used + SLICE >= fair && used <= equal + SLICE;
    return used + SLICE >= equal && used <= fair + SLICE;
}

static bool share(const struct act *acts, word_t count, word_t endpoint)
{
    word_t frame = make(TYPE_FRAME_4K, 0), total = 0, equal = SLICES * SLICE / count;
    struct shared *shared = look_at(frame);
    struct child children[4];
    bool good = true;

    for (word_t i = 0; i < count; i++) {
        total += acts[i].hundredths;
        children[i] = sharer(acts[i].run, ACT(i, acts[i].hundredths), frame, endpoint);
    }
    shared->begun = now();
    for (word_t i = 0; i < count; i++)
        start(&children[i]);
    for (word_t i = 0; i < count; i++)
        wait_report();
    put_string("# tenths of slices used:");
    for (word_t i = 0; i < count; i++) {
        put_string(" ");
        put_number(shared->used[i] / (SLICE / 10));
        good = good && has_its_share(shared->used[i], acts[i].hundredths, total, equal);
    }
    put_string("\n");
    return good;
}

static bool of_who_spins(void)
{
    static const struct act acts[] = { { spins, WHOLE }, { spins, WHOLE }, { spins, WHOLE } };
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    require(frame_map(ROOT_TIMER_FRAME, ROOT_PAGE_DIRECTORY, TIMER_ADDRESS, RIGHT_WRITE, 0), "timer");
    timer_start_every(TIMER_ADDRESS, TURN);
    return share(acts, 2, endpoint) && share(acts, 3, endpoint);
}

static bool of_who_yields(void)
{
    static const struct act early[] = { { yields, 95 }, { spins, WHOLE } };
    static const struct act late[] = { { yields, 99 }, { spins, WHOLE }, { spins, WHOLE } };
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    return share(early, 2, endpoint) && share(late, 3, endpoint);
}

static bool of_who_blocks(void)
{
    static const struct act early[] = { { calls, 95 }, { spins, WHOLE } };
    static const struct act late[] = { { calls, 99 }, { spins, WHOLE }, { yields, 99 } };
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(answers, 0, HELPS, endpoint, 0);
    return share(early, 2, endpoint) && share(late, 3, endpoint);
}

static const struct test tests[] = {
    { of_who_spins, "threads that only run have equal shares" },
    { of_who_yields, "who yields just before its slice ends takes nothing from its equals" },
    { of_who_blocks, "nor does who blocks then, and is woken at once" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
