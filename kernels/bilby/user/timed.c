/* SPDX-License-Identifier: BSD-2-Clause */
/* See timed.h. */
#include "timed.h"
#include "tests.h"

struct shared *shared;
static word_t shared_frame;

void share_nothing_yet(void)
{
    shared_frame = make(TYPE_FRAME_4K, 0);
    shared = look_at(shared_frame);
}

void share_with(const struct child *child)
{
    require(frame_map(copy_of(shared_frame), child->directory, SHARED_ADDRESS,
                      RIGHT_READ | RIGHT_WRITE, 0), "shared frame");
}

/* Never waits. */
void spins(word_t which)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    while (!seen->stop)
        seen->turns[which]++;
    rest();
}

struct child spinner(word_t which, word_t priority, word_t budget, word_t period)
{
    struct child child = make_child(spins, which, priority, 0);

    share_with(&child);
    require(context_configure(child.context, budget, period), "spinner's budget");
    start(&child);
    return child;
}

/* The first thread waits for the end of one period: it interrupts nobody before. */
void sleep_until(ticks_t time)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    for (ticks_t now = clock_now(); now < time; now = clock_now()) {
        word_t rest = (word_t)(time - now);

        require(context_configure(ROOT_CONTEXT, BUDGET_LEAST, rest < BUDGET_LEAST ? BUDGET_LEAST + 1 : rest + 1),
                "sleep");
        syscall(SYS_YIELD, &m);
    }
    require(context_configure(ROOT_CONTEXT, SLICE, SLICE), "awake");
}

void sleep_for(word_t ticks)
{
    sleep_until(clock_now() + ticks);
}

word_t used_of(word_t context)
{
    ticks_t used;

    require(context_consumed(context, &used), "consumed");
    return (word_t)used;
}

bool is_about(word_t value, word_t expected, word_t tolerance)
{
    if (value + tolerance >= expected && value <= expected + tolerance)
        return true;
    return same("value", value, expected);
}

/* Answers after so many turns of a loop. */
void serves_slowly(word_t turns)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        for (volatile word_t i = 0; i < turns; i++)
            continue;
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 1);
    }
}

/* A server that waits, without time of its own. */
struct child passive_server(void (*run)(word_t), word_t argument, word_t endpoint)
{
    struct child server = run_child(run, argument, HANDLES, endpoint, 0);

    let_others_run();
    make_passive(&server);
    return server;
}

void calls_once(word_t value)
{
    tells(call(CHILD_ENDPOINT, 0, value).w[0]);
}
