/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: threads that know nothing of each other share neither time nor work. */
#include "tests.h"
#include "ticker.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u
#define HANDLER       CHILD_OTHER
#define NOTIFICATION  (CHILD_OTHER + 1)
#define OWN           (CHILD_OTHER + 2)
#define SPINNER       (CHILD_OTHER + 3)
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
static struct child make_urgent_on(word_t notification, void (*run)(word_t), word_t argument, word_t priority)
{
    struct child child = make_child(run, argument, priority, 0);

    own_the_timer();
    require(irq_set_notification(timer_line, notification), "timer");
    require(frame_map(copy_of(ROOT_TIMER_FRAME), child.directory, TIMER_ADDRESS, RIGHT_WRITE, 0),
            "timer frame");
    give(&child, HANDLER, timer_line, RIGHTS_ALL, 0);
    give(&child, NOTIFICATION, notification, RIGHTS_ALL, 0);
    return child;
}

static struct child make_urgent(void (*run)(word_t), word_t priority)
{
    return make_urgent_on(make(TYPE_NOTIFICATION, 0), run, 0, priority);
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
 * slot that is emptied last the only one to an endpoint, on which a child of some priority waits.
 */
static void give_much_to_delete_to(const struct child *child, word_t value, word_t priority)
{
    word_t node = make(TYPE_CNODE, 7);
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(tells_when_aborted, value, priority, endpoint, 0);
    for (word_t i = 0; i < NODES; i++)
        require(make_error(TYPE_CNODE, 1, node, 2 + i), "node");
    let_others_run();
    require(cnode_revoke(ROOT_CNODE, endpoint, 32), "endpoint"); /* but the waiter's thread waits */
    require(cnode_move(node, 1, 7, ROOT_CNODE, endpoint, 32), "endpoint");
    require(cnode_move(child->cnode, FIRST, 32, ROOT_CNODE, node, 32), "node");
}

static void give_much_to_delete(const struct child *child, word_t value)
{
    give_much_to_delete_to(child, value, 254);
}

static void deletes_much(word_t value)
{
    tell(value + delete_own(FIRST));
    rest();
}

/* When the timer interrupts, it deletes its own object. */
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

static void spins(word_t unused)
{
    (void)unused;
    for (;;)
        __asm__ volatile("");
}

/* The same, and another thread, which only runs, starts then: nobody idles from here on. */
static void suspends_and_starts(word_t unused)
{
    (void)unused;
    wait_for_the_timer(FEW);
    invoke(OWN, LABEL_TCB_SUSPEND, NULL, 0, NULL, 0);
    invoke(SPINNER, LABEL_TCB_RESUME, NULL, 0, NULL, 0);
    rest();
}

/* Neither the priority of the thread that was stopped nor of the one that runs is the waiter's. */
static bool left_beside_a_spinner(word_t deleters, word_t spinners)
{
    struct child urgent = make_urgent(suspends_and_starts, 200);
    struct child slow = make_child(deletes_much, 30, deleters, 0);
    struct child spinner = make_child(spins, 0, spinners, 0);

    give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
    give(&urgent, SPINNER, spinner.tcb, RIGHTS_ALL, 0);
    give_much_to_delete(&slow, 20);
    start(&slow);
    start(&urgent);
    SAME(wait_report(), 20);
    SAME(tcb_suspend(spinner.tcb), 0);
    return true;
}

static bool left_by_the_more_urgent(void)
{
    return left_beside_a_spinner(5, 1);
}

static bool left_by_the_less_urgent(void)
{
    return left_beside_a_spinner(5, 100);
}

/* The deletion was not stopped: its thread never runs, because a more urgent one does. */
static void starts(word_t unused)
{
    (void)unused;
    wait_for_the_timer(FEW);
    invoke(SPINNER, LABEL_TCB_RESUME, NULL, 0, NULL, 0);
    rest();
}

static bool starved_deletion(void)
{
    struct child urgent = make_urgent(starts, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);
    struct child spinner = make_child(spins, 0, 100, 0);

    give(&urgent, SPINNER, spinner.tcb, RIGHTS_ALL, 0);
    give_much_to_delete(&slow, 20);
    start(&slow);
    start(&urgent);
    SAME(wait_report(), 20);
    SAME(tcb_suspend(spinner.tcb), 0);
    SAME(wait_report(), 30);
    return true;
}

#define MANY 3

/* Each was stopped while it was at it: all who wait are woken that are more urgent than who runs. */
static bool left_by_many(void)
{
    static const word_t deleters[MANY] = { 5, 60, 180 }, waiters[MANY] = { 254, 90, 30 };
    struct child spinner = make_child(spins, 0, 20, 0);
    word_t seen = 0;

    for (word_t i = 0; i < MANY; i++) {
        struct child urgent = make_urgent(suspends, 200);
        struct child slow = make_child(deletes_much, 30, deleters[i], 0);

        give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
        give_much_to_delete_to(&slow, 20 + i, waiters[i]);
        start(&slow);
        start(&urgent);
        let_others_run();
    }
    start(&spinner);
    while (seen != (1u << MANY) - 1)
        seen |= 1u << (wait_report() - 20);
    SAME(tcb_suspend(spinner.tcb), 0);
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

/* ---- a deletion that is abandoned anywhere, and continued by another thread ---- */

#define REGION_BITS  18
#define NODE_BITS    4
#define LONGEST      900 /* clocks: by then the deletion is over */
#define LATER        113 /* so that it is stopped at ever other places */

/* The region that it was made from is needed by this child, as soon as the deleter is stopped. */
static void suspends_and_revokes(word_t clocks)
{
    word_t words[] = { UNTYPED, 32 };

    wait_for_the_timer(clocks);
    invoke(OWN, LABEL_TCB_SUSPEND, NULL, 0, NULL, 0);
    tells(40 + invoke(CHILD_CNODE, LABEL_CNODE_REVOKE, words, 2, NULL, 0));
}

static word_t made_of(word_t region, word_t type, word_t size_bits, word_t node, word_t index)
{
    word_t slot = new_slots(1);

    require(untyped_retype(region, type, size_bits, ROOT_CNODE, 0, 0, slot, 1), "object");
    require(cnode_move(node, index, NODE_BITS, ROOT_CNODE, slot, 32), "move");
    return slot;
}

/* Of each kind that is deleted in steps: nodes in nodes, tables, a thread, and what two threads wait for. */
static word_t make_all_kinds(word_t region)
{
    word_t node = new_slots(3), endpoint = node + 1, notification = node + 2;

    require(untyped_retype(region, TYPE_CNODE, NODE_BITS, ROOT_CNODE, 0, 0, node, 1), "node");
    require(untyped_retype(region, TYPE_ENDPOINT, 0, ROOT_CNODE, 0, 0, endpoint, 1), "endpoint");
    require(untyped_retype(region, TYPE_NOTIFICATION, 0, ROOT_CNODE, 0, 0, notification, 1), "notification");
    run_child(tells_when_aborted, 20, 254, endpoint, 0);
    run_child(tells_when_aborted, 21, 253, notification, 0);
    let_others_run();
    require(cnode_move(node, 15, NODE_BITS, ROOT_CNODE, endpoint, 32), "endpoint");
    require(cnode_move(node, 14, NODE_BITS, ROOT_CNODE, notification, 32), "notification");
    for (word_t i = 0; i < 6; i++)
        made_of(region, TYPE_CNODE, 3, node, i);
    made_of(region, TYPE_TCB, 0, node, 6);
    made_of(region, TYPE_PAGE_TABLE, 0, node, 7);
    return node;
}

static bool abandoned_after(word_t clocks)
{
    word_t region = make(TYPE_UNTYPED, REGION_BITS), fresh = new_slots(1);
    struct child urgent = make_urgent_on(make(TYPE_NOTIFICATION, 0), suspends_and_revokes, clocks, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);
    word_t seen = 0;

    give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
    require(cnode_move(slow.cnode, FIRST, 32, ROOT_CNODE, make_all_kinds(region), 32), "node");
    require(cnode_move(urgent.cnode, UNTYPED, 32, ROOT_CNODE, region, 32), "region");
    start(&slow);
    start(&urgent);
    while (seen != (1u << 0 | 1u << 1 | 1u << 20)) { /* 20, 21 and 40; 30 if it was not stopped */
        word_t value = wait_report();

        if (value != 30)
            seen |= 1u << (value - 20);
    }
    SAME(cnode_move(ROOT_CNODE, region, 32, urgent.cnode, UNTYPED, 32), 0);
    SAME(untyped_retype(region, TYPE_UNTYPED, REGION_BITS, ROOT_CNODE, 0, 0, fresh, 1), 0); /* all of it */
    SAME(cnode_revoke(ROOT_CNODE, region, 32), 0);
    return true;
}

static bool abandoned_anywhere(void)
{
    for (word_t clocks = FEW / 8; clocks < LONGEST; clocks += LATER)
        if (!abandoned_after(clocks))
            return same("clocks", clocks, 0);
    return true;
}

/* ---- recycling -------------------------------------------------------------------- */

/* Threads: to wake them takes much more than FEW clocks.  No more contexts than 256 can be bound. */
#ifdef TIME_CONTEXTS
#define CROWD 200
#else
#define CROWD 300
#endif
#define TEXT(number) #number
#define NUMBER(number) TEXT(number)

/* A thread without a stack: makes the call of its registers, then rests. */
void calls_and_rests(void);
__asm__(".pushsection .text\n"
        "calls_and_rests: svc 0\n"
        "mov r0, #" NUMBER(CHILD_PARK) "\n"
        "mov r7, #" NUMBER(SYS_RECEIVE) "\n"
        "b calls_and_rests\n"
        ".popsection");

/* Many threads in the spaces of a child wait on its endpoint, behind the child itself. */
static void let_a_crowd_wait(const struct child *child, word_t number)
{
    word_t words[17] = { (word_t)calls_and_rests }; /* pc, sp, cpsr, r0 to r12, lr */

    words[3] = CHILD_ENDPOINT;
    words[3 + 7] = number;
    start(child);
    for (word_t i = 0; i < CROWD; i++) {
        word_t tcb = make(TYPE_TCB, 0);

        require(tcb_configure(tcb, 0, child->cnode, child->directory, 0, 0), "configure");
        require(invoke(tcb, LABEL_TCB_WRITE_REGISTERS, words, 17, NULL, 0), "registers");
        require(tcb_set_priority(tcb, 1), "priority");
        give_time(tcb);
        require(tcb_resume(tcb), "resume");
    }
    let_others_run();
}

static void sends_in_vain(word_t value)
{
    tells(send(SYS_SEND, CHILD_ENDPOINT, value));
}

static void receives_in_vain(word_t unused)
{
    (void)unused;
    tells(receive(CHILD_ENDPOINT).badge);
}

static void recycles_much(word_t value)
{
    word_t words[] = { FIRST, 32 };

    tells(value + invoke(CHILD_CNODE, LABEL_CNODE_RECYCLE, words, 2, NULL, 0));
}

/* A less urgent child recycles the object of a crowd, and is stopped while it is at it. */
static struct child stop_recycling(word_t object, word_t number)
{
    struct child urgent = make_urgent(suspends, 200);
    struct child slow = make_child(recycles_much, 30, 5, 0);
    struct child waiting = make_child(number == SYS_SEND ? sends_in_vain : receives_in_vain,
                                      0, 150, 0);

    give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
    give(&slow, FIRST, object, RIGHTS_ALL, 0);
    give(&waiting, CHILD_ENDPOINT, object, RIGHTS_ALL, 0);
    let_a_crowd_wait(&waiting, number);
    start(&slow);
    start(&urgent);
    return slow;
}

static bool stopped_recycling_of_an_endpoint(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child slow = stop_recycling(endpoint, SYS_SEND);

    SAME(wait_report(), SYSCALL_FAILED | ERROR_ABORTED); /* of who waited first */
    run_child(sends_in_vain, 0, 150, endpoint, 5);
    SAME(receive(endpoint).badge & SYSCALL_FAILED, 0);
    SAME(tcb_resume(slow.tcb), 0);
    wait_report(); /* of the one that came last */
    SAME(wait_report(), 30);
    return true;
}

static bool stopped_recycling_of_a_notification(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child slow = stop_recycling(notification, SYS_RECEIVE);

    SAME(wait_report(), SYSCALL_FAILED | ERROR_ABORTED);
    run_child(receives_in_vain, 0, 150, notification, 0);
    run_child(tells, 99, 1, 0, 0);
    SAME(wait_report(), 99); /* who waits now is not told that it is in vain */
    SAME(tcb_resume(slow.tcb), 0);
    if (wait_report() != 30) /* of the one that came last, if it was woken now */
        SAME(wait_report(), 30);
    return true;
}

/*
 * The same crowd, of senders whose endpoint is deleted: who has waited least is told, too, beside an equal
 * that only runs from when the deletion was stopped.
 */
static bool stopped_deletion_of_an_endpoint(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child urgent = make_urgent(suspends_and_starts, 200);
    struct child slow = make_child(deletes_much, 30, 5, 0);
    struct child spinner = make_child(spins, 0, 1, 0);
    struct child waiting = make_child(sends_in_vain, 0, 150, 0);

    give(&waiting, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&urgent, OWN, slow.tcb, RIGHTS_ALL, 0);
    give(&urgent, SPINNER, spinner.tcb, RIGHTS_ALL, 0);
    let_a_crowd_wait(&waiting, SYS_SEND);
    run_child(sends_in_vain, 0, 1, endpoint, 0);
    let_others_run();
    SAME(cnode_revoke(ROOT_CNODE, endpoint, 32), 0);
    SAME(cnode_move(slow.cnode, FIRST, 32, ROOT_CNODE, endpoint, 32), 0);
    start(&slow);
    start(&urgent);
    for (word_t i = 0; i < 2; i++) /* of the first, and of the last */
        SAME(wait_report(), SYSCALL_FAILED | ERROR_ABORTED);
    SAME(tcb_suspend(spinner.tcb), 0);
    return true;
}

/* ---- addresses -------------------------------------------------------------------- */

#define DONE       2   /* badge of who has finished */
#define INTERRUPTS 64  /* of one period: many more than the turns need */
#define TURNS      2
#define PERIOD_MAX 500 /* clocks */
#define OTHER      (FIRST + 1)

/* Two capabilities change places.  Each call looks up six addresses. */
static void turns(word_t value)
{
    for (word_t i = 0; i < TURNS; i++)
        value += cnode_rotate(CHILD_CNODE, FIRST, OTHER, FIRST);
    send(SYS_SEND, OWN, 0);
    tells(value);
}

/*
 * Takes interrupts of a period that grows, from one in which nobody else gets anywhere, until
 * somebody has finished, and reports the period.  With each interrupt it moves a CNode, if it
 * has one.
 */
static void moves(word_t unused)
{
    word_t i = INTERRUPTS;

    (void)unused;
    do {
        timer_stop(TIMER_ADDRESS);
        timer_clear(TIMER_ADDRESS);
        cnode_move(CHILD_CNODE, FIRST + (i & 1), 32, CHILD_CNODE, FIRST + (~i & 1), 32);
        invoke(HANDLER, LABEL_IRQ_ACKNOWLEDGE, NULL, 0, NULL, 0);
        timer_start_every(TIMER_ADDRESS, i++ / INTERRUPTS);
    } while (!(receive(NOTIFICATION).badge & DONE) && i < PERIOD_MAX * INTERRUPTS);
    timer_stop(TIMER_ADDRESS);
    timer_clear(TIMER_ADDRESS);
    tells(i / INTERRUPTS);
}

/* The least period at which a less urgent child finishes. */
static word_t period_to_finish(bool moving)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child urgent = make_urgent_on(notification, moves, 0, 200);
    struct child slow = make_child(turns, 0, 100, 0);
    word_t period;

    give(&slow, OWN, notification, RIGHTS_ALL, DONE);
    give(&slow, FIRST, copy_of(report), RIGHTS_ALL, 0);
    give(&slow, OTHER, copy_of(report), RIGHTS_ALL, 0);
    if (moving)
        require(make_error(TYPE_CNODE, 1, urgent.cnode, FIRST), "node");
    start(&slow);
    start(&urgent);
    period = wait_report();
    require(wait_report(), "turns");
    return period;
}

/*
 * If it needs longer with moves, it had to do all at once, for its finished steps were lost.  One
 * clock more is the time of the moves.
 */
static bool moves_of_others(void)
{
    word_t period = period_to_finish(false);

    SAME(period < PERIOD_MAX, true);
    SAME(period_to_finish(true) <= period + 1, true);
    return true;
}

/* ---- time ------------------------------------------------------------------------- */

#define CALLS 90000 /* they take several slices of time */

static void asks_often(word_t value)
{
    word_t wrong = 0;

    for (word_t i = 0; i < CALLS; i++)
        wrong += call(CHILD_ENDPOINT, 0, i).w[0] != i;
    tells(value + wrong);
}

static void answers_often(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;)
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0]);
}

/* Two threads that only run each other do not keep a third one waiting. */
static bool slices_of_callers(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(answers_often, 0, 50, endpoint, 0);
    run_child(asks_often, 20, 50, endpoint, 0);
    run_child(tells, 30, 50, 0, 0);
    SAME(wait_report(), 30);
    SAME(wait_report(), 20);
    return true;
}

static bool slices_of_spinners(void)
{
    struct child first = run_child(spins, 0, 50, 0, 0);
    struct child second = run_child(spins, 0, 50, 0, 0);

    run_child(tells, 30, 50, 0, 0);
    run_child(tells, 40, 49, 0, 0);
    SAME(wait_report(), 30);
    SAME(tcb_suspend(first.tcb), 0);
    SAME(tcb_suspend(second.tcb), 0);
    SAME(wait_report(), 40); /* less urgent: not before both are stopped */
    return true;
}

const struct test share_tests[] = {
    { urgent_deletion, "a deletion does not wait for that of a less urgent thread" },
    { suspended_deletion, "what a thread that was stopped has not deleted is deleted all the same" },
    { left_by_the_more_urgent, "an urgent thread that needs an abandoned deletion does not wait for idle time" },
    { left_by_the_less_urgent, "nor while those run that are more urgent than who left it" },
    { starved_deletion, "nor for a deletion whose thread never runs" },
    { left_by_many, "nor for any of those that threads of several priorities left" },
    { deletion_of_oneself, "a thread that deletes itself and others wakes those who waited" },
    { abandoned_anywhere, "whoever needs the memory of an abandoned deletion finishes it, wherever it was left" },
    { stopped_recycling_of_an_endpoint, "an endpoint whose recycler was stopped can be used" },
    { stopped_recycling_of_a_notification, "a notification whose recycler was stopped can be used" },
    { stopped_deletion_of_an_endpoint, "nor do those of a crowd whose endpoint is deleted wait for idle time" },
    { moves_of_others, "a call finishes though another thread moves its own CNode at each interrupt" },
    { slices_of_callers, "two threads that call each other leave time to others of their priority" },
    { slices_of_spinners, "threads of one priority that never wait take turns" },
    { NULL, NULL },
};
