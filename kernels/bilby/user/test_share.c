/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: what threads that know nothing of each other owe each other: neither time nor work. */
#include "tests.h"
#include "ticker.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u
#define HANDLER       CHILD_OTHER
#define NOTIFICATION  (CHILD_OTHER + 1)
#define OWN           (CHILD_OTHER + 2)
#define UNTYPED       CHILD_FREE
#define FIRST         (CHILD_FREE + 1)
#define NODES         120
#define FEW           400 /* clocks of the timer: to begin takes less, to delete the nodes much more */

static word_t delete_own(word_t slot)
{
    word_t words[] = { slot, 32 };

    return invoke(CHILD_CNODE, LABEL_CNODE_DELETE, words, 2, NULL, 0);
}

/* A line whose interrupts an urgent child takes. */
static struct child make_urgent(void (*run)(word_t), word_t priority)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child child = make_child(run, 0, priority, 0);

    own_the_timer();
    require(irq_set_notification(timer_line, notification), "timer");
    require(frame_map(copy_of(ROOT_TIMER_FRAME), child.directory, TIMER_ADDRESS, RIGHT_WRITE, 0),
            "timer frame");
    give(&child, HANDLER, timer_line, RIGHTS_ALL, 0);
    give(&child, NOTIFICATION, notification, RIGHTS_ALL, 0);
    return child;
}

static void wait_for_the_timer(word_t clocks)
{
    invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
    timer_start_every(TIMER_ADDRESS, clocks);
    receive(NOTIFICATION);
    timer_stop(TIMER_ADDRESS);
    timer_clear(TIMER_ADDRESS);
}

/* ---- deletion --------------------------------------------------------------------- */

static void tells_when_aborted(word_t value)
{
    receive(CHILD_ENDPOINT);
    tell(value);
    rest();
}

/*
 * A CNode in the child's slot FIRST, with all capabilities to many others in it, and in the
 * slot that is emptied last the only one to an endpoint, on which a child of the highest
 * priority waits.
 */
static void give_much_to_delete(const struct child *child, word_t value)
{
    word_t node = make(TYPE_CNODE, 7);
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(tells_when_aborted, value, 254, endpoint, 0);
    for (word_t i = 0; i < NODES; i++)
        require(make_error(TYPE_CNODE, 1, node, 2 + i), "node");
    let_others_run();
    require(cnode_revoke(ROOT_CNODE, endpoint, 32), "endpoint"); /* but the waiter's thread waits */
    require(cnode_move(node, 1, 7, ROOT_CNODE, endpoint, 32), "endpoint");
    require(cnode_move(child->cnode, FIRST, 32, ROOT_CNODE, node, 32), "node");
}

static void deletes_much(word_t value)
{
    tell(value + delete_own(FIRST));
    rest();
}

/* When the timer interrupts, it deletes what is its own. */
static void deletes_little(word_t value)
{
    wait_for_the_timer(FEW);
    tell(value + delete_own(OWN));
    rest();
}

static bool urgent_deletion(void)
{
    struct child urgent = make_urgent(deletes_little, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);

    give(&urgent, OWN, make(TYPE_ENDPOINT, 0), RIGHTS_ALL, 0);
    give_much_to_delete(&slow, 20);
    start(&slow);
    start(&urgent);
    SAME(wait_report(), 0); /* while the slow one is at it */
    SAME(wait_report(), 20);
    SAME(wait_report(), 30);
    return true;
}

/* When the timer interrupts, it stops the thread in OWN, and is not seen again. */
static void suspends(word_t unused)
{
    (void)unused;
    wait_for_the_timer(FEW);
    invoke(OWN, LABEL_TCB_SUSPEND, NULL, 0, NULL, 0);
    rest();
}

static bool suspended_deletion(void)
{
    struct child urgent = make_urgent(suspends, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);

    give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
    give_much_to_delete(&slow, 20);
    start(&slow);
    start(&urgent);
    SAME(wait_report(), 20); /* nobody deletes any more, and nobody else runs */
    return true;
}

/* Interrupted, and its own thread was in the node, too. */
static bool deletion_of_oneself(void)
{
    struct child urgent = make_urgent(suspends, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);
    word_t node = new_slots(1);

    give_much_to_delete(&slow, 20);
    require(cnode_move(ROOT_CNODE, node, 32, slow.cnode, FIRST, 32), "node");
    start(&slow);
    require(cnode_move(node, 127, 7, ROOT_CNODE, slow.tcb, 32), "thread");
    require(cnode_move(slow.cnode, FIRST, 32, ROOT_CNODE, node, 32), "node");
    start(&urgent);
    SAME(wait_report(), 20);
    return true;
}

const struct test share_tests[] = {
    { urgent_deletion, "a deletion does not wait for that of a less urgent thread" },
    { suspended_deletion, "what a thread that was stopped has not deleted is deleted all the same" },
    { deletion_of_oneself, "a thread that deletes itself and others wakes those who waited" },
    { NULL, NULL },
};
