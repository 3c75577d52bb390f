/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: who has no time and gets a signal, or loses its time while it waits. */
#include "tests.h"
#include "timed.h"

/* Signals itself while it serves, as an interrupt might; its signals are counted. */
static void serves_and_signals(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;) {
        if (m.badge & BOUND_SIGNAL) {
            seen->turns[0]++;
            m = receive(CHILD_ENDPOINT);
        } else {
            send(SYS_SEND, CHILD_OTHER, 0);
            m = reply_receive(CHILD_ENDPOINT, 0, m.w[0] + 1);
        }
    }
}

/* It is bound to a notification, and has no time of its own. */
static struct child passive_bound_server(void (*run)(word_t), word_t endpoint, word_t notification)
{
    struct child server = make_child(run, 0, HANDLES, 0);

    share_nothing_yet();
    share_with(&server);
    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, notification, RIGHTS_ALL, 1);
    require(tcb_bind(server.tcb, notification), "bind");
    start_passive(&server);
    return server;
}

static bool signalled_servers_go_on(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct child server = passive_bound_server(serves_and_signals, endpoint, notification);

    for (word_t i = 1; i < 4; i++)
        SAME(answer_to(endpoint, 10 * i), 10 * i + 1);
    SAME(shared->turns[0], 0); /* it had no time for a signal */
    SAME(context_bind(server.context, server.tcb), 0);
    let_others_run();
    SAME(shared->turns[0], 1);
    SAME(answer_to(endpoint, 50), 51);
    let_others_run();
    SAME(shared->turns[0], 2);
    return true;
}

/* The notification has time: of that the server takes signals, and of the callers' it serves. */
static bool signals_donate(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t context = make(TYPE_CONTEXT, 0);
    struct child server = passive_bound_server(serves_and_signals, endpoint, notification);

    SAME(context_configure(context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    SAME(context_bind(context, endpoint), ERROR_INVALID_CAPABILITY);
    SAME(context_bind(context, copy_of(notification)), 0);
    SAME(context_bind(context, server.tcb), ERROR_ILLEGAL_OPERATION);
    SAME(context_bind(server.context, notification), ERROR_ILLEGAL_OPERATION);
    SAME(send(SYS_SEND, notification, 0), 0);
    let_others_run();
    SAME(shared->turns[0], 1);
    if (used_of(context) == 0)
        return same("used", 0, 1);
    for (word_t i = 0; i < 4; i++) {
        SAME(answer_to(endpoint, i), i + 1);
        SAME(shared->turns[0], 2 + i); /* its own, when it had answered */
    }
    if (used_of(context) > 4 * MILLISECOND)
        return same("used", 5, 4);
    SAME(context_unbind(context), 0);
    SAME(context_unbind(context), ERROR_ILLEGAL_OPERATION);
    SAME(send(SYS_SEND, notification, 0), 0);
    let_others_run();
    SAME(shared->turns[0], 5);
    SAME(context_bind(context, notification), 0); /* the signal has waited for it */
    let_others_run();
    SAME(shared->turns[0], 6);
    return true;
}

/* Takes a signal, works for so long, and waits for the next. */
static void works_when_signalled(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    (void)unused;
    for (;;) {
        receive(CHILD_ENDPOINT);
        seen->turns[0]++;
        for (volatile word_t i = 0; i < 2000000; i++)
            continue;
        seen->turns[1]++;
    }
}

/* One thread waits on the notification itself: signals in between are taken afterwards. */
static bool signals_wait_for_donated_time(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0), context = make(TYPE_CONTEXT, 0);
    struct child child = make_child(works_when_signalled, 0, WORK, 0);

    share_nothing_yet();
    share_with(&child);
    give(&child, CHILD_ENDPOINT, notification, RIGHTS_ALL, 0);
    start_passive(&child);
    SAME(context_configure(context, 10 * MILLISECOND, 40 * MILLISECOND), 0);
    SAME(context_bind(context, notification), 0);
    SAME(send(SYS_SEND, notification, 0), 0);
    sleep_for(2 * BUDGET_LEAST);
    SAME(shared->turns[0], 1); /* it is at it */
    SAME(send(SYS_SEND, notification, 0), 0);
    SAME(send(SYS_SEND, notification, 0), 0); /* one signal with that before */
    sleep_for(600 * MILLISECOND);
    SAME(shared->turns[0], 2);
    SAME(shared->turns[1], 2);
    return true;
}

/* Its notification has time of its own, which another thread uses until it waits again. */
static struct child server_that_waits(word_t endpoint, word_t notification, word_t context)
{
    struct child server = passive_bound_server(serves_and_signals, endpoint, notification);
    struct child other = make_child(works_when_signalled, 0, WORK, 0);

    give(&other, CHILD_ENDPOINT, notification, RIGHTS_ALL, 0);
    share_with(&other);
    start_passive(&other);
    require(context_configure(context, 10 * MILLISECOND, 40 * MILLISECOND), "budget");
    require(context_bind(context, notification), "bind");
    return server;
}

/* The signal has come to it, and then other time comes to the notification. */
static bool other_time_reaches_who_waits(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t first = make(TYPE_CONTEXT, 0), second = make(TYPE_CONTEXT, 0);

    server_that_waits(endpoint, notification, first);
    SAME(context_configure(second, SLICE, SLICE), 0);
    SAME(send(SYS_SEND, notification, 0), 0); /* to the other thread, which begins to work */
    SAME(send(SYS_SEND, notification, 0), 0); /* to the server, which waits for its time */
    SAME(context_unbind(first), 0);
    SAME(context_bind(first, notification), ERROR_ILLEGAL_OPERATION); /* in use */
    SAME(context_bind(second, notification), 0);
    SAME(answer_to(endpoint, 10), 11);
    SAME(context_unbind(second), 0);
    SAME(context_bind(second, notification), 0);
    return true;
}

static void serves_for_ever(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    for (;;)
        continue;
}

/* Calls another server with each signal. */
static void calls_when_signalled(word_t unused)
{
    (void)unused;
    for (;;) {
        receive(CHILD_ENDPOINT);
        call(CHILD_OTHER, 0, 0);
        tell(10);
    }
}

/*
 * Its time was donated, and is with the notification again when another thread answers it: it goes on with
 * the next signal, which it takes afterwards.
 */
static bool who_is_answered_by_another_goes_on(void)
{
    word_t inner = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t context = make(TYPE_CONTEXT, 0), caller = new_slots(1);
    struct child helper = passive_server(serves_for_ever, 0, inner);
    struct child server = make_child(calls_when_signalled, 0, HANDLES, 0);
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    give(&server, CHILD_ENDPOINT, make(TYPE_ENDPOINT, 0), RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, inner, RIGHTS_ALL, 0);
    SAME(tcb_bind(server.tcb, notification), 0);
    start_passive(&server);
    SAME(context_configure(context, 10 * MILLISECOND, 20 * MILLISECOND), 0);
    SAME(context_bind(context, notification), 0);
    SAME(send(SYS_SEND, notification, 0), 0);
    sleep_for(2 * BUDGET_LEAST); /* the helper has the time */
    SAME(tcb_suspend(helper.tcb), 0);
    SAME(tcb_save_caller(helper.tcb, ROOT_CNODE, caller, 32), 0);
    SAME(cnode_swap_caller(ROOT_CNODE, caller, 32), 0);
    syscall(SYS_REPLY, &m);
    SAME(send(SYS_SEND, notification, 0), 0);
    run_child(tells, NEVER, 1, 0, 0);
    SAME(wait_report(), 10);
    SAME(wait_report(), NEVER);
    return true;
}

/* Answers and receives in two calls, and signals itself in between; its signals are counted. */
static void answers_then_receives(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    (void)unused;
    for (;;) {
        struct message m = receive(CHILD_ENDPOINT);

        if (m.badge & BOUND_SIGNAL) {
            seen->turns[0]++;
            continue;
        }
        send(SYS_SEND, CHILD_OTHER, 0);
        m = (struct message){ 0, message_make(1, 0, 0, 0), { m.w[0] + 1, 0, 0, 0 } };
        syscall(SYS_REPLY, &m);
    }
}

/* No signal follows: the one that came while it served gives it time to receive. */
static bool signals_before_the_answer_donate(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t context = make(TYPE_CONTEXT, 0);

    passive_bound_server(answers_then_receives, endpoint, notification);
    SAME(context_configure(context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    SAME(context_bind(context, notification), 0);
    for (word_t i = 1; i < 4; i++) {
        SAME(answer_to(endpoint, 10 * i), 10 * i + 1);
        let_others_run();
        SAME(shared->turns[0], i);
    }
    return true;
}

/* Works until it is told to stop, and then counts its signals. */
static void works_then_receives(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    (void)unused;
    while (!seen->stop)
        seen->turns[1]++;
    for (;;)
        seen->turns[0] += (receive(CHILD_ENDPOINT).badge & BOUND_SIGNAL) != 0;
}

/* It has a signal and loses its time; or is without any, and is bound to who has both. */
static bool signals_donate_in_any_order(void)
{
    for (word_t order = 0; order < 2; order++) {
        word_t notification = make(TYPE_NOTIFICATION, 0), context = make(TYPE_CONTEXT, 0);
        struct child child = make_child(works_then_receives, 0, WORK, 0);

        share_nothing_yet();
        share_with(&child);
        give(&child, CHILD_ENDPOINT, make(TYPE_ENDPOINT, 0), RIGHTS_ALL, 0);
        SAME(context_configure(context, SLICE, SLICE), 0);
        SAME(context_bind(context, notification), 0);
        if (order == 0)
            SAME(tcb_bind(child.tcb, notification), 0);
        start(&child);
        sleep_for(2 * BUDGET_LEAST); /* it is at it */
        SAME(send(SYS_SEND, notification, 0), 0);
        SAME(context_unbind(child.context), 0);
        if (order == 1)
            SAME(tcb_bind(child.tcb, notification), 0);
        shared->stop = 1;
        let_others_run();
        SAME(shared->turns[0], 1);
    }
    return true;
}

/* If either of the two ends, the other can be bound again. */
static bool donation_ends_with_either(void)
{
    word_t first = make(TYPE_NOTIFICATION, 0), second = make(TYPE_NOTIFICATION, 0);
    word_t context = make(TYPE_CONTEXT, 0), other = make(TYPE_CONTEXT, 0);

    SAME(context_configure(context, SLICE, SLICE), 0);
    SAME(context_configure(other, SLICE, SLICE), 0);
    SAME(context_bind(context, first), 0);
    SAME(cnode_recycle(ROOT_CNODE, first, 32), 0);
    SAME(context_bind(context, second), 0);
    SAME(cnode_delete(ROOT_CNODE, second, 32), 0);
    SAME(context_bind(context, first), 0);
    SAME(cnode_delete(ROOT_CNODE, context, 32), 0);
    SAME(context_bind(other, first), 0);
    SAME(context_unbind(other), 0);
    SAME(context_bind(other, badged(first, RIGHT_SEND, 1)), ERROR_NO_RIGHT);
    return true;
}

/* A caller that waits for the server has its time taken away: it does not call any more. */
static bool callers_without_time_step_back(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child first = make_child(calls_once, 10, WORK, 0);
    struct child second = make_child(calls_once, 20, WORK, 0);

    passive_server(serves_slowly, 3000000, endpoint);
    give(&first, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&second, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    SAME(context_configure(first.context, 4 * MILLISECOND, 100 * MILLISECOND), 0);
    start(&first);
    sleep_for(2 * BUDGET_LEAST); /* the server is at it */
    start(&second);
    sleep_for(6 * MILLISECOND); /* the first has no time left, and the second waits */
    SAME(context_unbind(second.context), 0);
    SAME(wait_report(), 11);
    SAME(answer_to(endpoint, 30), 31);
    SAME(context_bind(second.context, second.tcb), 0); /* it calls now */
    SAME(wait_report(), 21);
    return true;
}

static const struct test tests[] = {
    { signalled_servers_go_on, "a passive server that was signalled while it served goes on" },
    { signals_donate, "a signal donates the time of its notification" },
    { signals_wait_for_donated_time, "a signal waits until the time of its notification is back" },
    { other_time_reaches_who_waits, "other time of the notification reaches who waits for it" },
    { who_is_answered_by_another_goes_on, "who is answered when its time is with the notification again goes on with a signal" },
    { signals_before_the_answer_donate, "a signal that comes while a server serves gives it time after its answer" },
    { signals_donate_in_any_order, "a signal donates whenever its thread comes to wait for a context" },
    { donation_ends_with_either, "a context and a notification, each can be bound again" },
    { callers_without_time_step_back, "a caller that loses its time while it waits keeps nobody waiting" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
