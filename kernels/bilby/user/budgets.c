/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: a budget is a budget over a hundred periods, measured (preset mcs). */
#include "tests.h"
#include "timed.h"

#define BUDGET  (2 * BUDGET_MIN) /* short, so that a hundred periods take little */
#define PERIOD  (2 * BUDGET) /* half of the time */
#define PERIODS 100

/* Less urgent than all others: QEMU's time is not to pass over a period in which nobody runs. */
static void let_one_spin(void)
{
    share_nothing_yet();
    spinner(7, 1, SLICE, SLICE);
}

static struct child worker(void (*run)(word_t), word_t endpoint)
{
    struct child child = make_child(run, 0, 30, 0);

    share_with(&child);
    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    require(context_configure(child.context, BUDGET, PERIOD), "budget");
    start(&child);
    return child;
}

/* Half of the time, but for a budget at each end of it. */
static bool has_half(word_t context)
{
    ticks_t begun = clock_now(), whole;
    word_t used;

    used_of(context);
    sleep_until(begun + PERIODS * PERIOD);
    used = used_of(context);
    whole = clock_now() - begun;
    shared->stop = 1;
    put_string("# thousandths of the time used, of 500: ");
    put_number((word_t)((ticks_t)used * 1000 / whole));
    put_string("\n");
    return is_about(used, (word_t)(whole / 2), 2 * BUDGET);
}

/* At first a more urgent thread leaves it half of its budget: it is runnable all the time. */
static bool who_was_kept_from_running(void)
{
    struct child urgent, child;

    let_one_spin();
    urgent = spinner(1, 40, BUDGET / 2 * 3, PERIOD);
    child = worker(spins, park);
    sleep_for(3 * PERIOD);
    SAME(tcb_suspend(urgent.tcb), 0);
    return has_half(child.context);
}

/* Waits, and is woken at once, hundreds of times in each period. */
static void calls_often(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    (void)unused;
    while (!seen->stop) {
        for (volatile word_t i = 0; i < 200; i++)
            continue;
        call(CHILD_ENDPOINT, 0, 0);
    }
    rest();
}

static void answers(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    for (;;)
        reply_receive(CHILD_ENDPOINT, 0, 0);
}

/* The server has time of its own: each wait begins a new amount of the caller's budget. */
static bool who_waits_often(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), used, whole;
    struct child child;
    ticks_t begun;

    let_one_spin();
    run_child(answers, 0, 50, endpoint, 0);
    let_others_run();
    child = worker(calls_often, endpoint);
    begun = clock_now();
    used_of(child.context);
    sleep_until(begun + PERIODS * PERIOD);
    used = used_of(child.context);
    whole = (word_t)(clock_now() - begun);
    shared->stop = 1;
    put_string("# thousandths of the time used, of 500 at most: ");
    put_number((word_t)((ticks_t)used * 1000 / whole));
    put_string("\n");
    return used <= whole / 2 + 2 * BUDGET && used >= whole / 8;
}

static const struct test tests[] = {
    { who_was_kept_from_running, "who was kept from running has its budget in each period then, and no more" },
    { who_waits_often, "who waits often has no more, however often it is woken" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
