/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: time as a capability.  In their order: budgets, donations, timeouts, criticality. */
#include "tests.h"
#include "timed.h"
#include "ticker.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u
#define SLOT_CALLER (CHILD_OTHER + 3) /* of a handler: where it keeps a reply capability */
#define TCB_SERVER  (CHILD_OTHER + 4)

/* ---- the clock and budgets -------------------------------------------------------------- */

static bool clock_goes_on(void)
{
    ticks_t before = clock_now(), now;

    for (word_t i = 0; i < 100; i++) {
        now = clock_now();
        if (now < before)
            return false;
        before = now;
    }
    sleep_for(20 * MILLISECOND);
    now = clock_now() - before;
    return now >= 20 * MILLISECOND && now < 60 * MILLISECOND;
}

static bool budget_errors(void)
{
    word_t context = make(TYPE_CONTEXT, 0);
    word_t tcb = make(TYPE_TCB, 0);
    word_t words[] = { SLICE, SLICE };
    word_t wrong = ROOT_TCB;

    SAME(context_configure(context, BUDGET_LEAST - 1, SLICE), ERROR_RANGE);
    SAME(context_configure(context, SLICE, SLICE - 1), ERROR_RANGE);
    SAME(context_configure(context, SLICE, PERIOD_TICKS_MAX + 1u), ERROR_RANGE);
    SAME(context_configure(ROOT_TCB, SLICE, SLICE), ERROR_INVALID_CAPABILITY);
    SAME(invoke(ROOT_SCHED_CONTROL, LABEL_CONTEXT_CONFIGURE, words, 1, &context, 1), ERROR_TRUNCATED);
    SAME(invoke(ROOT_SCHED_CONTROL, LABEL_CONTEXT_CONFIGURE, words, 2, NULL, 0), ERROR_TRUNCATED);
    SAME(invoke(ROOT_SCHED_CONTROL, LABEL_CONTEXT_BIND, words, 2, NULL, 0), ERROR_ILLEGAL_OPERATION);
    SAME(invoke(context, LABEL_CONTEXT_CONFIGURE, words, 2, &context, 1), ERROR_ILLEGAL_OPERATION);
    SAME(system_criticality(CRITICALITIES), ERROR_RANGE);
    SAME(context_bind(context, tcb), ERROR_ILLEGAL_OPERATION); /* not configured */
    SAME(context_configure(context, SLICE, PERIOD_TICKS_MAX), 0);
    SAME(context_bind(context, context), ERROR_INVALID_CAPABILITY);
    SAME(invoke(context, LABEL_CONTEXT_BIND, NULL, 0, NULL, 0), ERROR_TRUNCATED);
    SAME(context_bind(context, ROOT_TCB), ERROR_ILLEGAL_OPERATION); /* it has one */
    SAME(context_bind(context, tcb), 0);
    SAME(context_bind(context, tcb), ERROR_ILLEGAL_OPERATION);
    SAME(context_unbind(context), 0);
    SAME(context_unbind(context), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_copy(ROOT_CNODE, new_slots(1), 32, ROOT_CNODE, ROOT_SCHED_CONTROL, 32, RIGHTS_ALL),
         ERROR_ILLEGAL_OPERATION);
    SAME(tcb_set_timeout(tcb, wrong), ERROR_INVALID_CAPABILITY);
    return true;
}

/* Figure 3a: two periodic threads that never wait, and one in slack time. */
static bool budgets_limit(void)
{
    struct child high, low, slack;

    share_nothing_yet();
    high = spinner(0, 30, 4 * MILLISECOND, 20 * MILLISECOND);
    low = spinner(1, 20, 20 * MILLISECOND, 40 * MILLISECOND);
    slack = spinner(2, 10, SLICE, SLICE);
    sleep_for(400 * MILLISECOND);
    shared->stop = 1;
    /* 20 % and 50 %; the rest of about 400 ms is for who is least urgent. */
    if (!is_about(used_of(high.context), 80 * MILLISECOND, 8 * MILLISECOND)
        || !is_about(used_of(low.context), 200 * MILLISECOND, 25 * MILLISECOND)
        || !is_about(used_of(slack.context), 110 * MILLISECOND, 40 * MILLISECOND))
        return false;
    return true;
}

/* Figure 3b: full budgets are slices of time. */
static bool full_budgets_share(void)
{
    struct child one, other;
    word_t sum, less;

    share_nothing_yet();
    one = spinner(0, 20, SLICE, SLICE);
    other = spinner(1, 20, SLICE, SLICE);
    spinner(2, 10, SLICE, 2 * SLICE);
    sleep_for(200 * MILLISECOND);
    shared->stop = 1;
    less = used_of(one.context);
    sum = less + used_of(other.context);
    SAME(shared->turns[2], 0);
    return is_about(2 * less, sum, 3 * SLICE);
}

/* The use of a budget that waited a whole period is not more than the budget. */
static bool no_two_budgets_at_once(void)
{
    struct child child;
    word_t first;

    share_nothing_yet();
    child = spinner(0, 30, 10 * MILLISECOND, 100 * MILLISECOND);
    sleep_for(150 * MILLISECOND);
    first = used_of(child.context);
    shared->stop = 1;
    return is_about(first, 20 * MILLISECOND, 2 * MILLISECOND);
}

/*
 * For some periods a more urgent thread leaves it less than its budget, so that it is always runnable
 * and never waits for time.  When it is alone it has its budget in each period, and no more.
 */
static bool no_more_than_a_budget_afterwards(void)
{
    struct child urgent, child;
    ticks_t begun;
    word_t used, whole;

    share_nothing_yet();
    urgent = spinner(0, 40, 16 * MILLISECOND, 20 * MILLISECOND);
    child = spinner(1, 30, 8 * MILLISECOND, 20 * MILLISECOND);
    spinner(2, 10, SLICE, SLICE); /* QEMU's time may go twice as fast while nobody runs */
    sleep_for(70 * MILLISECOND);
    SAME(tcb_suspend(urgent.tcb), 0);
    begun = clock_now();
    used_of(child.context);
    sleep_for(200 * MILLISECOND);
    used = used_of(child.context);
    whole = (word_t)(clock_now() - begun);
    shared->stop = 1;
    /* Of 20 ms it has 8, and at the edges as much again. */
    return is_about(used, whole / 5 * 2, 10 * MILLISECOND);
}

static void yields(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    (void)unused;
    while (!seen->stop) {
        seen->turns[0]++;
        syscall(SYS_YIELD, &m);
    }
    rest();
}

static bool yield_ends_the_period(void)
{
    struct child child;

    share_nothing_yet();
    child = make_child(yields, 0, 30, 0);
    share_with(&child);
    SAME(context_configure(child.context, 8 * MILLISECOND, 20 * MILLISECOND), 0);
    start(&child);
    sleep_for(200 * MILLISECOND);
    shared->stop = 1;
    return is_about(shared->turns[0], 10, 1);
}

static bool unbound_threads_stop(void)
{
    struct child child;
    word_t before;

    share_nothing_yet();
    child = spinner(0, 30, SLICE, SLICE);
    sleep_for(20 * MILLISECOND);
    SAME(context_unbind(child.context), 0);
    before = shared->turns[0];
    sleep_for(20 * MILLISECOND);
    SAME(shared->turns[0], before);
    SAME(context_bind(child.context, child.tcb), 0);
    sleep_for(20 * MILLISECOND);
    shared->stop = 1;
    return shared->turns[0] > before;
}

static bool so_many_can_be_bound(void)
{
    enum { MOST = 256 };
    static word_t contexts[MOST];
    word_t count = 0, error = ERROR_NONE;

    while (error == ERROR_NONE && count < MOST) {
        contexts[count] = make(TYPE_CONTEXT, 0);
        require(context_configure(contexts[count], SLICE, SLICE), "budget");
        error = context_bind(contexts[count++], make(TYPE_TCB, 0));
    }
    SAME(error, ERROR_NO_PLACE);
    for (word_t i = 0; i + 1 < count; i++)
        SAME(context_unbind(contexts[i]), 0);
    SAME(context_bind(contexts[count - 1], make(TYPE_TCB, 0)), 0);
    return context_unbind(contexts[count - 1]) == 0;
}

static bool yield_to_is_next(void)
{
    struct child first = make_child(tells, 1, WORK, 0), second = make_child(tells, 2, WORK, 0);
    ticks_t used;

    start(&first);
    start(&second);
    SAME(context_yield_to(second.context, &used), 0);
    SAME(wait_report(), 2);
    SAME(wait_report(), 1);
    make_passive(&first);
    SAME(context_yield_to(first.context, &used), ERROR_ILLEGAL_OPERATION);
    return true;
}

/* ---- donations --------------------------------------------------------------------------------- */

static void serves(word_t value)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;)
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + value);
}

static bool calls_donate(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child server = passive_server(serves_slowly, 200000, endpoint);
    word_t before = used_of(ROOT_CONTEXT);

    for (word_t i = 1; i < 4; i++) {
        SAME(call(endpoint, 0, i).w[0], i + 1);
        before = used_of(ROOT_CONTEXT); /* 200,000 turns of some instructions, a nanosecond each */
        if (before < MILLISECOND / 4)
            return same("used", before, MILLISECOND);
    }
    SAME(context_unbind(server.context), ERROR_ILLEGAL_OPERATION);
    return true;
}

/* Figure 5: it initialises itself on a context that is then taken away. */
static void initialises(word_t unused)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    (void)unused;
    if (signal_receive(CHILD_OTHER, CHILD_ENDPOINT, &m) != ERROR_NONE)
        tells(99);
    for (;;)
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 5);
}

static bool passive_initialisation(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct child server = make_child(initialises, 0, WORK, 0);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, notification, RIGHTS_ALL, 2);
    start(&server);
    SAME(receive(notification).badge, 2);
    make_passive(&server);
    SAME(call(endpoint, 0, 1).w[0], 6);
    return true;
}

/* Answers with the word of another server. */
static void forwards(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;)
        m = reply_receive(CHILD_ENDPOINT, 0, call(CHILD_OTHER, 0, m.w[0]).w[0]);
}

static bool donations_are_nested(void)
{
    word_t inner = make(TYPE_ENDPOINT, 0), outer = make(TYPE_ENDPOINT, 0);
    struct child front = make_child(forwards, 0, HANDLES, 0);

    passive_server(serves, 3, inner);
    give(&front, CHILD_ENDPOINT, outer, RIGHTS_ALL, 0);
    give(&front, CHILD_OTHER, inner, RIGHTS_ALL, 0);
    start_passive(&front);
    SAME(call(outer, 0, 4).w[0], 7);
    SAME(call(outer, 0, 5).w[0], 8);
    return true;
}

/* A slice ends in the server, so that others wait for it meanwhile. */
static bool waiting_callers_donate(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    passive_server(serves_slowly, 3000000, endpoint);
    for (word_t i = 0; i < 3; i++) {
        struct child client = make_child(calls_once, 10 * i, WORK, 0);

        give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
        start(&client);
    }
    for (word_t i = 0; i < 3; i++)
        SAME(wait_report(), 10 * i + 1);
    SAME(call(endpoint, 0, 8).w[0], 9);
    return true;
}

static void receives_once(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    tells(m.w[0]);
}

/* The answer of a send on donated time, behind the received words. */
static void stores_once(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    (void)unused;
    seen->turns[0] = receive(CHILD_ENDPOINT).w[0];
    seen->turns[1] = send(SYS_SEND, CHILD_REPORT, 0);
    rest();
}

static bool sends_donate_or_fail(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child receiver = make_child(stores_once, 0, HANDLES, 0);

    share_nothing_yet();
    share_with(&receiver);
    give(&receiver, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start_passive(&receiver);
    SAME(send(SYS_NB_SEND, endpoint, 7), SYSCALL_FAILED | ERROR_NO_CONTEXT);
    SAME(send(SYS_SEND, endpoint, 8), 0); /* goes on when the receiver rests */
    SAME(shared->turns[0], 8);
    SAME(shared->turns[1], SYSCALL_FAILED | ERROR_NO_CONTEXT); /* it would not come back */
    return true;
}

static void receives_and_calls(word_t unused)
{
    (void)unused;
    call(CHILD_REPORT, 0, receive(CHILD_ENDPOINT).w[0]);
    rest();
}

/* Whoever called is stopped while the server works on its time. */
static bool caller_is_suspended(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child client = make_child(calls_once, 4, WORK, 0);

    passive_server(serves_slowly, 2000000, endpoint);
    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&client);
    sleep_for(2 * BUDGET_LEAST); /* the server is at it */
    SAME(tcb_suspend(client.tcb), 0);
    SAME(call(endpoint, 0, 5).w[0], 6); /* it ends that first, on the client's time */
    SAME(context_unbind(client.context), 0);
    return context_bind(client.context, client.tcb) == 0;
}

static bool caller_is_deleted(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child client = make_child(calls_once, 4, WORK, 0);

    passive_server(serves_slowly, 2000000, endpoint);
    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&client);
    sleep_for(2 * BUDGET_LEAST);
    SAME(cnode_delete(ROOT_CNODE, client.tcb, 32), 0);
    SAME(call(endpoint, 0, 5).w[0], 6);
    SAME(context_unbind(client.context), ERROR_ILLEGAL_OPERATION); /* nobody's */
    return context_bind(client.context, make(TYPE_TCB, 0)) == 0;
}

static bool server_is_suspended(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child client = make_child(calls_once, 4, WORK, 0);
    struct child server = passive_server(serves_slowly, 2000000, endpoint);

    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&client);
    sleep_for(2 * BUDGET_LEAST);
    SAME(tcb_suspend(server.tcb), 0);
    /* The client waits for good, with its own context. */
    SAME(tcb_suspend(client.tcb), 0);
    SAME(tcb_write_registers(client.tcb, (word_t)tells, ROOT_BUFFER, 0, 9), 0);
    return true;
}

static bool context_is_deleted(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child client = make_child(calls_once, 4, WORK, 0);
    struct child server = passive_server(serves_slowly, 2000000, endpoint);
    word_t other = make(TYPE_CONTEXT, 0);

    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&client);
    sleep_for(2 * BUDGET_LEAST);
    SAME(cnode_delete(ROOT_CNODE, client.context, 32), 0); /* the server stops */
    SAME(context_configure(other, SLICE, SLICE), 0);
    SAME(context_bind(other, server.tcb), 0); /* and goes on */
    SAME(call(endpoint, 0, 5).w[0], 6);
    return true;
}

static bool signals_wait_for_time(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct child server = make_child(receives_once, 0, WORK, 0);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    SAME(tcb_bind(server.tcb, notification), 0);
    start_passive(&server);
    SAME(send(SYS_SEND, notification, 0), 0); /* pending: it could not run */
    SAME(context_bind(server.context, server.tcb), 0); /* now it can, and takes it */
    wait_report();
    return true;
}

static bool receives_after_a_send(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, message_make(1, 0, 0, 0), { 6, 0, 0, 0 } };

    passive_server(receives_and_calls, 0, endpoint);
    SAME(nb_send_receive(endpoint, report, &m), 0);
    SAME(m.w[0], 6);
    SAME(nb_send_receive(ROOT_TCB, report, &m), SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    SAME(signal_receive(endpoint, report, &m), SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    return true;
}

/* ---- timeouts -------------------------------------------------------------------------------- */

/* The first thread handles: it waits on an endpoint that is told. */
static bool timeout_raises_the_budget(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child;
    struct message m;

    share_nothing_yet();
    child = make_child(spins, 0, WORK, 0);
    share_with(&child);
    SAME(context_configure(child.context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    SAME(tcb_set_timeout(child.tcb, endpoint), 0);
    SAME(tcb_set_timeout(child.tcb, endpoint), ERROR_SLOT_OCCUPIED);
    start(&child);
    m = receive(endpoint);
    SAME(message_label(m.info), FAULT_TIMEOUT);
    SAME(m.w[3], TIMEOUT_BUDGET);
    if (!is_about(used_of(child.context), 4 * MILLISECOND, BUDGET_MIN))
        return false;
    SAME(context_configure(child.context, 24 * MILLISECOND, 100 * MILLISECOND), 0);
    m = (struct message){ endpoint, 0, { 0, 0, 0, 0 } };
    syscall(SYS_REPLY_RECEIVE, &m); /* it goes on at once, and is told again when that is used up */
    SAME(m.w[3], TIMEOUT_BUDGET);
    shared->stop = 1;
    return is_about(used_of(child.context), 20 * MILLISECOND, BUDGET_MIN);
}

static bool timeout_waits_for_the_period(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, 0, { 0, 0, 0, 0 } };
    struct child child;
    ticks_t first;

    share_nothing_yet();
    child = make_child(spins, 0, WORK, 0);
    share_with(&child);
    SAME(context_configure(child.context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    SAME(tcb_set_timeout(child.tcb, endpoint), 0);
    spinner(1, 0, SLICE, SLICE); /* QEMU's time may go twice as fast while nobody runs */
    start(&child);
    receive(endpoint);
    first = clock_now();
    m.badge = endpoint;
    syscall(SYS_REPLY_RECEIVE, &m); /* nothing is done: it goes on in the next period */
    SAME(m.w[3], TIMEOUT_BUDGET);
    shared->stop = 1;
    return is_about((word_t)(clock_now() - first), 100 * MILLISECOND, MILLISECOND);
}

static bool timeout_stops(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, message_make(0, 0, 0, 1), { 0, 0, 0, 0 } };
    struct child child;

    share_nothing_yet();
    child = make_child(spins, 0, WORK, 0);
    share_with(&child);
    SAME(context_configure(child.context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    SAME(tcb_set_timeout(child.tcb, endpoint), 0);
    start(&child);
    receive(endpoint);
    syscall(SYS_REPLY, &m); /* another label: it stays stopped */
    sleep_for(200 * MILLISECOND);
    SAME(tcb_write_registers(child.tcb, (word_t)tells, ROOT_BUFFER, 0, 3), 0);
    SAME(tcb_set_timeout(child.tcb, 0), 0);
    return true;
}

/* The server's handler answers its client, and sends the server back to where it waits. */
static bool timeout_rolls_back(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), told = make(TYPE_ENDPOINT, 0);
    word_t kept = new_slots(1);
    struct child server = passive_server(serves_slowly, 100000000, endpoint);
    struct registers registers;
    struct message m;

    SAME(tcb_set_timeout(server.tcb, told), 0);
    calls_on(endpoint, 4, 4 * MILLISECOND, 400 * MILLISECOND);
    m = receive(told);
    SAME(m.w[3], TIMEOUT_BUDGET);
    SAME(tcb_save_caller(server.tcb, ROOT_CNODE, kept, 32), 0);
    SAME(tcb_save_caller(server.tcb, ROOT_CNODE, new_slots(1), 32), ERROR_INVALID_CAPABILITY);
    SAME(tcb_suspend(server.tcb), 0); /* the client's context goes home */
    SAME(tcb_read_registers(server.tcb, &registers), 0);
    SAME(cnode_swap_caller(ROOT_CNODE, kept, 32), 0);
    m = (struct message){ 0, message_make(1, 0, 0, 0), { 77, 0, 0, 0 } };
    syscall(SYS_REPLY, &m); /* for the server */
    SAME(m.badge, 0);
    SAME(wait_report(), 77);
    /* The server begins again, on a context of its own until it waits. */
    SAME(tcb_write_registers(server.tcb, (word_t)serves, registers.sp, 0, 9), 0);
    SAME(tcb_set_timeout(server.tcb, 0), 0);
    SAME(context_bind(server.context, server.tcb), 0);
    SAME(tcb_resume(server.tcb), 0);
    let_others_run();
    make_passive(&server);
    SAME(call(endpoint, 0, 1).w[0], 10);
    SAME(cnode_swap_caller(ROOT_CNODE, ROOT_TCB, 32), ERROR_INVALID_CAPABILITY);
    return true;
}

/* ---- criticality and limits --------------------------------------------------------------------- */

static bool critical_threads_come_first(void)
{
    struct child low = make_child(tells, 1, 50, 0), high = make_child(tells, 2, 10, 0);

    SAME(tcb_set_criticality(high.tcb, 1), 0);
    SAME(tcb_set_criticality(ROOT_TCB, 3), 0);
    start(&low);
    start(&high);
    SAME(system_criticality(1), 0);
    SAME(wait_report(), 2);
    SAME(system_criticality(0), 0);
    SAME(wait_report(), 1);
    SAME(tcb_set_criticality(high.tcb, 4), ERROR_RANGE);
    SAME(tcb_set_criticality(ROOT_TCB, 0), 0);
    return true;
}

/* Neither criticality is above the system's, so the priority counts, and of equal ones the criticality. */
static bool who_is_more_urgent_by_one(void)
{
    struct child equal = make_child(tells, 3, 40, 0), critical = make_child(tells, 2, 40, 0);
    struct child urgent = make_child(tells, 1, 41, 0);

    SAME(tcb_set_criticality(critical.tcb, 1), 0);
    start(&equal);
    start(&critical);
    start(&urgent);
    for (word_t i = 1; i <= 3; i++)
        SAME(wait_report(), i);
    return true;
}

/* A server is told, once, that it works for a thread that does not count now. */
static bool low_donations_are_told(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), told = make(TYPE_ENDPOINT, 0);
    struct child server = passive_server(serves_slowly, 2000000, endpoint);
    struct child client = make_child(calls_once, 4, WORK, 0);
    struct message m;

    SAME(tcb_set_criticality(ROOT_TCB, 3), 0);
    SAME(tcb_set_criticality(server.tcb, 3), 0);
    SAME(tcb_set_timeout(server.tcb, told), 0);
    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&client);
    sleep_for(2 * BUDGET_LEAST);
    SAME(system_criticality(1), 0);
    m = receive(told);
    SAME(message_label(m.info), FAULT_TIMEOUT);
    SAME(m.w[3], TIMEOUT_CRITICALITY);
    m = (struct message){ 0, 0, { 0, 0, 0, 0 } };
    syscall(SYS_REPLY, &m); /* it may complete */
    SAME(system_criticality(0), 0);
    SAME(wait_report(), 5);
    SAME(tcb_set_timeout(server.tcb, 0), 0);
    SAME(tcb_set_criticality(ROOT_TCB, 0), 0);
    return true;
}

/* Gives a thread a priority and a criticality. */
static void sets(word_t value)
{
    word_t criticality = value & 3;
    word_t priority = value >> 2;
    word_t error = invoke(CHILD_OTHER, LABEL_TCB_SET_PRIORITY, &priority, 1, NULL, 0);

    tells(error << 8 | invoke(CHILD_OTHER, LABEL_TCB_SET_CRITICALITY, &criticality, 1, NULL, 0));
}

static word_t result_of_setting(word_t priority, word_t criticality, bool limited)
{
    struct child child = make_child(sets, priority << 2 | criticality, 20, 0);

    give(&child, CHILD_OTHER, make(TYPE_TCB, 0), RIGHTS_ALL, 0);
    if (limited)
        require(tcb_set_limits(child.tcb, 100, 1), "limits");
    start(&child);
    return wait_report();
}

static bool limits_hold(void)
{
    SAME(result_of_setting(20, 0, false), 0);
    SAME(result_of_setting(21, 1, false), ERROR_RANGE << 8 | ERROR_RANGE);
    SAME(result_of_setting(100, 1, true), 0);
    SAME(result_of_setting(101, 2, true), ERROR_RANGE << 8 | ERROR_RANGE);
    SAME(tcb_set_limits(ROOT_TCB, 256, 0), ERROR_RANGE);
    SAME(tcb_set_limits(ROOT_TCB, 0, 4), ERROR_RANGE);
    return true;
}

/* While nobody runs: an emulator that advances time then must not pass an expiry. */
static bool timer_wakes_in_time(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0), frame = copy_of(ROOT_TIMER_FRAME);
    word_t late = 0;
    ticks_t last, now;

    own_the_timer();
    SAME(frame_map(frame, ROOT_PAGE_DIRECTORY, TIMER_ADDRESS, RIGHT_WRITE, 0), 0);
    SAME(irq_set_notification(timer_line, notification), 0);
    SAME(irq_acknowledge(timer_line), 0);
    timer_start_every(TIMER_ADDRESS, 10 * MILLISECOND);
    last = clock_now();
    for (word_t i = 0; i < 10; i++) {
        receive(notification);
        now = clock_now();
        timer_clear(TIMER_ADDRESS);
        irq_acknowledge(timer_line);
        late += now - last < 9 * MILLISECOND || now - last > 11 * MILLISECOND;
        last = now;
    }
    timer_stop(TIMER_ADDRESS);
    timer_clear(TIMER_ADDRESS);
    SAME(cnode_delete(ROOT_CNODE, frame, 32), 0);
    SAME(late, 0);
    return true;
}

/* The same of the kernel's alarm: a period of the only thread that runs ends. */
static bool alarm_wakes_in_time(void)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };
    word_t late = 0;
    ticks_t last, now;

    SAME(context_configure(ROOT_CONTEXT, 4 * MILLISECOND, 10 * MILLISECOND), 0);
    syscall(SYS_YIELD, &m);
    last = clock_now();
    for (word_t i = 0; i < 10; i++) {
        syscall(SYS_YIELD, &m);
        now = clock_now();
        late += now - last < 9 * MILLISECOND || now - last > 11 * MILLISECOND;
        last = now;
    }
    SAME(context_configure(ROOT_CONTEXT, SLICE, SLICE), 0);
    SAME(late, 0);
    return true;
}

const struct test time_tests[] = {
    { clock_goes_on, "the clock goes on, and a thread that yields sleeps" },
    { budget_errors, "budgets, periods and bindings that are wrong are refused" },
    { budgets_limit, "budgets limit two periodic threads, and slack is for a third (Figure 3a)" },
    { full_budgets_share, "full budgets are slices of time (Figure 3b)" },
    { no_two_budgets_at_once, "in one and a half periods at most two budgets are used" },
    { no_more_than_a_budget_afterwards, "who was kept from running has no more than its budget afterwards" },
    { yield_ends_the_period, "a yield gives up the rest of the period's budget" },
    { unbound_threads_stop, "a thread without a context stops, and goes on with one" },
    { so_many_can_be_bound, "as many contexts can be bound as the release queue has places" },
    { yield_to_is_next, "a thread that is yielded to is the next of its priority" },
    { calls_donate, "a call to a passive server is on the caller's time" },
    { passive_initialisation, "a server initialises itself, then becomes passive (Figure 5)" },
    { donations_are_nested, "a passive server calls another, on the same time" },
    { waiting_callers_donate, "a passive server serves one call after another" },
    { sends_donate_or_fail, "a send that waits donates, one that does not is refused" },
    { caller_is_suspended, "a server ends its work for a client that was suspended" },
    { caller_is_deleted, "a server ends its work for a client that was deleted" },
    { server_is_suspended, "a client has its time again when its server is suspended" },
    { context_is_deleted, "a server whose donated context is deleted goes on with another" },
    { signals_wait_for_time, "a signal waits until its bound thread has time" },
    { receives_after_a_send, "a send that donates, and a receive, in one call" },
    { timeout_raises_the_budget, "a timeout handler raises the budget" },
    { timeout_waits_for_the_period, "a timeout that is only answered ends with the period" },
    { timeout_stops, "a timeout handler stops a thread" },
    { timeout_rolls_back, "a timeout handler answers for a server, and rolls it back" },
    { critical_threads_come_first, "above the system's criticality threads come first" },
    { who_is_more_urgent_by_one, "below it the more urgent comes first, if only by one, and of equals the critical one" },
    { low_donations_are_told, "a server is told that it works for a thread that does not count" },
    { limits_hold, "threads give priorities and criticalities up to their limits" },
    { alarm_wakes_in_time, "a period ends in time while nobody runs" },
    { timer_wakes_in_time, "a timer interrupts once in each period while nobody runs" },
    { NULL, NULL },
};
