/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts that take as long as they can. The signal goes to a bound thread, which waits for
 * messages between two others and has used up its slice: it is taken out of their queue, queued at
 * the end of its priority, and chosen before the worker, which goes back in front of its equal. The
 * address space of the driver has lost its number since it ran.
 */
#include "steer.h"
#include "ticker.h"
#include <devices.h>
#include <tick.h>

#define TIMER_ADDRESS 0x001fb000u
#define HANDLER  CHILD_OTHER
#define SIGNAL   16 /* badge */
#define DRIVER   200 /* priority */
#define WORKER   100
#define ROUNDS   2
#define NUMBERS  256 /* of address spaces */
#define DELAY    (TICK_CLOCKS / 4 * 3)

static _Noreturn void spin(word_t unused)
{
    (void)unused;
    for (;;)
        continue;
}

static _Noreturn void wait_for_messages(word_t unused)
{
    (void)unused;
    for (;;)
        receive(CHILD_ENDPOINT);
}

/* Runs for more than half a slice, a different time in each round: some slices are over then. */
static void use_time(word_t round)
{
    word_t until = TICK_CLOCKS / 2 + TICK_CLOCKS / 16 / ROUNDS * round;

    timer_start_every(TIMER_ADDRESS, DELAY);
    while (timer_elapsed(TIMER_ADDRESS, DELAY) < until)
        continue;
}

/* Each round: the first of the others has a message, and waits behind this thread, for a signal. */
static _Noreturn void driver(word_t unused)
{
    (void)unused;
    invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
    for (word_t round = 0; round < ROUNDS; round++) {
        struct message m;

        tell(round);
        send(SYS_SEND, CHILD_ENDPOINT, 0);
        use_time(round);
        timer_start_every(TIMER_ADDRESS, DELAY);
        m = receive(CHILD_ENDPOINT);
        timer_stop(TIMER_ADDRESS);
        timer_clear(TIMER_ADDRESS);
        invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
        tell(m.badge);
    }
    rest();
}

/* A thread enters as many spaces as there are numbers, none of which has one, and faults in each. */
static void take_numbers(const struct child *visitor, const word_t *spaces)
{
    for (word_t i = 0; i < NUMBERS; i++) {
        require(tcb_unconfigure(visitor->tcb), "leave");
        require(tcb_configure(visitor->tcb, 0, visitor->cnode, spaces[i], 0, 0), "visit");
        start(visitor);
        send(SYS_YIELD, 0, 0); /* it is as urgent */
    }
}

static bool wakes_a_bound_thread(void)
{
    static word_t spaces[2 * NUMBERS];
    word_t endpoint = make(TYPE_ENDPOINT, 0), notification = make(TYPE_NOTIFICATION, 0);
    struct child visitor = make_bare_child(spin, 0, 255);
    struct child served = make_child(driver, 0, DRIVER, 0), workers[2];

    for (word_t i = 0; i < 2 * NUMBERS; i++)
        spaces[i] = make(TYPE_PAGE_DIRECTORY, 0);
    own_the_timer();
    require(irq_set_notification(timer_line, badged(notification, RIGHTS_ALL, SIGNAL)), "timer");
    require(frame_map(copy_of(ROOT_TIMER_FRAME), served.directory, TIMER_ADDRESS, RIGHT_WRITE, 0),
            "timer frame");
    give(&served, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&served, HANDLER, timer_line, RIGHTS_ALL, 0);
    require(tcb_bind(served.tcb, notification), "bind");
    for (word_t i = 0; i < 2; i++) {
        run_child(wait_for_messages, 0, DRIVER, endpoint, 0);
        workers[i] = make_child(spin, 0, WORKER, 0);
    }
    start(&served);
    for (word_t round = 0; round < ROUNDS; round++) {
        SAME(wait_report(), round);
        let_others_run(); /* the driver waits */
        take_numbers(&visitor, spaces + round % 2 * NUMBERS);
        for (word_t i = 0; i < 2; i++)
            start(&workers[i]);
        SAME(wait_report(), BOUND_SIGNAL | SIGNAL);
        for (word_t i = 0; i < 2; i++)
            require(tcb_suspend(workers[i].tcb), "worker");
    }
    return true;
}

const struct test interrupt_tests[] = {
    { wakes_a_bound_thread, "an interrupt ends the wait of a bound thread" },
    { NULL, NULL },
};
