/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scheduler of a user program: of the jobs that are ready, that with the earliest deadline runs
 * (section 5.2.2 and Figure 10 of "Mixed-criticality support in a high-assurance, general-purpose
 * microkernel").
 *
 * Each task calls the scheduler when its job is done; the answer is its next job's work.  The timer's
 * interrupts are signals of a notification that is bound to the scheduler, so that it has one
 * receive for both.  Tasks have one priority and full contexts; CONTEXT_YIELD_TO makes one the next, whether
 * it begins a job or was preempted in one.
 *
 * Task sets are drawn as by UUniFast, with a total utilisation that is given.  A decision is
 * timed from the end of one receive to the beginning of the next, in ticks, with one reading of the clock.
 */
#include "tests.h"
#include "work.h"
#include <devices.h>

#define TIMER_ADDRESS 0x001fb000u
#define TASKS_MIN 2
#define TASKS_MAX 10
#define PRIORITY  10
#define HORIZON   (400 * MILLISECOND) /* of one task set */
#define SETS      1                   /* of each number of tasks */
#define LEAST_WAIT 128u               /* ticks: the least time the timer is set to */
#define ONE       65536u              /* fixed point */
#define PERCENT(n) ((n) * ONE / 100)

struct task {
    word_t period, turns;
    ticks_t release, deadline; /* the next release; the deadline of the ready job */
    bool ready;
    struct child child;
};

static struct task tasks[TASKS_MAX];
static word_t replies;  /* slots: of each task that waits for its next job */
static word_t endpoint, line;
static word_t jobs, misses, preemptions;
static struct figure decisions[TASKS_MAX + 1];

/* ---- task sets ---------------------------------------------------------------------------------- */

static word_t seed;

static word_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static word_t power(word_t x, word_t exponent)
{
    word_t result = ONE;

    while (exponent-- != 0)
        result = (word_t)((ticks_t)result * x >> 16);
    return result;
}

/* The largest fraction whose power is no more than the value. */
static word_t root(word_t value, word_t exponent)
{
    word_t x = 0;

    for (word_t bit = ONE >> 1; bit != 0; bit >>= 1)
        if (power(x | bit, exponent) <= value)
            x |= bit;
    return x;
}

static void set_task(struct task *task, word_t utilisation)
{
    static const word_t periods[] = { 20, 25, 40, 50, 80, 100, 125, 200 };

    task->period = periods[draw() >> 29] * MILLISECOND;
    task->turns = turns_of((word_t)((ticks_t)task->period * utilisation >> 16));
}

/* UUniFast: of the utilisation that is left, the others have the (count - 1)th root of a random part. */
static void draw_set(word_t count, word_t utilisation)
{
    for (word_t i = 0; i + 1 < count; i++) {
        word_t part = root(draw() >> 16, count - 1 - i);
        word_t left = (word_t)((ticks_t)utilisation * part >> 16);

        set_task(&tasks[i], utilisation - left);
        utilisation = left;
    }
    set_task(&tasks[count - 1], utilisation);
}

/* ---- tasks ---------------------------------------------------------------------------------------- */

static void does_jobs(word_t unused)
{
    (void)unused;
    for (;;)
        work(call(CHILD_ENDPOINT, 0, 0).w[0]);
}

/* ---- the scheduler: the first thread ----------------------------------------------------------------- */

/* Who has called is not answered yet; or: who waits is answered next. */
static void swap_reply(word_t which)
{
    require(cnode_swap_caller(ROOT_CNODE, replies + which, 32), "swap");
}

static void end_job(word_t which, ticks_t now)
{
    jobs++;
    misses += now > tasks[which].deadline;
    tasks[which].ready = false;
    swap_reply(which);
}

static void begin_job(word_t which)
{
    struct task *task = &tasks[which];
    struct message m = { 0, message_make(1, 0, 0, 0), { task->turns, 0, 0, 0 } };

    task->ready = true;
    task->deadline = task->release + task->period;
    task->release = task->deadline;
    swap_reply(which);
    syscall(SYS_REPLY, &m);
}

/* The ready one with the earliest deadline; "count" if there is none. */
static word_t earliest(word_t count)
{
    word_t found = count;

    for (word_t i = 0; i < count; i++)
        if (tasks[i].ready && (found == count || tasks[i].deadline < tasks[found].deadline))
            found = i;
    return found;
}

/* At the next release of a task without a job. */
static void set_timer(word_t count, ticks_t now, ticks_t end)
{
    ticks_t next = end + MILLISECOND;

    for (word_t i = 0; i < count; i++)
        if (!tasks[i].ready && tasks[i].release < next)
            next = tasks[i].release;
    timer_start_every(TIMER_ADDRESS, next > now + LEAST_WAIT ? (word_t)(next - now) : LEAST_WAIT);
}

/* Jobs that are due; after the end no more. */
static void begin_jobs(word_t count, ticks_t now, ticks_t end)
{
    for (word_t i = 0; i < count; i++)
        if (!tasks[i].ready && tasks[i].release <= now && tasks[i].release < end)
            begin_job(i);
}

/* False at the end, when all jobs are done. */
static bool decide(word_t count, const struct message *m, ticks_t now, ticks_t end)
{
    static word_t last;
    word_t first;
    ticks_t used;

    if (m->badge & BOUND_SIGNAL) {
        timer_clear(TIMER_ADDRESS);
        irq_acknowledge(line);
    } else {
        end_job(m->badge - 1, now);
    }
    begin_jobs(count, now, end);
    first = earliest(count);
    if (first != count) {
        preemptions += first != last && tasks[last].ready;
        last = first;
        require(context_yield_to(tasks[first].child.context, &used), "yield to");
    } else if (now >= end) {
        return false;
    }
    set_timer(count, now, end);
    return true;
}

/* All begin at once. */
static void run_set(word_t count)
{
    ticks_t now = clock_now(), start = now + MILLISECOND, end = start + HORIZON;
    struct message m;
    bool more = true;

    for (word_t i = 0; i < count; i++) {
        tasks[i].release = start;
        tasks[i].ready = false;
    }
    set_timer(count, now, end);
    while (more) {
        m = receive(endpoint);
        now = clock_now();
        more = decide(count, &m, now, end);
        figure_add(&decisions[count], (word_t)(clock_now() - now));
    }
    timer_stop(TIMER_ADDRESS);
}

/* ---- tests -------------------------------------------------------------------------------------------- */

static void make_task(word_t which)
{
    struct child *child = &tasks[which].child;

    *child = make_child(does_jobs, 0, PRIORITY, 0);
    require(context_configure(child->context, PERIOD_TICKS_MAX, PERIOD_TICKS_MAX), "no turns");
    give(child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, which + 1);
    start(child);
    receive(endpoint);
    swap_reply(which);
}

static bool tasks_wait(void)
{
    word_t notification = make(TYPE_NOTIFICATION, 0);

    seed = 2016;
    work_measure();
    endpoint = make(TYPE_ENDPOINT, 0);
    line = new_slots(1);
    replies = new_slots(TASKS_MAX);
    SAME(irq_get(TIMER_IRQ, ROOT_CNODE, line, 32), 0);
    SAME(irq_set_notification(line, badged(notification, RIGHTS_ALL, 1)), 0);
    SAME(tcb_bind(ROOT_TCB, notification), 0);
    SAME(frame_map(copy_of(ROOT_TIMER_FRAME), ROOT_PAGE_DIRECTORY, TIMER_ADDRESS, RIGHT_WRITE, 0), 0);
    SAME(irq_acknowledge(line), 0);
    for (word_t i = 0; i < TASKS_MAX; i++)
        make_task(i);
    return true;
}

static void run_sets(const char *name, word_t least, word_t utilisation)
{
    jobs = misses = preemptions = 0;
    for (word_t count = least; count <= TASKS_MAX; count++)
        for (word_t set = 0; set < SETS; set++) {
            draw_set(count, utilisation);
            run_set(count);
        }
    put_string("# ");
    put_string(name);
    put_string(" jobs ");
    put_number(jobs);
    put_string(" misses ");
    put_number(misses);
    put_string(" preemptions ");
    put_number(preemptions);
    put_string("\n");
}

static bool half(void)
{
    run_sets("edf-50", TASKS_MIN, PERCENT(50));
    SAME(misses, 0);
    return preemptions != 0;
}

static bool three_quarters(void)
{
    run_sets("edf-75", TASKS_MIN, PERCENT(75));
    SAME(misses, 0);
    return preemptions != 0;
}

static bool decisions_are_timed(void)
{
    for (word_t count = TASKS_MIN; count <= TASKS_MAX; count++) {
        char name[] = "decision-00";

        name[9] = count == 10 ? '1' : '0';
        name[10] = (char)('0' + (count == 10 ? 0 : count));
        figure_print(name, &decisions[count]);
        if (decisions[count].count < 20 || decisions[count].least > MILLISECOND)
            return same("decisions", decisions[count].count, 20);
    }
    return true;
}

/* So that it is seen that misses are. */
static bool too_much(void)
{
    run_sets("edf-110", TASKS_MAX, PERCENT(110));
    return misses != 0;
}

static const struct test edf_tests[] = {
    { tasks_wait, "ten tasks wait for their first jobs" },
    { half, "with a utilisation of 50 % no deadline is missed" },
    { three_quarters, "with a utilisation of 75 % no deadline is missed" },
    { decisions_are_timed, "decisions of 2 to 10 tasks are timed (Figure 10)" },
    { too_much, "with a utilisation of 110 % deadlines are missed" },
    { NULL, NULL },
};

const struct test *const suite[] = { edf_tests, NULL };
