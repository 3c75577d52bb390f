/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: hostile programs about the order of queues, donated time and budgets (preset mcs). Each
 * compares the kernel with a model, or with the time that it measures.
 */
#include "tests.h"
#include "timed.h"
#include "waiters.h"

#define ABORTED (SYSCALL_FAILED | ERROR_ABORTED)

/* ---- a queue whose threads change their priority, leave and come ----------------------------- */

#define DRAINED 8 /* waiters */
#define STEPS   160

static void sends_always(word_t value)
{
    for (;;)
        send(SYS_SEND, CHILD_ENDPOINT, value);
}

static void receives_always(word_t value)
{
    for (;;) {
        receive(CHILD_ENDPOINT);
        tell(value);
    }
}

static word_t leaves_and_comes(word_t which, void (*run)(word_t))
{
    struct registers registers;
    word_t tcb = waiters[which].child.tcb;

    SAME(tcb_suspend(tcb), 0);
    waiters[which].waits = false;
    SAME(tcb_read_registers(tcb, &registers), 0);
    SAME(tcb_write_registers(tcb, (word_t)run, registers.sp, 0, which), 0);
    SAME(tcb_resume(tcb), 0);
    comes(which);
    return true;
}

/* Four levels, of which two are in one word of the index, so that many are equal. */
static const word_t levels[4] = { 5, 64, 70, 220 };

static bool changes(word_t which)
{
    return gets_priority(which, levels[draw(4)]);
}

/* All leave, then some come again: the queue is empty in between. */
static bool is_drained_by(bool (*takes)(word_t object), word_t object, void (*run)(word_t))
{
    for (word_t i = 0; i < DRAINED; i++) {
        waiters[i].priority = levels[i & 3];
        waiters[i].child = run_child(run, i, waiters[i].priority, object, 0);
        comes(i);
    }
    for (word_t step = 0; step < STEPS; step++) {
        word_t which = draw(DRAINED);

        switch (draw(4)) {
        case 0:
            if (!leaves_and_comes(which, run))
                return false;
            break;
        case 1:
            if (!takes(object))
                return false;
            break;
        default:
            if (!changes(which))
                return false;
            break;
        }
    }
    for (word_t i = 0; i < 2 * DRAINED; i++)
        if (!takes(object))
            return false;
    for (word_t i = 0; i < DRAINED; i++)
        SAME(tcb_suspend(waiters[i].child.tcb), 0);
    return true;
}

static bool takes_a_sender(word_t endpoint)
{
    word_t first = first_of_queue();

    SAME(receive(endpoint).w[0], first);
    comes(first);
    return true;
}

static bool takes_a_receiver(word_t object)
{
    word_t first = first_of_queue();

    SAME(send(SYS_SEND, object, 0), 0);
    SAME(wait_report(), first);
    comes(first);
    return true;
}

static bool queues_are_in_order(void)
{
    return is_drained_by(takes_a_sender, make(TYPE_ENDPOINT, 0), sends_always)
        && is_drained_by(takes_a_receiver, make(TYPE_ENDPOINT, 0), receives_always)
        && is_drained_by(takes_a_receiver, make(TYPE_NOTIFICATION, 0), receives_always);
}

/* ---- an endpoint with waiters of many levels is deleted ----------------------------------------- */

#define LEVELS 24

static void sends_in_vain(word_t value)
{
    (void)value;
    tells(send(SYS_SEND, CHILD_ENDPOINT, 0));
}

/* Some were moved, and some have left; each of the others wakes, and the memory can be used again. */
static bool deletion_wakes_all_levels(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), other = make(TYPE_ENDPOINT, 0);
    static struct child children[LEVELS];

    for (word_t i = 0; i < LEVELS; i++) {
        children[i] = run_child(sends_in_vain, i, 2 + 10 * i, endpoint, i & 1);
        let_others_run();
    }
    for (word_t i = 0; i < LEVELS; i += 3)
        SAME(tcb_set_priority(children[i].tcb, 250 - 7 * i), 0);
    for (word_t i = 0; i < LEVELS; i += 4)
        SAME(tcb_suspend(children[i].tcb), 0);
    SAME(cnode_revoke(ROOT_CNODE, endpoint, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, endpoint, 32), 0);
    for (word_t i = 0; i < LEVELS - LEVELS / 4; i++)
        SAME(wait_report(), ABORTED);
    run_child(tells, NEVER, 1, 0, 0);
    SAME(wait_report(), NEVER); /* and nobody else */
    run_child(sends_always, 5, 20, other, 0);
    SAME(receive(other).w[0], 5);
    return true;
}

/* ---- time that ends at each level of nested calls ------------------------------------------------ */

/* Before and after it calls the next server, if there is one, it works for so long. */
static void serves_by(word_t turns)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        word_t value = m.w[0];

        works(turns);
        value = call(CHILD_OTHER, 0, value).w[0];
        works(turns);
        m = reply_receive(CHILD_ENDPOINT, 0, value + 1);
    }
}

static struct child middle_server(word_t turns, word_t endpoint, word_t next)
{
    struct child server = make_child(serves_by, turns, HANDLES, 0);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, next, RIGHTS_ALL, 0);
    start_passive(&server);
    return server;
}

#define NESTED_CALLS 24

static void calls_often(word_t value)
{
    for (word_t i = 0; i < NESTED_CALLS; i++) {
        works(value);
        if (call(CHILD_ENDPOINT, 0, i).w[0] != i + 3)
            tells(i);
    }
    tells(value);
}

/*
 * The client and its servers work six times in each call, so that eleven times use up the budget: it ends at
 * another place in each period.  None of the servers goes on without it, and none for ever.
 */
static bool budgets_end_at_each_level(void)
{
    word_t first = make(TYPE_ENDPOINT, 0), second = make(TYPE_ENDPOINT, 0);
    word_t third = make(TYPE_ENDPOINT, 0), turns = turns_in(BUDGET_LEAST / 11), used;
    struct child client = make_child(calls_often, turns, WORK, 0);
    ticks_t begun, elapsed;

    passive_server(serves_slowly, turns, third);
    middle_server(turns, second, third);
    middle_server(turns, first, second);
    give(&client, CHILD_ENDPOINT, first, RIGHTS_ALL, 0);
    SAME(context_configure(client.context, BUDGET_LEAST, 2 * BUDGET_LEAST), 0);
    start(&client);
    begun = clock_now();
    SAME(wait_report(), turns);
    elapsed = clock_now() - begun;
    used = used_of(client.context);
    put_string("# periods that nested calls took: ");
    put_number((word_t)(elapsed / (2 * BUDGET_LEAST)));
    put_string("\n");
    return elapsed > 20 * BUDGET_LEAST && used <= elapsed / 2 + 2 * BUDGET_LEAST
        && used >= elapsed / 2 - 2 * BUDGET_LEAST;
}

/* ---- whoever is in a chain of calls is deleted ---------------------------------------------------- */

struct chain {
    word_t endpoint;
    struct child client, first, second;
};

/* The last of two passive servers works for a client, for long. */
static struct chain busy_chain(void)
{
    word_t second = make(TYPE_ENDPOINT, 0);
    struct chain chain = { .endpoint = make(TYPE_ENDPOINT, 0) };

    chain.second = passive_server(serves_slowly, 2000000, second);
    chain.first = middle_server(10, chain.endpoint, second);
    chain.client = run_child(calls_once, 4, WORK, chain.endpoint, 0);
    sleep_for(2 * BUDGET_LEAST);
    return chain;
}

static bool clients_are_deleted_in_nested_calls(void)
{
    struct chain chain = busy_chain();

    SAME(cnode_revoke(ROOT_CNODE, chain.client.tcb, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, chain.client.tcb, 32), 0);
    SAME(call(chain.endpoint, 0, 5).w[0], 7);
    SAME(context_bind(chain.client.context, make(TYPE_TCB, 0)), 0);
    return true;
}

static bool servers_are_deleted_in_nested_calls(void)
{
    struct chain chain = busy_chain();
    struct registers registers;

    SAME(cnode_revoke(ROOT_CNODE, chain.first.tcb, 32), 0);
    SAME(cnode_delete(ROOT_CNODE, chain.first.tcb, 32), 0);
    sleep_for(600 * MILLISECOND); /* the second ends its work, and gives the time back */
    SAME(tcb_suspend(chain.client.tcb), 0);
    SAME(tcb_read_registers(chain.client.tcb, &registers), 0);
    SAME(tcb_write_registers(chain.client.tcb, (word_t)tells, registers.sp, 0, 9), 0);
    SAME(tcb_resume(chain.client.tcb), 0);
    SAME(wait_report(), 9); /* on its own context */
    return true;
}

/* ---- signals while the time is away --------------------------------------------------------------- */

/* Counts its signals; with each call it calls the next server. */
static void counts_signals(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;) {
        if (m.badge & BOUND_SIGNAL) {
            seen->turns[0]++;
            m = receive(CHILD_ENDPOINT);
        } else {
            m = reply_receive(CHILD_ENDPOINT, 0, call(CHILD_OTHER, 0, m.w[0]).w[0] + 1);
        }
    }
}

/* It has the time that a signal donates only after it has given back its client's time. */
static bool signals_come_while_time_is_away(word_t context)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t last = make(TYPE_ENDPOINT, 0);
    struct child server = make_child(counts_signals, 0, HANDLES, 0);

    passive_server(serves_slowly, 1000000, last);
    share_nothing_yet();
    share_with(&server);
    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, last, RIGHTS_ALL, 0);
    SAME(tcb_bind(server.tcb, notification), 0);
    start_passive(&server);
    if (context != 0)
        SAME(context_bind(context, notification), 0);
    for (word_t i = 0; i < 3; i++) {
        struct child client = run_child(calls_once, 20 * i, WORK, endpoint, 0);

        sleep_for(2 * BUDGET_LEAST);
        SAME(send(SYS_SEND, notification, 0), 0);
        SAME(wait_report(), 20 * i + 2);
        let_others_run();
        SAME(shared->turns[0], context == 0 ? 0 : i + 1);
        SAME(tcb_suspend(client.tcb), 0);
    }
    SAME(call(endpoint, 0, 5).w[0], 7);
    return true;
}

static bool signals_without_time(void)
{
    return signals_come_while_time_is_away(0);
}

static bool signals_with_time(void)
{
    word_t context = make(TYPE_CONTEXT, 0);

    SAME(context_configure(context, BUDGET_LEAST, 4 * BUDGET_LEAST), 0);
    return signals_come_while_time_is_away(context);
}

/* ---- budgets and whoever acts just before they end -------------------------------------------------- */

/* Uses so much of its budget as the first thread says, then gives it up, or calls a server. */
static void uses_nearly_all(word_t ticks)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    while (!seen->stop) {
        ticks_t begun = clock_now();

        while (clock_now() - begun < ticks)
            continue;
        if (seen->turns[0]++ & 1)
            call(CHILD_ENDPOINT, 0, 0);
        else
            syscall(SYS_YIELD, &m);
    }
    rest();
}

/* More urgent than a spinner: whatever it does, it has its share, and not more. */
static bool who_acts_at_the_end_of_a_budget(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), used;
    struct child child;
    ticks_t begun, elapsed;

    share_nothing_yet();
    spinner(7, 1, SLICE, SLICE);
    passive_server(serves_slowly, 10, endpoint);
    child = make_child(uses_nearly_all, BUDGET_LEAST - BUDGET_LEAST / 50, 30, 0);
    share_with(&child);
    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    SAME(context_configure(child.context, BUDGET_LEAST, 2 * BUDGET_LEAST), 0);
    start(&child);
    begun = clock_now();
    used_of(child.context);
    sleep_until(begun + 50 * 2 * BUDGET_LEAST);
    used = used_of(child.context);
    elapsed = clock_now() - begun;
    shared->stop = 1;
    put_string("# thousandths of the time used, of 500 at most: ");
    put_number((word_t)((ticks_t)used * 1000 / elapsed));
    put_string("\n");
    return used <= elapsed / 2 + BUDGET_LEAST && used >= elapsed / 4;
}

/* A context is unbound and bound again, in turns to two threads: no budget begins anew by that. */
static bool rebinding_gives_no_more(void)
{
    struct child one, other;
    word_t used;
    ticks_t begun;

    share_nothing_yet();
    spinner(7, 1, SLICE, SLICE);
    one = make_child(spins, 0, 20, 0);
    other = make_child(spins, 1, 20, 0);
    share_with(&one);
    share_with(&other);
    SAME(context_unbind(other.context), 0);
    SAME(context_configure(one.context, 2 * MILLISECOND, 20 * MILLISECOND), 0);
    start(&one);
    start(&other);
    begun = clock_now();
    for (word_t i = 0; i < 100; i++) {
        sleep_for(2 * MILLISECOND);
        SAME(context_unbind(one.context), 0);
        SAME(context_bind(one.context, i & 1 ? one.tcb : other.tcb), 0);
    }
    used = used_of(one.context);
    shared->stop = 1;
    return used <= (clock_now() - begun) / 10 + 2 * MILLISECOND;
}

/* It lends its time, and cannot receive: it is told, for the time comes back. */
static void lends_and_fails(word_t unused)
{
    struct message m = { 0xbad, message_make(1, 0, 0, 0), { 1, 0, 0, 0 } };

    (void)unused;
    tells(nb_send_receive(CHILD_ENDPOINT, 0xbad, &m));
}

static void receives_only(word_t unused)
{
    (void)unused;
    for (;;)
        receive(CHILD_ENDPOINT);
}

static bool lent_time_comes_back(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    passive_server(receives_only, 0, endpoint);
    run_child(lends_and_fails, 0, WORK, endpoint, 0);
    run_child(tells, NEVER, 1, 0, 0);
    SAME(wait_report(), SYSCALL_FAILED | ERROR_LOOKUP_FAILED);
    SAME(wait_report(), NEVER);
    return true;
}

static const struct test tests[] = {
    { queues_are_in_order, "queues are in order, however threads change their priority, leave and come" },
    { deletion_wakes_all_levels, "deletion of an endpoint wakes waiting threads of all levels" },
    { budgets_end_at_each_level, "a budget may end at each level of nested calls" },
    { clients_are_deleted_in_nested_calls, "servers go on after their client was deleted in a nested call" },
    { servers_are_deleted_in_nested_calls, "a client has its time again after its server was deleted in a nested call" },
    { signals_without_time, "a signal that comes while the time is away keeps nobody waiting" },
    { signals_with_time, "a signal donates its time when the client's has gone back" },
    { who_acts_at_the_end_of_a_budget, "who yields or calls just before its budget ends has no more" },
    { rebinding_gives_no_more, "binding a context again gives no more time" },
    { lent_time_comes_back, "who lends its time and cannot receive has it again" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, signal_attacks, chain_attacks, NULL };
