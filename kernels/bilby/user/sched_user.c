/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Schedulers of user programs: Table 2 and Figures 6 and 7 of "Mixed-criticality support in a
 * high-assurance, general-purpose microkernel".
 *
 *                        cooperative               preemptive
 *   one context for all  calls, and answers to     the timer; the context is bound
 *                        another                   to another
 *   one context each     signals, yield_to         timeouts, yield_to
 *
 * Three threads take turns as order[] says.  A switch is timed from a thread's last reading of the
 * clock to the first of the next one, so that it includes the time of SYS_CLOCK.
 */
#include "tests.h"
#include "work.h"
#include <devices.h>

#define SHARED_ADDRESS 0x001fa000u
#define TIMER_ADDRESS  0x001fb000u
#define THREADS  3
#define PRIORITY 10
#define TURNS    60
#define QUANTUM  (4 * MILLISECOND)
#define NOBODY   THREADS

/* Slots of a scheduler that is a child. */
#define REPLIES  (CHILD_FREE)     /* two reply capabilities */
#define SIGNALS  (CHILD_FREE + 8) /* each thread's notification ... */
#define CONTEXTS (CHILD_FREE + 16) /* ... and its context */

/* Whose turn it is: nobody has two in succession, and all have as many. */
static const word_t order[] = { 0, 1, 2, 0, 2, 1 };

struct shared {
    volatile word_t turns[THREADS]; /* or turns of a loop */
    volatile word_t log[TURNS], logged;
    volatile word_t last; /* who read the clock last, and when */
    volatile word_t at;
    struct figure switches;
};

static struct shared *shared;
static struct child children[THREADS];

static word_t next_turn(word_t turn)
{
    return turn + 1 < sizeof order / sizeof order[0] ? turn + 1 : 0;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* A thread has its turn: it is noted, and how long the switch took. */
static bool note_turn(word_t which)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    word_t now = (word_t)clock_now();

    if (seen->logged == TURNS)
        return false;
    if (seen->last != NOBODY)
        figure_add(&seen->switches, now - seen->at);
    seen->turns[which]++;
    seen->log[seen->logged++] = which;
    seen->last = which;
    seen->at = (word_t)clock_now();
    return true;
}

/* coop_yield_s() */
static void calls(word_t which)
{
    do
        call(CHILD_ENDPOINT, 0, which);
    while (note_turn(which));
    tells(which);
}

/* coop_yield_m(): the scheduler is told by a signal. */
static void waits(word_t which)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    receive(CHILD_OTHER);
    while (note_turn(which))
        signal_receive(CHILD_ENDPOINT, CHILD_OTHER, &m);
    tells(which);
}

/* Does not know of the scheduler: it may lose its turn between any two instructions. */
static void spins(word_t which)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;

    for (;;) {
        word_t now = (word_t)clock_now();

        if (seen->last != which) {
            now = (word_t)clock_now(); /* the first may be of its last turn */
            if (seen->last != NOBODY && now - seen->at < QUANTUM) /* noted late, by who lost its turn */
                figure_add(&seen->switches, now - seen->at);
            seen->last = which;
        }
        seen->at = now;
        seen->turns[which]++;
    }
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void map_shared(const struct child *child, word_t frame)
{
    require(frame_map(copy_of(frame), child->directory, SHARED_ADDRESS, RIGHT_READ | RIGHT_WRITE, 0),
            "shared frame");
}

static word_t make_threads(void (*run)(word_t))
{
    word_t frame = make(TYPE_FRAME_4K, 0);

    shared = look_at(frame);
    shared->last = NOBODY;
    for (word_t i = 0; i < THREADS; i++) {
        children[i] = make_child(run, i, PRIORITY, 0);
        map_shared(&children[i], frame);
    }
    return frame;
}

static void stop_threads(void)
{
    for (word_t i = 0; i < THREADS; i++)
        require(tcb_suspend(children[i].tcb), "suspend");
}

/* All turns were taken as the scheduler chose. */
static bool log_is_as_chosen(const char *name)
{
    word_t turn = 0;

    SAME(shared->logged, TURNS);
    for (word_t i = 0; i < TURNS; i++, turn = next_turn(turn))
        SAME(shared->log[i], order[turn]);
    for (word_t i = 0; i < THREADS; i++)
        SAME(shared->turns[i], TURNS / THREADS);
    figure_print(name, &shared->switches);
    return true;
}

/* ---- cooperative, one context ------------------------------------------------------------------ */

/*
 * coop_sched_s(): the reply capabilities of the calling thread and of the next one change places.  So
 * there are two slots for three threads, and each thread's is where the next one's was.
 */
static void answers_another(word_t unused)
{
    word_t slot_of[THREADS] = { REPLIES, REPLIES + 1, 0 };
    word_t turn = 0, now = THREADS - 1;
    struct message m;

    (void)unused;
    for (word_t i = 0; i + 1 < THREADS; i++) { /* they call in this order at first */
        receive(CHILD_ENDPOINT);
        cnode_swap_caller(CHILD_CNODE, slot_of[i], 32);
    }
    m = receive(CHILD_ENDPOINT);
    for (;; turn = next_turn(turn)) {
        word_t next = order[turn];

        if (m.w[0] != now)
            tells(99);
        if (next != now) {
            cnode_swap_caller(CHILD_CNODE, slot_of[next], 32);
            slot_of[now] = slot_of[next];
            now = next;
        }
        m = reply_receive(CHILD_ENDPOINT, 0, 0);
    }
}

static bool cooperative_shared(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child scheduler;

    make_threads(calls);
    scheduler = run_child(answers_another, 0, PRIORITY + 1, endpoint, 0);
    let_others_run();
    make_passive(&scheduler);
    for (word_t i = 0; i < THREADS; i++) {
        give(&children[i], CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
        if (i + 1 == THREADS)
            break;
        start(&children[i]); /* it calls, on a context that it has no more then */
        let_others_run();
        make_passive(&children[i]);
    }
    start(&children[THREADS - 1]); /* its context is for all */
    if (wait_report() == 99)
        return false;
    stop_threads();
    return log_is_as_chosen("cooperative-shared");
}

/* ---- cooperative, contexts of their own ----------------------------------------------------------- */

/* coop_sched_m(), of the same priority as the threads. */
static void signals(word_t unused)
{
    word_t turn = 0;
    ticks_t used;

    (void)unused;
    for (;; turn = next_turn(turn)) {
        word_t next = order[turn];

        send(SYS_SEND, SIGNALS + next, 0);
        if (context_yield_to(CONTEXTS + next, &used) != ERROR_NONE)
            tells(99);
        receive(CHILD_ENDPOINT);
    }
}

static bool cooperative_own(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child scheduler = make_child(signals, 0, PRIORITY, 0);

    make_threads(waits);
    give(&scheduler, CHILD_ENDPOINT, notification, RIGHTS_ALL, 0);
    for (word_t i = 0; i < THREADS; i++) {
        word_t own = make(TYPE_NOTIFICATION, 0);

        give(&children[i], CHILD_ENDPOINT, notification, RIGHTS_ALL, 1);
        give(&children[i], CHILD_OTHER, own, RIGHTS_ALL, 0);
        give(&scheduler, SIGNALS + i, own, RIGHTS_ALL, 1);
        give(&scheduler, CONTEXTS + i, children[i].context, RIGHTS_ALL, 0);
        start(&children[i]);
    }
    let_others_run(); /* all wait */
    start(&scheduler);
    if (wait_report() == 99)
        return false;
    stop_threads();
    require(tcb_suspend(scheduler.tcb), "suspend");
    return log_is_as_chosen("cooperative-own");
}

/* ---- preemptive ------------------------------------------------------------------------------------ */

/* The first thread is the scheduler.  Whose turn it was has gone on, and nobody else has. */
static bool only_went_on(word_t which, word_t *before)
{
    for (word_t i = 0; i < THREADS; i++) {
        word_t turns = shared->turns[i];

        if ((turns != before[i]) != (i == which))
            return same("went on", i, which);
        before[i] = turns;
    }
    return true;
}

static word_t start_timer(word_t notification)
{
    word_t line = new_slots(1);

    require(irq_get(TIMER_IRQ, ROOT_CNODE, line, 32), "timer");
    require(irq_set_notification(line, badged(notification, RIGHTS_ALL, 1)), "timer");
    require(frame_map(copy_of(ROOT_TIMER_FRAME), ROOT_PAGE_DIRECTORY, TIMER_ADDRESS,
                      RIGHT_WRITE, 0), "timer frame");
    irq_acknowledge(line);
    timer_start_every(TIMER_ADDRESS, QUANTUM);
    return line;
}

/* pr_schd_s() */
static bool preemptive_shared(void)
{
    word_t before[THREADS] = { 0 };
    word_t line, context, turn = 0;
    word_t notification = make(TYPE_NOTIFICATION, 0);

    make_threads(spins);
    for (word_t i = 0; i < THREADS; i++) {
        make_passive(&children[i]);
        start(&children[i]);
    }
    context = children[0].context;
    SAME(context_bind(context, children[order[0]].tcb), 0);
    line = start_timer(notification);
    for (word_t i = 0; i < TURNS; i++) {
        receive(notification);
        if (!only_went_on(order[turn], before))
            return false;
        turn = next_turn(turn);
        SAME(context_unbind(context), 0);
        SAME(context_bind(context, children[order[turn]].tcb), 0);
        timer_clear(TIMER_ADDRESS);
        irq_acknowledge(line);
    }
    timer_stop(TIMER_ADDRESS);
    stop_threads();
    figure_print("preemptive-shared", &shared->switches);
    return true;
}

/* Its timeouts have its number.  Each has a budget of a quantum, and a period of all of them. */
static void give_quantum(word_t which)
{
    require(context_configure(children[which].context, SLICE, SLICE), "full: nothing is owed");
    require(context_configure(children[which].context, QUANTUM, THREADS * QUANTUM), "quantum");
}

/* pr_schd_m(); the budget of whoever has used it up is renewed. */
static bool preemptive_own(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t before[THREADS] = { 0 };
    word_t turn = 0;
    ticks_t used;
    struct message m;

    make_threads(spins);
    for (word_t i = 0; i < THREADS; i++) {
        give_quantum(i);
        require(tcb_set_timeout(children[i].tcb, badged(endpoint, RIGHTS_ALL, i + 1)), "timeouts");
        start(&children[i]);
    }
    SAME(context_yield_to(children[order[0]].context, &used), 0);
    m = receive(endpoint);
    for (word_t i = 0; i < TURNS; i++) {
        SAME(message_label(m.info), FAULT_TIMEOUT);
        SAME(m.badge, order[turn] + 1);
        if (!only_went_on(order[turn], before))
            return false;
        give_quantum(order[turn]);
        turn = next_turn(turn);
        SAME(context_yield_to(children[order[turn]].context, &used), 0);
        m = (struct message){ endpoint, 0, { 0, 0, 0, 0 } };
        syscall(SYS_REPLY_RECEIVE, &m);
    }
    stop_threads();
    figure_print("preemptive-own", &shared->switches);
    return true;
}

/* The contents of each figure. */
static bool clock_is_read(void)
{
    struct figure figure = { 0, 0, 0 };

    for (word_t i = 0; i < TURNS; i++) {
        word_t before = (word_t)clock_now();

        figure_add(&figure, (word_t)clock_now() - before);
    }
    figure_print("clock", &figure);
    return figure.least < MILLISECOND;
}

static const struct test sched_user_tests[] = {
    { clock_is_read, "the clock can be read often" },
    { cooperative_shared, "one context: threads call, and the scheduler answers another (Figure 6)" },
    { cooperative_own, "contexts of their own: the scheduler signals who is next (Figure 6)" },
    { preemptive_shared, "the timer's interrupts give the one context to another (Figure 7)" },
    { preemptive_own, "timeouts let the scheduler choose who is next (Figure 7)" },
    { NULL, NULL },
};

const struct test *const suite[] = { sched_user_tests, NULL };
