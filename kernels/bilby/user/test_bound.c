/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: a notification that is bound to a thread ends its wait for messages, too. */
#include "tests.h"
#include "ticker.h"
#include <devices.h>

#define SIGNAL 64 /* badge */

/* The message that a server received, as one word: its word and badge. */
static word_t what(const struct message *m)
{
    return m->badge & BOUND_SIGNAL ? m->badge : m->badge + m->w[0];
}

/* Waits for messages and signals, and reports each. */
static void bound_server(word_t turns)
{
    for (word_t i = 0; i < turns; i++) {
        struct message m = receive(CHILD_ENDPOINT);

        tell(what(&m));
    }
    rest();
}

static struct child make_server(word_t endpoint, word_t notification, word_t turns)
{
    struct child server = make_child(bound_server, turns, 10, 0);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    require(tcb_bind(server.tcb, notification), "bind");
    return server;
}

static bool one_receive_for_both(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    word_t signals = badged(notification, RIGHT_SEND, SIGNAL);
    struct child server = make_server(endpoint, notification, 4);

    SAME(send(SYS_SEND, signals, 0), 0); /* pending before it runs */
    start(&server);
    SAME(wait_report(), BOUND_SIGNAL | SIGNAL);
    SAME(send(SYS_SEND, endpoint, 7), 0);
    SAME(wait_report(), 7);
    let_others_run();
    SAME(send(SYS_SEND, signals, 0), 0); /* while it waits */
    SAME(wait_report(), BOUND_SIGNAL | SIGNAL);
    SAME(send(SYS_SEND, badged(endpoint, RIGHT_SEND, 5), 3), 0);
    SAME(wait_report(), 8);
    return true;
}

static bool signals_before_messages(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct message m;

    SAME(tcb_bind(ROOT_TCB, notification), ERROR_NONE);
    run_child(tells, 0, 10, endpoint, 0);
    SAME(wait_report(), 0);
    SAME(send(SYS_SEND, badged(notification, RIGHT_SEND, 1), 0), 0);
    SAME(send(SYS_SEND, badged(notification, RIGHT_SEND, 2), 0), 0);
    SAME(poll(endpoint, &m), ERROR_NONE);
    SAME(m.badge, BOUND_SIGNAL | 3);
    SAME(poll(endpoint, &m), ERROR_NOTHING);
    SAME(send(SYS_SEND, notification, 0), 0);
    SAME(receive(endpoint).badge, BOUND_SIGNAL);
    SAME(tcb_unbind(ROOT_TCB), ERROR_NONE);
    SAME(send(SYS_SEND, notification, 0), 0);
    SAME(poll(endpoint, &m), ERROR_NOTHING);
    return true;
}

#define TIMER_ADDRESS 0x001fb000u
#define INTERRUPTS    5

/* A driver: answers calls and takes interrupts of the timer, a few, in one receive. */
static void timer_server(word_t unused)
{
    word_t taken = 0;
    struct message m;

    (void)unused;
    irq_acknowledge(CHILD_OTHER);
    timer_start_every(TIMER_ADDRESS, TIMER_TICKS);
    m = receive(CHILD_ENDPOINT);
    for (;;) {
        if (!(m.badge & BOUND_SIGNAL)) {
            m = reply_receive(CHILD_ENDPOINT, taken, m.w[0] + 1);
            continue;
        }
        if (++taken == INTERRUPTS)
            timer_stop(TIMER_ADDRESS);
        timer_clear(TIMER_ADDRESS);
        irq_acknowledge(CHILD_OTHER);
        m = receive(CHILD_ENDPOINT);
    }
}

static bool interrupts_between_calls(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct child server = make_child(timer_server, 0, 10, 0);
    struct message m;
    word_t turn = 0;

    own_the_timer();
    SAME(irq_set_notification(timer_line, badged(notification, RIGHT_SEND, SIGNAL)), ERROR_NONE);
    SAME(frame_map(copy_of(ROOT_TIMER_FRAME), server.directory, TIMER_ADDRESS, RIGHT_WRITE, 0),
         ERROR_NONE);
    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, timer_line, RIGHTS_ALL, 0);
    SAME(tcb_bind(server.tcb, notification), ERROR_NONE);
    start(&server);
    do {
        m = call(endpoint, 0, turn);
        SAME(m.w[0], turn + 1);
        turn++;
    } while (message_label(m.info) < INTERRUPTS);
    SAME(message_label(m.info), INTERRUPTS);
    return true;
}

static bool ends_with_either(void)
{
    word_t first = make(TYPE_NOTIFICATION, 0), second = make(TYPE_NOTIFICATION, 0);
    word_t thread = make(TYPE_TCB, 0), other = make(TYPE_TCB, 0);

    SAME(tcb_bind(thread, copy_of(first)), ERROR_NONE);
    SAME(tcb_bind(thread, second), ERROR_ILLEGAL_OPERATION);
    SAME(tcb_bind(other, first), ERROR_ILLEGAL_OPERATION);
    SAME(cnode_recycle(ROOT_CNODE, first, 32), ERROR_NONE);
    SAME(tcb_bind(thread, second), ERROR_NONE);
    SAME(cnode_delete(ROOT_CNODE, second, 32), ERROR_NONE);
    SAME(tcb_bind(thread, first), ERROR_NONE);
    SAME(cnode_delete(ROOT_CNODE, thread, 32), ERROR_NONE);
    SAME(tcb_bind(other, first), ERROR_NONE);
    SAME(tcb_unbind(other), ERROR_NONE);
    SAME(tcb_unbind(other), ERROR_ILLEGAL_OPERATION);
    return true;
}

const struct test bound_tests[] = {
    { one_receive_for_both, "a bound thread receives messages and signals in one receive" },
    { signals_before_messages, "a bound signal is polled and received before messages" },
    { interrupts_between_calls, "a driver answers calls and takes interrupts in one receive" },
    { ends_with_either, "binding ends with the thread or the notification" },
    { NULL, NULL },
};
