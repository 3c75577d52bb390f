/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benchmark: operations on time, each many times in a row, so that a recording of the kernel shows
 * them as two system calls that alternate; campaigns/mcs_results.py finds and times them.
 */
#include "tests.h"
#include "contexts.h"

#define ROUNDS 64

/* Threads of one criticality, ready to run and less urgent than the first one. */
static void make_high_threads(word_t count)
{
    static struct child space;

    if (space.tcb == 0)
        space = make_child(tells, 0, 1, 0);
    while (count-- != 0) {
        word_t thread = make(TYPE_TCB, 0);

        require(tcb_configure(thread, 0, space.cnode, space.directory, 0, 0), "thread");
        require(tcb_set_priority(thread, 10), "priority");
        require(tcb_set_criticality(thread, 1), "criticality");
        give_time(thread);
        require(tcb_resume(thread), "resume");
    }
}

/* To level 1 and back, and the clock between; so many threads more are critical than before. */
static bool switches(word_t more)
{
    make_high_threads(more);
    for (word_t i = 0; i < ROUNDS; i++) {
        SAME(system_criticality(~i & 1), 0);
        clock_now();
    }
    return true;
}

static bool switches_of_none(void)
{
    SAME(tcb_set_criticality(ROOT_TCB, 3), 0);
    return switches(0);
}

static bool switches_of_4(void)
{
    return switches(4);
}

static bool switches_of_12(void)
{
    return switches(8);
}

static bool switches_of_28(void)
{
    return switches(16);
}

static bool switches_of_124(void)
{
    return switches(96);
}

static bool binds(void)
{
    word_t context = make(TYPE_CONTEXT, 0);
    word_t tcb = make(TYPE_TCB, 0);

    SAME(context_configure(context, SLICE, SLICE), 0);
    for (word_t i = 0; i < ROUNDS; i++) {
        SAME(context_bind(context, tcb), 0);
        SAME(context_unbind(context), 0);
    }
    return true;
}

/* A period of one thread's budget is another budget; and the time is asked for. */
static bool configures(void)
{
    word_t context = make(TYPE_CONTEXT, 0);

    SAME(context_configure(context, SLICE, 2 * SLICE), 0);
    for (word_t i = 0; i < ROUNDS; i++) {
        SAME(context_configure(context, SLICE + i, 2 * SLICE), 0);
        clock_now();
    }
    return true;
}

static bool asks_and_yields(void)
{
    struct child child = make_child(tells, 0, 1, 0);
    word_t context = child.context;
    ticks_t used;

    start(&child);
    for (word_t i = 0; i < ROUNDS; i++) {
        SAME(context_yield_to(context, &used), 0);
        SAME(context_consumed(context, &used), 0);
    }
    return true;
}

static const struct test mode_tests[] = {
    { switches_of_none, "the system's criticality changes, and no thread is critical" },
    { switches_of_4, "the same with 4 critical threads" },
    { switches_of_12, "the same with 12" },
    { switches_of_28, "the same with 28" },
    { switches_of_124, "the same with 124" },
    { binds, "a context is bound and unbound" },
    { configures, "a budget is set, and the time is asked for" },
    { asks_and_yields, "a thread is yielded to, and asked what it has used" },
    { NULL, NULL },
};

const struct test *const suite[] = { mode_tests, NULL };
