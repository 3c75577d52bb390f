/* SPDX-License-Identifier: BSD-2-Clause */
/* See ticker.h. */
#include "ticker.h"
#include "tests.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u
#define HANDLER      CHILD_OTHER
#define NOTIFICATION (CHILD_OTHER + 1)
#define ASK_AGAIN    (CHILD_OTHER + 2)
#define STOP_BADGE   1u
#define AGAIN_BADGE  2u
#define TIMER_BADGE  0x10u
#ifdef TIME_CONTEXTS
#define MORE_CLOCKS (TIMER_MILLISECOND / 1000) /* time is charged, and an alarm set, before the worker goes on */
#else
#define MORE_CLOCKS 0
#endif
#define SPREAD_STEP  7u /* so that interrupts come at ever new moments of the work */

word_t timer_line, interrupts;
static struct ticks ticks;

/* ---- the driver --------------------------------------------------------------------- */

static word_t taken, wrong;

/* One signal of the timer's: it has fired, and not yet been told so. */
static void take(void)
{
    taken++;
    wrong += !timer_has_fired(TIMER_ADDRESS);
    timer_clear(TIMER_ADDRESS);
    invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
}

/* No more are to come; one that has been raised must have been signalled by now. */
static void stop(void)
{
    struct message m;

    timer_stop(TIMER_ADDRESS);
    send(SYS_SEND, ASK_AGAIN, 0);
    m = receive(NOTIFICATION);
    if (m.badge & TIMER_BADGE)
        take();
    wrong += timer_has_fired(TIMER_ADDRESS);
}

static void driver(word_t unused)
{
    word_t later = 0;

    (void)unused;
    invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
    timer_start_every(TIMER_ADDRESS, ticks.period);
    for (;;) {
        struct message m = receive(NOTIFICATION);

        if (ticks.spread != 0)
            timer_stop(TIMER_ADDRESS); /* else it may fire between take() and its next start */
        if (m.badge & TIMER_BADGE)
            take();
        if (m.badge & STOP_BADGE)
            break;
        if (ticks.spread != 0) {
            later = later + SPREAD_STEP < ticks.spread ? later + SPREAD_STEP
                                                       : later + SPREAD_STEP - ticks.spread;
            timer_start_every(TIMER_ADDRESS, ticks.period + later);
        }
    }
    stop();
    send(SYS_SEND, CHILD_ENDPOINT, taken);
    send(SYS_SEND, CHILD_ENDPOINT, wrong);
    rest();
}

/* ---- the first thread ---------------------------------------------------------------- */

static word_t results, asking;

void own_the_timer(void)
{
    if (timer_line == 0) {
        timer_line = new_slots(1);
    } else {
        require(cnode_revoke(ROOT_CNODE, timer_line, 32), "timer");
        require(cnode_delete(ROOT_CNODE, timer_line, 32), "timer");
    }
    require(irq_get(TIMER_IRQ, ROOT_CNODE, timer_line, 32), "timer");
}

static void start_driver(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child child;

    own_the_timer();
    require(irq_set_notification(timer_line, badged(notification, RIGHTS_ALL, TIMER_BADGE)),
            "timer");
    results = make(TYPE_ENDPOINT, 0);
    asking = badged(notification, RIGHTS_ALL, STOP_BADGE);
    child = make_child(driver, 0, 200, 0);
    require(frame_map(copy_of(ROOT_TIMER_FRAME), child.directory, TIMER_ADDRESS,
                      RIGHT_WRITE, 0), "timer frame");
    give(&child, CHILD_ENDPOINT, results, RIGHTS_ALL, 0);
    give(&child, HANDLER, timer_line, RIGHTS_ALL, 0);
    give(&child, NOTIFICATION, notification, RIGHTS_ALL, 0);
    give(&child, ASK_AGAIN, notification, RIGHTS_ALL, AGAIN_BADGE);
    start(&child);
}

bool interrupted(const struct child *worker, word_t expected, struct ticks every)
{
    word_t result;

    ticks = every; /* the driver gets a copy of this program's data */
    ticks.period += MORE_CLOCKS;
    start_driver();
    start(worker);
    result = wait_report();
    send(SYS_SEND, asking, 0);
    interrupts = receive(results).w[0];
    SAME(receive(results).w[0], 0);
    SAME(result, expected);
    return true;
}
