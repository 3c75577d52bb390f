/* SPDX-License-Identifier: BSD-2-Clause */
/* Hostile programs about signals and the contexts that they donate (preset mcs). */
#include "tests.h"
#include "timed.h"

#define SECOND (CHILD_FREE + 1)

static struct shared *seen(void)
{
    return (struct shared *)SHARED_ADDRESS;
}

/* Waits on a second notification itself, then at the endpoint, to whose first it is bound; and so on. */
static void waits_on_both(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT); /* initialised by one message */
    for (;;) {
        struct message m;

        seen()->turns[0]++;
        receive(SECOND);
        seen()->turns[1]++;
        m = receive(CHILD_ENDPOINT);
        if (m.badge & BOUND_SIGNAL) {
            seen()->turns[2]++;
        } else {
            seen()->turns[3]++;
            m = (struct message){ 0, message_make(1, 0, 0, 0), { m.w[0] + 1, 0, 0, 0 } };
            syscall(SYS_REPLY, &m);
        }
    }
}

struct pair {
    word_t endpoint, first, second;
    struct child server;
};

static struct pair on_both(void)
{
    struct pair p = { .endpoint = make(TYPE_ENDPOINT, 0), .first = make(TYPE_NOTIFICATION, 0),
                      .second = make(TYPE_NOTIFICATION, 0) };

    share_nothing_yet();
    p.server = make_child(waits_on_both, 0, HANDLES, 0);
    share_with(&p.server);
    give(&p.server, CHILD_ENDPOINT, p.endpoint, RIGHTS_ALL, 0);
    give(&p.server, SECOND, p.second, RIGHTS_ALL, 0);
    require(tcb_bind(p.server.tcb, p.first), "bind");
    start(&p.server);
    let_others_run();
    send(SYS_SEND, p.endpoint, 0);
    let_others_run();
    make_passive(&p.server);
    return p;
}

static word_t context_of(word_t notification, word_t budget, word_t period)
{
    word_t context = make(TYPE_CONTEXT, 0);

    require(context_configure(context, budget, period), "budget");
    if (notification != 0)
        require(context_bind(context, notification), "bind");
    return context;
}

/* Contexts of either, both or none; signals in either order: nobody loses one, and calls are answered. */
static bool two_notifications(void)
{
    for (word_t which = 0; which < 8; which++) {
        struct pair p = on_both();
        word_t one = which & 1 ? context_of(p.first, SLICE, SLICE) : 0;
        word_t two = which & 2 ? context_of(p.second, SLICE, SLICE) : 0;

        SAME(shared->turns[0], 1); /* it waits on the second */
        if (which & 4) {
            SAME(send(SYS_SEND, p.first, 0), 0);
            SAME(send(SYS_SEND, p.second, 0), 0);
        } else {
            SAME(send(SYS_SEND, p.second, 0), 0);
            SAME(send(SYS_SEND, p.first, 0), 0);
        }
        let_others_run();
        if ((one | two) == 0) {
            SAME(shared->turns[1], 0); /* it has the signal, and no time */
            one = context_of(0, SLICE, SLICE);
            SAME(context_bind(one, p.server.tcb), 0);
            let_others_run();
        }
        SAME(shared->turns[1], 1);
        if (shared->turns[2] == 0) { /* it waits at the endpoint without time for a signal */
            SAME(one, 0);
            one = context_of(p.first, SLICE, SLICE);
            let_others_run();
        }
        SAME(shared->turns[2], 1);
        SAME(shared->turns[0], 2);
        SAME(send(SYS_SEND, p.second, 0), 0);
        let_others_run();
        if (shared->turns[1] == 1) {
            two = context_of(0, SLICE, SLICE);
            SAME(context_bind(two, p.server.tcb), 0);
            let_others_run();
        }
        SAME(shared->turns[1], 2);
        SAME(answer_to(p.endpoint, 30), 31);
        SAME(shared->turns[3], 1);
        SAME(tcb_suspend(p.server.tcb), 0);
    }
    return true;
}

/* Works with each signal until it is let go on. */
static void works_with_signals(word_t unused)
{
    (void)unused;
    for (;;) {
        struct message m = receive(CHILD_ENDPOINT);

        if (m.badge & BOUND_SIGNAL) {
            seen()->turns[0]++;
            while (!seen()->stop)
                seen()->turns[7]++;
            seen()->turns[1]++;
        } else {
            seen()->turns[2]++;
            m = (struct message){ 0, message_make(1, 0, 0, 0), { m.w[0] + 1, 0, 0, 0 } };
            syscall(SYS_REPLY, &m);
        }
    }
}

/* It has had one signal. */
static struct child signalled_server(word_t endpoint, word_t notification, word_t priority)
{
    struct child server = make_child(works_with_signals, 0, priority, 0);

    share_nothing_yet();
    share_with(&server);
    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    require(tcb_bind(server.tcb, notification), "bind");
    start_passive(&server);
    require(send(SYS_SEND, notification, 0), "signal");
    return server;
}

/* The context is taken from the notification while it is donated, in six ways. */
static bool taken_back_while_donated(void)
{
    for (word_t way = 0; way < 6; way++) {
        word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
        word_t context = context_of(notification, SLICE / 4, 2 * SLICE), other = context_of(0, SLICE, SLICE);
        struct child server = signalled_server(endpoint, notification, WORK + 1);

        sleep_for(way & 1 ? SLICE : 2 * BUDGET_LEAST); /* its budget is used up, or not */
        SAME(shared->turns[0], 1);
        switch (way / 2) {
        case 0:
            SAME(context_unbind(context), 0);
            SAME(context_bind(context, notification), ERROR_ILLEGAL_OPERATION); /* in use */
            SAME(context_bind(other, notification), 0);
            break;
        case 1:
            SAME(cnode_revoke(ROOT_CNODE, context, 32), 0);
            SAME(cnode_delete(ROOT_CNODE, context, 32), 0);
            SAME(context_bind(other, notification), 0);
            SAME(send(SYS_SEND, notification, 0), 0); /* gives it the other */
            break;
        default:
            SAME(cnode_recycle(ROOT_CNODE, notification, 32), 0);
            SAME(context_bind(other, notification), 0);
            SAME(tcb_bind(server.tcb, notification), 0);
            break;
        }
        shared->stop = 1;
        sleep_for(8 * SLICE);
        SAME(shared->turns[1], way / 2 == 1 ? 2 : 1);
        SAME(answer_to(endpoint, 40), 41);
        SAME(send(SYS_SEND, notification, 0), 0);
        let_others_run();
        SAME(shared->turns[1], way / 2 == 1 ? 3 : 2);
        if (way / 2 == 0)
            SAME(context_bind(context, make(TYPE_NOTIFICATION, 0)), 0); /* on nobody */
        SAME(tcb_suspend(server.tcb), 0);
        SAME(context_bind(other, server.tcb), ERROR_ILLEGAL_OPERATION);
    }
    return true;
}

/* With a signal: signals the next, calls the server behind it, counts. */
static void passes_on(word_t which)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        if (m.badge & BOUND_SIGNAL) {
            send(SYS_SEND, CHILD_OTHER, 0);
            call(SECOND, 0, 0);
            seen()->turns[which]++;
            m = receive(CHILD_ENDPOINT);
        } else {
            m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 1);
        }
    }
}

#define RING 4

/* Passive servers in a ring, each with a bound notification that has a context; they signal and call each other. */
static bool a_ring_of_signals(void)
{
    word_t endpoints[RING + 1], notifications[RING + 1];
    struct child servers[RING];

    for (word_t i = 0; i <= RING; i++) {
        endpoints[i] = make(TYPE_ENDPOINT, 0);
        notifications[i] = make(TYPE_NOTIFICATION, 0);
    }
    share_nothing_yet();
    passive_server(serves_slowly, 10, endpoints[RING]);
    for (word_t i = 0; i < RING; i++) {
        servers[i] = make_child(passes_on, i, HANDLES - (i ^ 1), 0);
        share_with(&servers[i]);
        give(&servers[i], CHILD_ENDPOINT, endpoints[i], RIGHTS_ALL, 0);
        give(&servers[i], CHILD_OTHER, notifications[i + 1], RIGHTS_ALL, 1);
        give(&servers[i], SECOND, endpoints[i + 1], RIGHTS_ALL, 0);
        SAME(tcb_bind(servers[i].tcb, notifications[i]), 0);
        start_passive(&servers[i]);
        context_of(notifications[i], 4 * BUDGET_LEAST, 8 * BUDGET_LEAST);
    }
    for (word_t i = 0; i < 20; i++) {
        SAME(send(SYS_SEND, notifications[0], 0), 0);
        sleep_for(16 * BUDGET_LEAST);
        for (word_t j = 0; j < RING; j++)
            SAME(shared->turns[j], i + 1);
        SAME(answer_to(endpoints[i & 3], i), i + 1);
    }
    return true;
}

/* Its signals' time is used up while clients wait for it: they are served when the period is over. */
static bool budgets_of_signals_end_before_calls(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    ticks_t begun;

    context_of(notification, BUDGET_LEAST, 20 * BUDGET_LEAST);
    signalled_server(endpoint, notification, HANDLES);
    begun = clock_now();
    run_child(calls_once, 50, WORK, endpoint, 0);
    sleep_for(4 * BUDGET_LEAST);
    shared->stop = 1;
    SAME(wait_report(), 51);
    return clock_now() - begun >= 19 * BUDGET_LEAST && clock_now() - begun < 23 * BUDGET_LEAST;
}

const struct test signal_attacks[] = {
    { two_notifications, "a passive thread with two notifications loses no signal and no call" },
    { taken_back_while_donated, "a context that is taken back while it is donated keeps nobody waiting" },
    { a_ring_of_signals, "passive servers that signal and call each other go on" },
    { budgets_of_signals_end_before_calls, "clients wait until the time of a signal is due again, and no longer" },
    { NULL, NULL },
};
