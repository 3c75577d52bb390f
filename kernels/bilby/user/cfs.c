/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A completely fair scheduler as a thread, section 5.2.1 of "Mixed-criticality support in a
 * high-assurance, general-purpose microkernel".  Its threads yield by calling it.  It keeps their reply
 * capabilities, charges each the time that its context consumed, times a multiplier, and answers
 * the one with the least of this virtual runtime.
 *
 * It has no context of its own.  Either all threads share one: a call donates it to the scheduler, and the
 * answer to the next thread; it comes from the first thread, which starts them by a call, and gets
 * it back when so many turns are taken.  Or each thread has its own, and donates that.
 */
#include "tests.h"
#include "work.h"
#include "cfs_tree.h"

#define SHARED_ADDRESS 0x001fa000u
#define SCHEDULES 11 /* priorities, as in the paper: one above the threads */
#define TAKES_TURNS 10

#define THREADS_MAX 64
#define TURNS_LOG  12 /* of a measurement */
#define TURNS      (1u << TURNS_LOG)
#define UNIT       (MILLISECOND / 4) /* of work in a turn */

/* Slots of the scheduler; 0 is the first thread's, others are of the threads. */
#define CONTEXTS CHILD_FREE
#define REPLIES  (CHILD_FREE + THREADS_MAX + 1)
/* Slots of the threads: each has an endpoint capability with its number as the badge. */
#define OWN_ENDPOINTS CHILD_FREE

/* Labels of calls. */
enum { JOIN = 1, START, YIELD };

/* Three levels of nice halve a thread's share: 1024 times powers of the third root of 2. */
#define NICE_MAX 3
#define MULTIPLIER_BITS 10
static const word_t multipliers[2 * NICE_MAX + 1] = { 512, 645, 813, 1024, 1290, 1625, 2048 };

struct entity {
    word_t nice, work; /* nice is from 0 to 2 NICE_MAX; turns of work in each turn of the thread */
    word_t turns;
    ticks_t runtime;   /* virtual */
};

struct shared {
    struct entity entities[THREADS_MAX + 1];
};

#define SEEN ((volatile struct shared *)SHARED_ADDRESS) /* by children */

/* ---- the scheduler ------------------------------------------------------------------------------ */

static struct tree tree;
static word_t reply_slots[THREADS_MAX + 1]; /* where each thread's reply capability is, or comes */
static word_t turns_left;
static bool is_shared; /* the context */

/* The caller's reply capability changes places with the one that is used next. */
static void swap_for(word_t caller, word_t next)
{
    if (caller == next)
        return;
    cnode_swap_caller(CHILD_CNODE, reply_slots[next], 32);
    reply_slots[caller] = reply_slots[next];
}

static void join(word_t thread)
{
    reply_slots[thread] = REPLIES + thread;
    cnode_swap_caller(CHILD_CNODE, reply_slots[thread], 32);
    tree_insert(&tree, thread, 0);
}

/* The thread that took its turn, or the first one, has called. */
static void choose(word_t caller)
{
    word_t next = tree.first;

    if (turns_left-- == 0) {
        swap_for(caller, 0);
        return;
    }
    tree_remove(&tree, next);
    swap_for(caller, next);
    SEEN->entities[next].turns++;
}

static void charge(word_t thread)
{
    volatile struct entity *entity = &SEEN->entities[thread];
    ticks_t used;

    context_consumed(CONTEXTS + (is_shared ? 0 : thread), &used);
    entity->runtime += ((ticks_t)(word_t)used * multipliers[entity->nice]) >> MULTIPLIER_BITS;
    tree_insert(&tree, thread, entity->runtime);
}

static void start_turns(word_t turns)
{
    ticks_t used;

    turns_left = turns;
    context_consumed(CONTEXTS, &used); /* from now on */
    choose(0);
}

static void schedules(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };
    word_t number = SYS_RECEIVE;

    (void)unused;
    for (;;) {
        syscall(number, &m);
        number = SYS_REPLY_RECEIVE;
        switch (message_label(m.info)) {
        case JOIN:
            join(m.badge);
            number = SYS_RECEIVE;
            break;
        case START:
            start_turns(m.w[0]);
            break;
        default:
            charge(m.badge);
            choose(m.badge);
        }
        m.badge = CHILD_ENDPOINT;
        m.info = 0;
    }
}

/* ---- threads -------------------------------------------------------------------------------------- */

static word_t stacks[THREADS_MAX + 1][64]; /* used in the threads' address space */
static volatile word_t unfinished;         /* the same */

static void takes_turns(word_t which)
{
    word_t turns = SEEN->entities[which].work;

    call(OWN_ENDPOINTS + which, JOIN, 0);
    for (;;) {
        work(turns);
        call(OWN_ENDPOINTS + which, YIELD, 0);
    }
}

/* To the kernel; the last one reports. */
static void yields(word_t turns)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    while (turns-- != 0)
        syscall(SYS_YIELD, &m);
    if (--unfinished == 0)
        tell(0);
    rest();
}

/* ---- the first thread ----------------------------------------------------------------------------- */

static volatile struct shared *shared;
static word_t shared_frame, endpoint;
static struct child scheduler, crowd;
static word_t tcbs[THREADS_MAX + 1], contexts[THREADS_MAX + 1];

static void share_with(const struct child *child)
{
    require(frame_map(copy_of(shared_frame), child->directory, SHARED_ADDRESS,
                      RIGHT_READ | RIGHT_WRITE, 0), "shared frame");
}

static void make_shared(void)
{
    shared_frame = make(TYPE_FRAME_4K, 0);
    shared = look_at(shared_frame);
    for (word_t i = 1; i <= THREADS_MAX; i++)
        shared->entities[i].nice = NICE_MAX; /* 0 */
}

static void make_scheduler(bool one_context)
{
    is_shared = one_context;
    endpoint = make(TYPE_ENDPOINT, 0);
    scheduler = run_child(schedules, 0, SCHEDULES, endpoint, 0);
    share_with(&scheduler);
    give(&scheduler, CONTEXTS, ROOT_CONTEXT, RIGHTS_ALL, 0);
    let_others_run();
    make_passive(&scheduler); /* before threads join: they are to be in its debt, and an answer donates them time */
}

static void make_thread(word_t which, void (*run)(word_t), word_t argument)
{
    word_t thread = tcbs[which] = make(TYPE_TCB, 0);

    require(tcb_configure(thread, 0, crowd.cnode, crowd.directory, 0, 0), "thread");
    require(tcb_write_registers(thread, (word_t)run, (word_t)stacks[which + 1], 0, argument),
            "registers");
    require(tcb_set_priority(thread, TAKES_TURNS), "priority");
    contexts[which] = give_time(thread);
    require(tcb_resume(thread), "resume");
}

static void make_crowd(word_t count)
{
    unfinished = count;
    crowd = make_child(tells, 0, 1, 0);
    share_with(&crowd);
}

/* The threads join, then there is nothing but the contexts that are wanted. */
static void begin(word_t count, bool one_context)
{
    make_scheduler(one_context);
    make_crowd(count);
    for (word_t i = 0; i < count; i++) {
        give(&crowd, OWN_ENDPOINTS + i + 1, endpoint, RIGHT_SEND | RIGHT_GRANT, i + 1);
        make_thread(i, takes_turns, i + 1);
        give(&scheduler, CONTEXTS + i + 1, contexts[i], RIGHTS_ALL, 0);
    }
    let_others_run();
    for (word_t i = 0; one_context && i < count; i++)
        require(context_unbind(contexts[i]), "unbind");
}

/* They wait; so many turns; they wait again.  In ticks. */
static word_t take_turns(word_t turns)
{
    ticks_t before = clock_now();

    call(endpoint, START, turns);
    return (word_t)(clock_now() - before);
}

static void end(word_t count)
{
    for (word_t i = 0; i < count; i++)
        require(tcb_suspend(tcbs[i]), "suspend");
}

/* ---- the tree --------------------------------------------------------------------------------------- */

#define RANDOM_ROUNDS 1000 /* of insertions; and of removals */

static word_t seed = 1;

static word_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

static bool is_in[TREE_NODES];

static bool has_least(const struct tree *any)
{
    for (word_t i = 1; i < TREE_NODES; i++)
        if (is_in[i] && any->nodes[i].key < any->nodes[any->first].key)
            return false;
    return true;
}

/* A random node comes or goes; or the first one goes, as in each choice. */
static word_t change(struct tree *any, word_t count)
{
    word_t node = next_random() % TREE_NODES;

    if ((next_random() & 3) == 0 && count != 0)
        node = any->first;
    if (node == 0)
        return count;
    is_in[node] = !is_in[node];
    if (!is_in[node]) {
        tree_remove(any, node);
        return count - 1;
    }
    tree_insert(any, node, next_random() >> 23);
    return count + 1;
}

static bool tree_is_red_and_black(void)
{
    static struct tree any;
    word_t count = 0, insertions = 0, removals = 0, most = 0;

    while (insertions < RANDOM_ROUNDS || removals < RANDOM_ROUNDS) {
        word_t before = count;

        count = change(&any, count);
        insertions += count > before;
        removals += count < before;
        if (count > most)
            most = count;
        SAME(tree_is_sound(&any, count), true);
        SAME(has_least(&any), true);
    }
    while (count != 0) {
        tree_remove(&any, any.first);
        SAME(tree_is_sound(&any, --count), true);
    }
    return any.root == 0 && any.first == 0 && most > TREE_NODES / 4;
}

/* Rules are broken by hand, one at a time. */
static bool wrong_trees_are_seen(void)
{
    static struct tree any;

    for (word_t i = 1; i < 32; i++)
        tree_insert(&any, i, i);
    SAME(tree_is_sound(&any, 31), true);
    SAME(tree_is_sound(&any, 30), false);
    any.nodes[any.root].red = true;
    SAME(tree_is_sound(&any, 31), false);
    any.nodes[any.root].red = false;
    any.nodes[any.first].red = !any.nodes[any.first].red;
    SAME(tree_is_sound(&any, 31), false);
    any.nodes[any.first].red = !any.nodes[any.first].red;
    any.nodes[7].key = 40;
    SAME(tree_is_sound(&any, 31), false);
    any.nodes[7].key = 7;
    return tree_is_sound(&any, 31);
}

/* ---- fairness --------------------------------------------------------------------------------------- */

#define FAIR_THREADS 4
#define FAIR_TURNS   240

static void put_line(const char *name, word_t value)
{
    put_string("# ");
    put_string(name);
    put_string(" ");
    put_number(value);
    put_string("\n");
}

/* Turns of one to four units; all get the same, up to the longest turn. */
static bool equal_ones_get_the_same(bool one_context)
{
    ticks_t least, most, sum = 0;
    word_t elapsed;

    make_shared();
    for (word_t i = 1; i <= FAIR_THREADS; i++)
        shared->entities[i].work = i * turns_of(UNIT);
    begin(FAIR_THREADS, one_context);
    elapsed = take_turns(FAIR_TURNS);
    end(FAIR_THREADS);
    least = most = shared->entities[1].runtime;
    for (word_t i = 1; i <= FAIR_THREADS; i++) {
        ticks_t runtime = shared->entities[i].runtime;

        sum += runtime;
        if (runtime < least)
            least = runtime;
        if (runtime > most)
            most = runtime;
    }
    put_line(one_context ? "cfs-shared-spread" : "cfs-own-spread", (word_t)(most - least));
    SAME(most - least <= FAIR_THREADS * UNIT + UNIT / 4, true);
    SAME(sum <= elapsed && sum >= elapsed - elapsed / 32, true); /* all is charged */
    return true;
}

/* Two that are three levels nicer take half as many turns. */
static bool nice_ones_get_less(bool one_context)
{
    word_t turns[FAIR_THREADS];

    make_shared();
    for (word_t i = 1; i <= FAIR_THREADS; i++) {
        shared->entities[i].work = turns_of(UNIT);
        shared->entities[i].nice = i <= 2 ? NICE_MAX : 2 * NICE_MAX;
    }
    begin(FAIR_THREADS, one_context);
    take_turns(FAIR_TURNS);
    end(FAIR_THREADS);
    for (word_t i = 0; i < FAIR_THREADS; i++) {
        word_t right = i < 2 ? FAIR_TURNS / 3 : FAIR_TURNS / 6;

        turns[i] = shared->entities[i + 1].turns;
        put_line(i < 2 ? "cfs-turns-weight-2" : "cfs-turns-weight-1", turns[i]);
        if (turns[i] + 1 < right || turns[i] > right + 1)
            return same("turns", turns[i], right);
    }
    return true;
}

static bool equal_ones_shared(void)
{
    work_measure();
    return equal_ones_get_the_same(true);
}

static bool equal_ones_own(void)
{
    return equal_ones_get_the_same(false);
}

static bool nice_ones_shared(void)
{
    return nice_ones_get_less(true);
}

static bool nice_ones_own(void)
{
    return nice_ones_get_less(false);
}

/* ---- the cost of a yield ------------------------------------------------------------------------------ */

static void put_yield(const char *name, word_t threads, word_t ticks)
{
    put_string("# ");
    put_string(name);
    put_string("-hundredths ");
    put_number(threads);
    put_string(" ");
    put_number(100 * ticks >> TURNS_LOG);
    put_string("\n");
}

/* From one thread's yield to the next one's: its turn is nothing else. */
static bool yields_to_scheduler(const char *name, bool one_context)
{
    for (word_t count = 2; count <= THREADS_MAX; count *= 2) {
        make_shared();
        begin(count, one_context);
        put_yield(name, count, take_turns(TURNS));
        end(count);
        for (word_t i = 1; i <= count; i++)
            if (shared->entities[i].turns == 0)
                return same("turns", i, 0);
    }
    return true;
}

static bool yields_shared(void)
{
    return yields_to_scheduler("cfs-shared", true);
}

static bool yields_own(void)
{
    return yields_to_scheduler("cfs-own", false);
}

static bool yields_to_kernel(void)
{
    word_t turns = TURNS / 2;

    make_shared();
    for (word_t count = 2; count <= THREADS_MAX; count *= 2, turns /= 2) {
        ticks_t before;

        make_crowd(count);
        for (word_t i = 0; i < count; i++)
            make_thread(i, yields, turns);
        before = clock_now();
        SAME(wait_report(), 0);
        put_yield("cfs-kernel", count, (word_t)(clock_now() - before));
        end(count);
    }
    return true;
}

static const struct test cfs_tests[] = {
    { tree_is_red_and_black, "1,000 random insertions and removals leave a red-black tree" },
    { wrong_trees_are_seen, "a tree that breaks a rule is seen" },
    { equal_ones_shared, "one context: threads of equal weight get the same up to a turn" },
    { nice_ones_shared, "one context: weights of 2 and 1 get turns in that ratio" },
    { equal_ones_own, "a context for each: threads of equal weight get the same up to a turn" },
    { nice_ones_own, "a context for each: weights of 2 and 1 get turns in that ratio" },
    { yields_shared, "what a yield takes, with one context (Figure 9)" },
    { yields_own, "the same with a context for each thread" },
    { yields_to_kernel, "the same by the kernel's yield, by turns" },
    { NULL, NULL },
};

const struct test *const suite[] = { cfs_tests, NULL };
