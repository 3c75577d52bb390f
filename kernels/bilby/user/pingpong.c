/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benchmark: two threads in two address spaces, one calling and one answering; one signalling and
 * one waiting; one interrupted and one handling the interrupt.
 * Between two rounds no other system call is made, so that a recording of the kernel
 * shows the rounds as two paths that alternate; bench/ipc.py finds and times them.
 */
#include "tests.h"
#include "ticker.h"
#include <devices.h>

#define ROUNDS 64
#define URGENT 200
#define CLOCKS 2000 /* of the timer, from one interrupt to the next */
#define CLIENT 10 /* priority; of the server too: the fastpath switches between equals */

/* The contents of one round in each direction; the server answers with word 0 plus 1. */
struct load {
    word_t length, caps;
};

/* Words that travel in registers, words in buffers, and with capabilities as badges. */
static const struct load loads[] = { { 4, 0 }, { 5, 0 }, { 120, 0 }, { 120, 3 } };

static void name_caps(void)
{
    for (word_t i = 0; i < EXTRA_CAPS_MAX; i++)
        BUFFER[BUFFER_CAPS + i] = CHILD_ENDPOINT;
}

static void server(word_t which)
{
    const struct load *load = &loads[which];
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    syscall(SYS_RECEIVE, &m);
    for (;;) {
        m.w[0]++;
        m.badge = CHILD_ENDPOINT;
        m.info = message_make(load->length, 0, 0, 0);
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

static void client(word_t which)
{
    const struct load *load = &loads[which];
    word_t wrong = 0;

    for (word_t round = 0; round < ROUNDS; round++) {
        struct message m = { CHILD_ENDPOINT, message_make(load->length, load->caps, 0, 0),
                             { round, 0, 0, 0 } };

        name_caps(); /* badges took their places */
        syscall(SYS_CALL, &m);
        wrong += m.w[0] != round + 1 || message_length(m.info) != load->length;
    }
    tell(wrong);
    rest();
}

/* Where time is a capability, a server has none of its own: a call donates it. */
static void let_it_wait(struct child child)
{
    if (child.context == 0)
        return;
    let_others_run();
    make_passive(&child);
}

static bool rounds(word_t which)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    let_it_wait(run_child(server, which, CLIENT, endpoint, 0));
    run_child(client, which, CLIENT, endpoint, 1);
    SAME(wait_report(), 0);
    return true;
}

/* ---- signals ---------------------------------------------------------------------- */

static void waits(word_t unused)
{
    (void)unused;
    for (;;)
        receive(CHILD_ENDPOINT);
}

static void signals(word_t value)
{
    for (word_t round = 0; round < ROUNDS; round++)
        send(SYS_SEND, CHILD_ENDPOINT, 0);
    tell(value);
    rest();
}

static bool signalled(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);

    run_child(waits, 0, URGENT, notification, 0);
    run_child(signals, 1, CLIENT, notification, 1);
    SAME(wait_report(), 1);
    return true;
}

/* ---- interrupts ------------------------------------------------------------------- */

#define TIMER_ADDRESS 0x001fb000u
#define HANDLER       CHILD_OTHER

static void handles(word_t value)
{
    for (word_t round = 0; round < ROUNDS; round++) {
        invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
        timer_start_every(TIMER_ADDRESS, CLOCKS);
        receive(CHILD_ENDPOINT);
        timer_stop(TIMER_ADDRESS);
        timer_clear(TIMER_ADDRESS);
    }
    tell(value);
    rest();
}

static void never_waits(word_t unused)
{
    (void)unused;
    for (;;)
        __asm__ volatile("");
}

static bool interrupted_by_the_timer(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child handler = make_child(handles, 2, URGENT, 0);

    own_the_timer();
    SAME(irq_set_notification(timer_line, notification), 0);
    SAME(frame_map(copy_of(ROOT_TIMER_FRAME), handler.directory, TIMER_ADDRESS, RIGHT_WRITE, 0), 0);
    give(&handler, CHILD_ENDPOINT, notification, RIGHTS_ALL, 0);
    give(&handler, HANDLER, timer_line, RIGHTS_ALL, 0);
    run_child(never_waits, 0, CLIENT, 0, 0);
    start(&handler);
    SAME(wait_report(), 2);
    return true;
}

static bool in_registers(void)
{
    return rounds(0);
}

static bool in_buffers(void)
{
    return rounds(1);
}

static bool full(void)
{
    return rounds(2);
}

static bool full_with_caps(void)
{
    return rounds(3);
}

static const struct test pingpong_tests[] = {
    { in_registers, "call and answer with 4 words, by the fastpath" },
    { in_buffers, "call and answer with 5 words, by the general path" },
    { full, "call and answer with 120 words" },
    { full_with_caps, "call with 120 words and 3 capabilities, answer with 120 words" },
    { signalled, "a signal to an urgent thread that waits" },
    { interrupted_by_the_timer, "an interrupt to an urgent thread that waits" },
    { NULL, NULL },
};

const struct test *const suite[] = { pingpong_tests, NULL };
