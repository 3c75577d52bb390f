/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: threads wait by priority, threads of one priority in order of arrival (preset mcs). */
#include "tests.h"

#define COUNT 6

/* Arrivals, and who goes first. */
static const word_t priorities[COUNT] = { 20, 64, 30, 64, 20, 200 };
static const word_t order[COUNT] = { 5, 1, 3, 2, 0, 4 };

static void sends(word_t value)
{
    send(SYS_SEND, CHILD_ENDPOINT, value);
    rest();
}

static void receives(word_t value)
{
    receive(CHILD_ENDPOINT);
    tells(value);
}

static void calls(word_t value)
{
    tells(call(CHILD_ENDPOINT, 0, value).w[0]);
}

/* Children of these priorities, each of which waits for the object when this returns. */
static void let_all_wait(void (*run)(word_t), word_t object, struct child children[COUNT])
{
    for (word_t i = 0; i < COUNT; i++) {
        children[i] = run_child(run, i, priorities[i], object, 0);
        let_others_run();
    }
}

static bool senders(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child children[COUNT];

    let_all_wait(sends, endpoint, children);
    for (word_t i = 0; i < COUNT; i++)
        SAME(receive(endpoint).w[0], order[i]);
    return true;
}

static bool receivers(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child children[COUNT];

    let_all_wait(receives, endpoint, children);
    for (word_t i = 0; i < COUNT; i++) {
        SAME(send(SYS_SEND, endpoint, 0), 0);
        SAME(wait_report(), order[i]);
    }
    return true;
}

static bool waiters_for_a_signal(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child children[COUNT];

    let_all_wait(receives, notification, children);
    for (word_t i = 0; i < COUNT; i++) {
        SAME(send(SYS_SEND, notification, 0), 0);
        SAME(wait_report(), order[i]);
    }
    return true;
}

/* The index of a queue has words of 32 priorities: the first and the last of one, behind another one. */
static bool ends_of_a_word(void)
{
    static const word_t at[] = { 250, 223, 192 };
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    for (word_t i = 0; i < 3; i++) {
        run_child(sends, i, at[i], endpoint, 0);
        let_others_run();
    }
    for (word_t i = 0; i < 3; i++)
        SAME(receive(endpoint).w[0], i);
    return true;
}

/* A server that is busy finds the most urgent of its clients next. */
static bool callers(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child children[COUNT];
    struct message m;

    let_all_wait(calls, endpoint, children);
    m = receive(endpoint);
    for (word_t i = 1; i < COUNT; i++) {
        SAME(m.w[0], order[i - 1]);
        m = reply_receive(endpoint, 0, m.w[0]);
    }
    SAME(m.w[0], order[COUNT - 1]);
    m = (struct message){ 0, message_make(1, 0, 0, 0), { m.w[0], 0, 0, 0 } };
    syscall(SYS_REPLY, &m);
    for (word_t i = 0; i < COUNT; i++)
        SAME(wait_report(), order[i]);
    return true;
}

static bool priorities_that_change(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    static const word_t after[COUNT] = { 4, 1, 3, 0, 2, 5 };
    struct child children[COUNT];

    let_all_wait(sends, endpoint, children);
    SAME(tcb_set_priority(children[5].tcb, 1), 0);    /* the first becomes the last */
    SAME(tcb_set_priority(children[4].tcb, 254), 0);  /* and the last the first */
    SAME(tcb_set_priority(children[2].tcb, 20), 0);   /* behind its new equal */
    for (word_t i = 0; i < COUNT; i++)
        SAME(receive(endpoint).w[0], after[i]);

    let_all_wait(receives, notification, children);
    SAME(tcb_set_priority(children[1].tcb, 64), 0);   /* behind its equal */
    SAME(tcb_set_priority(children[0].tcb, 65), 0);
    for (word_t i = 0; i < COUNT; i++) {
        static const word_t then[COUNT] = { 5, 0, 3, 1, 2, 4 };

        SAME(send(SYS_SEND, notification, 0), 0);
        SAME(wait_report(), then[i]);
    }
    return true;
}

/* Those who receive move, too; and who gets the priority that it has goes behind its equals. */
static bool receivers_that_change(void)
{
    static const word_t after[COUNT] = { 0, 5, 3, 1, 2, 4 };
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child children[COUNT];

    let_all_wait(receives, endpoint, children);
    SAME(tcb_set_priority(children[1].tcb, priorities[1]), 0);
    SAME(tcb_set_priority(children[5].tcb, priorities[5]), 0);
    SAME(tcb_set_priority(children[0].tcb, 254), 0);
    for (word_t i = 0; i < COUNT; i++) {
        SAME(send(SYS_SEND, endpoint, 0), 0);
        SAME(wait_report(), after[i]);
    }
    return true;
}

/* Whoever is stopped leaves the queue; when it comes again it is the last of its equals. */
static bool who_comes_again(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    static const word_t after[COUNT] = { 5, 3, 1, 2, 0, 4 };
    struct child children[COUNT];
    struct registers registers;

    let_all_wait(sends, endpoint, children);
    SAME(tcb_suspend(children[1].tcb), 0);
    SAME(tcb_read_registers(children[1].tcb, &registers), 0);
    SAME(tcb_write_registers(children[1].tcb, (word_t)sends, registers.sp, 0, 1), 0);
    SAME(tcb_resume(children[1].tcb), 0);
    let_others_run();
    for (word_t i = 0; i < COUNT; i++)
        SAME(receive(endpoint).w[0], after[i]);
    return true;
}

const struct test order_tests[] = {
    { senders, "the most urgent sender is received first, and equal ones in order of arrival" },
    { receivers, "the most urgent receiver gets the message" },
    { waiters_for_a_signal, "the most urgent of those who wait gets the signal" },
    { ends_of_a_word, "of 32 priorities the first is received before the last" },
    { callers, "a server answers the most urgent of its waiting clients next" },
    { priorities_that_change, "who gets another priority moves in the queue in which it waits" },
    { receivers_that_change, "the same of those who wait to receive, and who keeps its priority goes behind its equals" },
    { who_comes_again, "who leaves a queue and comes again is behind its equals" },
    { NULL, NULL },
};
