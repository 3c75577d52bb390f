/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Temporal isolation, Figure 12 of "Mixed-criticality support in a high-assurance, general-purpose
 * microkernel": how many requests a server answers while a hog of higher priority takes its budget of
 * each period.  The server has no time of its own, and works on its client's, in another partition.
 *
 * Requests are counted over WINDOW, a multiple of every hog's period: so it has its budget in there
 * exactly so many times, wherever the window begins.
 */
#include "tests.h"
#include "work.h"

#define SHARED_ADDRESS 0x001fa000u
#define WINDOW  (100 * MILLISECOND)
#define PERIOD  (25 * MILLISECOND) /* of the hog */
#define LEAD    (PERIOD + PERIOD / 20) /* the window begins when no hog has nearly used up its budget */
#define WORK_OF_REQUEST 400 /* turns */

#define HOG     100 /* priorities */
#define SERVES  50
#define ASKS    40
#define IDLES   10

struct shared {
    volatile word_t requests, stop;
};

#define SEEN ((struct shared *)SHARED_ADDRESS) /* by children */

/* ---- partitions ----------------------------------------------------------------------------- */

static void serves(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;) {
        work(WORK_OF_REQUEST);
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 1);
    }
}

/* A wrong answer is not counted. */
static void asks(word_t unused)
{
    (void)unused;
    for (word_t i = 0; !SEEN->stop; i++)
        if (call(CHILD_ENDPOINT, 0, i).w[0] == i + 1)
            SEEN->requests++;
    rest();
}

static void never_waits(word_t unused)
{
    (void)unused;
    while (!SEEN->stop)
        continue;
    rest();
}

/* ---- the first thread ------------------------------------------------------------------------- */

static struct shared *shared;
static word_t shared_frame;

static void share_with(const struct child *child)
{
    require(frame_map(copy_of(shared_frame), child->directory, SHARED_ADDRESS,
                      RIGHT_READ | RIGHT_WRITE, 0), "shared frame");
}

static void make_client_and_server(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child server = run_child(serves, 0, SERVES, endpoint, 0);
    struct child client = make_child(asks, 0, ASKS, 0);

    let_others_run();
    make_passive(&server);
    give(&client, CHILD_ENDPOINT, endpoint, RIGHT_SEND, 0);
    share_with(&client);
    start(&client);
}

/* A budget of 0: there is none. */
static void make_hog(word_t priority, word_t budget, word_t period)
{
    struct child hog;

    if (budget == 0)
        return;
    hog = make_child(never_waits, 0, priority, 0);
    share_with(&hog);
    require(context_configure(hog.context, budget, period), "hog");
    start(&hog);
}

/* To the end of the present period of the first thread, which is so long from now on. */
static void sleep(word_t period)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    require(context_configure(ROOT_CONTEXT, BUDGET_LEAST, period), "sleep");
    syscall(SYS_YIELD, &m);
}

/* The first thread runs only at the window's ends, so that it does not disturb the hog. */
static word_t requests_against(word_t priority, word_t budget, word_t period)
{
    word_t before, count;
    ticks_t begin;

    shared_frame = make(TYPE_FRAME_4K, 0);
    shared = look_at(shared_frame);
    make_client_and_server();
    make_hog(priority, budget, period);
    for (begin = clock_now(); clock_now() - begin < LEAD;) /* a full context had no period */
        sleep(LEAD);
    before = shared->requests;
    sleep(WINDOW);
    count = shared->requests - before;
    require(context_configure(ROOT_CONTEXT, SLICE, SLICE), "awake");
    shared->stop = 1;
    let_others_run();
    return count;
}

static void put_line(const char *name, word_t value)
{
    put_string("# ");
    put_string(name);
    put_string(" ");
    put_number(value);
    put_string("\n");
}

static void put_requests(word_t percent, word_t requests)
{
    put_string("# isolation ");
    put_number(percent);
    put_string(" ");
    put_number(requests);
    put_string("\n");
}

static bool is_within(word_t percent, word_t value, word_t expected)
{
    word_t difference = value > expected ? value - expected : expected - value;

    if (100 * difference <= percent * expected)
        return true;
    return same("requests", value, expected);
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static word_t alone; /* requests without a hog */

static bool without_a_hog(void)
{
    alone = requests_against(HOG, 0, 0);
    put_requests(0, alone);
    return alone > 1000;
}

/* In tenths of a period. */
static bool hogs_take_their_budgets(void)
{
    bool good = true;

    for (word_t tenths = 1; tenths <= 9; tenths++) {
        word_t requests = requests_against(HOG, tenths * (PERIOD / 10), PERIOD);

        put_requests(10 * tenths, requests);
        good = is_within(3, 10 * requests, (10 - tenths) * alone) && good;
    }
    return good;
}

static bool lower_hog_costs_nothing(void)
{
    word_t requests = requests_against(IDLES, SLICE, SLICE);

    put_line("isolation-lower", requests);
    return is_within(1, requests, alone);
}

static bool periods_do_not_matter(void)
{
    word_t often = requests_against(HOG, 5 * MILLISECOND, 10 * MILLISECOND);
    word_t seldom = requests_against(HOG, 50 * MILLISECOND, 100 * MILLISECOND);

    put_line("isolation-50-period-10", often);
    put_line("isolation-50-period-100", seldom);
    return is_within(3, often, seldom) && is_within(3, 2 * often, alone);
}

static const struct test isolation_tests[] = {
    { without_a_hog, "a server answers a client in another partition" },
    { hogs_take_their_budgets, "a hog with a budget of b of its period leaves 1 - b of the requests (Figure 12)" },
    { lower_hog_costs_nothing, "a hog of lower priority that never waits costs nothing" },
    { periods_do_not_matter, "the same part of a shorter and of a longer period leaves the same" },
    { NULL, NULL },
};

const struct test *const suite[] = { isolation_tests, NULL };
