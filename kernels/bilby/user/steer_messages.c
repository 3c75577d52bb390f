/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and faults between threads whose every address has 32 levels.  The longest
 * system call is a reply-and-receive: an answer of 120 words with capabilities, then
 * a message of 120 words with three capabilities that already waits.
 */
#include "steer.h"
#include "deep.h"

#define WORDS    MESSAGE_WORDS_MAX
#define CLIENT   20 /* priority: the answer makes the client run, in another space */
#define SERVER   10
#define HANDLER  5

static void set_caps(word_t first, word_t second, word_t third)
{
    BUFFER[BUFFER_CAPS] = DEEP(first);
    BUFFER[BUFFER_CAPS + 1] = DEEP(second);
    BUFFER[BUFFER_CAPS + 2] = DEEP(third);
    BUFFER[BUFFER_RECEIVE_ROOT] = DEEP(LEAF_ROOT);
    BUFFER[BUFFER_RECEIVE_INDEX] = DEEP(LEAF_EMPTY);
    BUFFER[BUFFER_RECEIVE_DEPTH] = 32;
}

static void set_words(word_t value)
{
    for (word_t i = MESSAGE_REGISTERS; i < WORDS; i++)
        BUFFER[BUFFER_WORDS + i] = value + i;
}

/* The number of words in the buffer, the length included, that differ from set_words(). */
static word_t wrong_words(const struct message *m, word_t value)
{
    word_t wrong = message_length(m->info) != WORDS;

    for (word_t i = MESSAGE_REGISTERS; i < WORDS; i++)
        wrong += BUFFER[BUFFER_WORDS + i] != value + i;
    return wrong;
}

static _Noreturn void report_and_rest(word_t value)
{
    send(SYS_SEND, DEEP(LEAF_REPORT), value);
    for (;;)
        receive(DEEP(LEAF_HANDLER)); /* nobody sends there */
}

/* Calls with three capabilities, two of them as badges; takes one with the answer. */
static void client(word_t caps)
{
    struct message m = { DEEP(LEAF_ENDPOINT), message_make(WORDS, caps, 0, 0),
                         { 1, 2, 3, 4 } };
    word_t wrong;

    set_words(1000);
    set_caps(LEAF_BADGE, LEAF_BADGE_2, LEAF_OTHER);
    syscall(SYS_CALL, &m);
    wrong = wrong_words(&m, 2000) + (message_extra(m.info) != 1);
    report_and_rest(wrong + (send(SYS_SEND, DEEP(LEAF_EMPTY), 0) != 0)); /* a signal */
}

/* Receives, then answers one client and receives from the next in one system call. */
static void server(word_t unused)
{
    struct message m = { DEEP(LEAF_ENDPOINT), 0, { 0, 0, 0, 0 } };
    word_t wrong;

    (void)unused;
    set_caps(LEAF_OTHER, LEAF_BADGE, LEAF_BADGE_2);
    syscall(SYS_RECEIVE, &m);
    wrong = wrong_words(&m, 1000) + (message_extra(m.info) != 0);
    set_words(2000);
    m.badge = DEEP(LEAF_ENDPOINT);
    m.info = message_make(WORDS, 3, 0, 0);
    syscall(SYS_REPLY_RECEIVE, &m);
    wrong += wrong_words(&m, 1000) + (message_extra(m.info) != 3)
        + (message_unwrapped(m.info) != 3);
    set_words(2000);
    set_caps(LEAF_OTHER, LEAF_BADGE, LEAF_BADGE_2);
    m.info = message_make(WORDS, 3, 0, 0);
    syscall(SYS_REPLY, &m);
    report_and_rest(wrong);
}

/* A thread in a deep space with these two endpoints. */
static void deep_child(void (*run)(word_t), word_t argument, word_t priority,
                       word_t endpoint, word_t handler)
{
    word_t leaves[LEAVES] = {
        [LEAF_ENDPOINT] = endpoint,
        [LEAF_BADGE] = badged(endpoint, RIGHTS_ALL, 1),
        [LEAF_BADGE_2] = badged(endpoint, RIGHTS_ALL, 2),
        [LEAF_OTHER] = make(TYPE_NOTIFICATION, 0),
        [LEAF_REPORT] = report,
        [LEAF_HANDLER] = handler,
    };
    struct child child = make_child_in(deep_space(leaves), run, argument, priority,
                                       DEEP(LEAF_HANDLER));

    start(&child);
}

/* The server answers the first client and finds the second one waiting. */
static bool both_ways(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    deep_child(client, 0, CLIENT, endpoint, park);
    deep_child(client, 3, CLIENT, endpoint, park);
    deep_child(server, 0, SERVER, endpoint, park);
    for (word_t i = 0; i < 3; i++)
        SAME(wait_report(), 0);
    return true;
}

static void receiver(word_t unused)
{
    struct message m = { DEEP(LEAF_ENDPOINT), 0, { 0, 0, 0, 0 } };
    word_t wrong;

    (void)unused;
    set_caps(LEAF_OTHER, LEAF_BADGE, LEAF_BADGE_2);
    syscall(SYS_RECEIVE, &m);
    wrong = wrong_words(&m, 1000) + (message_extra(m.info) != 3);
    set_words(2000);
    set_caps(LEAF_OTHER, LEAF_BADGE, LEAF_BADGE_2); /* badges took their places */
    m.info = message_make(WORDS, 3, 0, 0);
    syscall(SYS_REPLY, &m);
    report_and_rest(wrong);
}

/* The client finds the server waiting. */
static bool one_way(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    deep_child(receiver, 0, CLIENT, endpoint, park);
    deep_child(client, 3, SERVER, endpoint, park);
    SAME(wait_report(), 0);
    SAME(wait_report(), 0);
    return true;
}

/* Three addresses of 32 levels and a row of 32 slots, in one invocation. */
static void invoker(word_t unused)
{
    word_t root = DEEP(LEAF_ROOT);
    word_t other = DEEP(LEAF_OTHER);
    word_t empty = DEEP(LEAF_EMPTY);
    word_t wrong = 0;

    (void)unused;
    wrong += cnode_copy(root, empty, 32, root, other, 32, RIGHTS_ALL) != 0;
    wrong += cnode_delete(root, empty, 32) != 0;
    wrong += cnode_move(root, empty, 32, root, other, 32) != 0;
    wrong += cnode_rotate(root, other, empty, DEEP(LEAF_BADGE)) != 0;
    wrong += cnode_revoke(root, other, 32) != 0;
    report_and_rest(wrong);
}

static bool invocations(void)
{
    deep_child(invoker, 0, CLIENT, make(TYPE_ENDPOINT, 0), park);
    SAME(wait_report(), 0);
    return true;
}

/* ---- faults ----------------------------------------------------------------------------- */

static void undefined(word_t unused)
{
    (void)unused;
    __asm__ volatile(".inst 0xe7f000f0");
}

static void jumps_away(word_t unused)
{
    (void)unused;
    ((void (*)(void))0x08000000u)();
}

static void reads_nothing(word_t unused)
{
    (void)unused;
    (void)*(volatile word_t *)0x08000000u;
}

static void handle(word_t unused)
{
    (void)unused;
    tells(message_label(receive(CHILD_ENDPOINT).info));
}

static void idle_on(word_t unused)
{
    (void)unused;
    rest();
}

/* A handler waits that is less urgent: it is queued behind an equal, when the fault wakes it. */
static bool fault(void (*run)(word_t), word_t label)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(handle, 0, HANDLER, endpoint, 0);
    let_others_run();
    run_child(idle_on, 0, HANDLER, endpoint, 0);
    deep_child(run, 0, SERVER, endpoint, endpoint);
    SAME(wait_report(), label);
    return true;
}

static bool faults(void)
{
    return fault(undefined, FAULT_UNDEFINED) && fault(jumps_away, FAULT_PREFETCH_ABORT)
        && fault(reads_nothing, FAULT_DATA_ABORT);
}

const struct test message_tests[] = {
    { both_ways, "reply-and-receive with everything, every address of 32 levels" },
    { one_way, "call with everything, every address of 32 levels" },
    { invocations, "invocations with every address of 32 levels" },
    { faults, "faults through handlers 32 levels deep" },
    { NULL, NULL },
};
