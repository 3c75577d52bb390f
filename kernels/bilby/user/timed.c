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

void works(word_t turns)
{
    for (volatile word_t i = 0; i < turns; i++)
        continue;
}

/* How long an instruction takes differs between runs. */
word_t turns_in(word_t ticks)
{
    const word_t turns = 20000;
    ticks_t begun = clock_now();

    works(turns);
    return (word_t)((ticks_t)ticks * turns / (clock_now() - begun));
}

void serves_slowly(word_t turns)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        works(turns);
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 1);
    }
}

void start_passive(const struct child *child)
{
    start(child);
    let_others_run();
    make_passive(child);
}

struct child passive_server(void (*run)(word_t), word_t argument, word_t endpoint)
{
    struct child server = make_child(run, argument, HANDLES, 0);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start_passive(&server);
    return server;
}

void calls_once(word_t value)
{
    tells(call(CHILD_ENDPOINT, 0, value).w[0]);
}

struct child calls_on(word_t endpoint, word_t value, word_t budget, word_t period)
{
    struct child client = make_child(calls_once, value, WORK, 0);

    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    require(context_configure(client.context, budget, period), "caller's budget");
    start(&client);
    return client;
}

/* The call is answered, or the least urgent thread tells that it was not. */
word_t answer_to(word_t endpoint, word_t value)
{
    run_child(calls_once, value, WORK, endpoint, 0);
    run_child(tells, NEVER, 1, 0, 0);
    value = wait_report();
    if (value != NEVER)
        require(wait_report() != NEVER, "the least urgent");
    return value;
}
