/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: messages between address spaces.  The first thread has priority 255;
 * children run while it waits.
 */
#include "tests.h"

static word_t private_word = 1; /* each address space has its own */

static word_t pattern(word_t index)
{
    return index * 0x01000193u ^ 0x5bd1e995u;
}

/* ---- children ---------------------------------------------------------- */

static void send_once(word_t value)
{
    private_word = value;
    send(SYS_SEND, CHILD_ENDPOINT, private_word);
    rest();
}

static bool send_crosses(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    run_child(send_once, 4711, 10, endpoint, 0x0abcdef);
    m = receive(endpoint);
    SAME(m.w[0], 4711);
    SAME(m.badge, 0x0abcdef);
    SAME(message_length(m.info), 1);
    SAME(private_word, 1); /* the child wrote its own */
    return true;
}

static void receive_once(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    tell(m.w[0] + m.badge);
    rest();
}

static bool receiver_waits_first(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t sender = badged(endpoint, RIGHT_SEND, 1000);

    run_child(receive_once, 0, 10, endpoint, 0);
    /* Nothing to report before the message: let the child block first. */
    run_child(send_once, 7, 5, report, 0);
    SAME(wait_report(), 7);
    SAME(send(SYS_SEND, sender, 234), 0);
    SAME(wait_report(), 1234);
    return true;
}

static bool nb_send_drops(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    SAME(send(SYS_NB_SEND, endpoint, 1), 0); /* nobody receives: lost */
    run_child(receive_once, 0, 10, endpoint, 0);
    run_child(send_once, 7, 5, report, 0);
    SAME(wait_report(), 7);
    SAME(send(SYS_NB_SEND, endpoint, 2), 0);
    SAME(wait_report(), 2);
    return true;
}

/* Serves for ever: the answer is the word plus the badge plus one. */
static void server(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;)
        m = reply_receive(CHILD_ENDPOINT, 77, m.w[0] + m.badge + 1);
}

static bool call_and_answer(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t client = badged(endpoint, RIGHT_SEND, 500);
    struct message m;

    run_child(server, 0, 10, endpoint, 0);
    for (word_t i = 0; i < 5; i++) {
        m = call(client, 3, i);
        SAME(m.w[0], i + 501);
        SAME(m.badge, 0);
        SAME(message_label(m.info), 77);
        SAME(message_length(m.info), 1);
    }
    return true;
}

/* Clients and server of equal priority: both halves take the fastpath. */
static void caller(word_t count)
{
    word_t sum = 0;

    for (word_t i = 0; i < count; i++)
        sum += call(CHILD_ENDPOINT, 0, i).w[0];
    tell(sum);
    rest();
}

static bool many_clients(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t sum = 0;

    run_child(server, 0, 20, endpoint, 0);
    for (word_t i = 1; i <= 3; i++)
        run_child(caller, 10, 20, endpoint, i);
    for (word_t i = 1; i <= 3; i++)
        sum += wait_report();
    SAME(sum, 3 * (45 + 10) + 10 * (1 + 2 + 3));
    return true;
}

/* A server of lower priority than its clients: the general path. */
static bool low_priority_server(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(server, 0, 5, endpoint, 0);
    run_child(caller, 4, 20, endpoint, 100);
    SAME(wait_report(), 6 + 4 + 400);
    return true;
}

/* Receives, replies in a call of its own, receives again. */
static void plain_replier(word_t unused)
{
    struct message m;

    (void)unused;
    for (;;) {
        m = receive(CHILD_ENDPOINT);
        m.info = message_make(1, 0, 0, 0);
        m.w[0] += 9;
        syscall(SYS_REPLY, &m);
    }
}

static bool reply_alone(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    run_child(plain_replier, 0, 10, endpoint, 0);
    SAME(call(endpoint, 0, 1).w[0], 10);
    SAME(call(endpoint, 0, 2).w[0], 11);
    syscall(SYS_REPLY, &m); /* the first thread serves nobody */
    SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    return true;
}

/* Sends "length" words, and reports the answer. */
static void long_caller(word_t length)
{
    struct message m = { CHILD_ENDPOINT, message_make(length, 0, 0, 5), { 0, 0, 0, 0 } };
    word_t wrong = 0;

    for (word_t i = 0; i < MESSAGE_WORDS_MAX; i++) {
        if (i < 4)
            m.w[i] = pattern(i);
        else
            BUFFER[BUFFER_WORDS + i] = pattern(i);
    }
    syscall(SYS_CALL, &m);
    for (word_t i = 0; i < MESSAGE_WORDS_MAX; i++)
        wrong += (i < 4 ? m.w[i] : BUFFER[BUFFER_WORDS + i]) != ~pattern(i);
    tell(wrong << 16 | message_length(m.info));
    rest();
}

static void clear_buffer(void)
{
    for (word_t i = 0; i < IPC_BUFFER_BYTES / 4; i++)
        BUFFER[i] = 0;
}

static word_t wrong_words(const struct message *m, word_t length)
{
    word_t wrong = 0;

    for (word_t i = 0; i < length; i++)
        wrong += (i < 4 ? m->w[i] : BUFFER[BUFFER_WORDS + i]) != pattern(i);
    return wrong;
}

static bool full_length(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    run_child(long_caller, 120, 10, endpoint, 0);
    clear_buffer();
    m = receive(endpoint);
    SAME(message_length(m.info), 120);
    SAME(message_label(m.info), 5);
    SAME(wrong_words(&m, 120), 0);
    for (word_t i = 0; i < 120; i++) {
        if (i < 4)
            m.w[i] = ~pattern(i);
        else
            BUFFER[BUFFER_WORDS + i] = ~pattern(i);
    }
    m.info = message_make(120, 0, 0, 0);
    syscall(SYS_REPLY, &m);
    SAME(wait_report(), 120);
    return true;
}

static bool overlong_is_cut(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    run_child(long_caller, 127, 10, endpoint, 0);
    clear_buffer();
    m = receive(endpoint);
    SAME(message_length(m.info), 120);
    SAME(wrong_words(&m, 120), 0);
    for (word_t i = BUFFER_WORDS + 120; i < IPC_BUFFER_BYTES / 4; i++)
        SAME(BUFFER[i], 0);
    return true;
}

static bool words_beyond_length_stay(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    run_child(long_caller, 7, 10, endpoint, 0);
    clear_buffer();
    m = receive(endpoint);
    SAME(message_length(m.info), 7);
    SAME(wrong_words(&m, 7), 0);
    for (word_t i = 7; i < 120; i++)
        SAME(BUFFER[BUFFER_WORDS + i], 0);
    return true;
}

static void bare_receive(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    tell(message_length(m.info) << 8 | message_extra(m.info));
    rest();
}

static bool without_buffer(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = make_bare_child(bare_receive, 0, 10);
    struct message m = { endpoint, message_make(30, 1, 0, 0), { 1, 2, 3, 4 } };

    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    start(&child);
    BUFFER[BUFFER_CAPS] = endpoint;
    syscall(SYS_SEND, &m);
    SAME(m.badge, 0);
    SAME(wait_report(), 4 << 8);
    return true;
}

/* Senders are served in order of arrival, at any priority; where time is a capability, at one (test_wait_order.c). */
static bool queue_is_fair(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
#ifdef TIME_CONTEXTS
    static const word_t priorities[] = { 30, 30, 30 };
#else
    static const word_t priorities[] = { 30, 20, 25 };
#endif

    for (word_t i = 0; i < 3; i++) {
        run_child(send_once, i, priorities[i], endpoint, i + 1);
        run_child(send_once, 99, 2, report, 0); /* until that one has blocked */
        SAME(wait_report(), 99);
    }
    for (word_t i = 0; i < 3; i++) {
        struct message m = receive(endpoint);

        SAME(m.w[0], i);
        SAME(m.badge, i + 1);
    }
    return true;
}

/* Answer with a word and receive through a longer message: the general path. */
static bool answer_waiting_sender(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m;

    run_child(caller, 1, 20, endpoint, 1);
    run_child(caller, 1, 20, endpoint, 2);
    run_child(send_once, 99, 2, report, 0); /* until both have blocked */
    SAME(wait_report(), 99);
    m = receive(endpoint);
    SAME(m.badge, 1);
    m = reply_receive(endpoint, 0, 40); /* the second already waits */
    SAME(m.badge, 2);
    SAME(reply_receive(report, 0, 50).w[0], 40);
    SAME(wait_report(), 50);
    return true;
}

/* Several receivers: each message goes to the one that has waited longest. */
static bool receivers_in_turn(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    for (word_t i = 0; i < 3; i++)
        run_child(receive_once, 0, 30 - i, endpoint, i);
    run_child(send_once, 99, 2, report, 0); /* until all have blocked */
    SAME(wait_report(), 99);
    for (word_t i = 0; i < 3; i++) {
        SAME(send(SYS_SEND, endpoint, i * 10), 0);
        SAME(wait_report(), i * 10);
    }
    SAME(send(SYS_NB_SEND, endpoint, 77), 0); /* all were served */
    return true;
}

static void send_then_tell(word_t value)
{
    send(SYS_SEND, CHILD_ENDPOINT, value);
    tell(value);
    rest();
}

/* One system call wakes two threads, both more urgent than the server. */
static bool two_woken_at_once(void)
{
    static const word_t senders[] = { 40, 25 };

    for (word_t i = 0; i < 2; i++) {
        word_t endpoint = make(TYPE_ENDPOINT, 0);
        word_t first, second;

        run_child(caller, 1, 30, endpoint, 3);
        run_child(send_once, 99, 2, report, 0);
        SAME(wait_report(), 99);
        run_child(send_then_tell, 1000, senders[i], endpoint, 0);
        run_child(send_once, 98, 2, report, 0);
        SAME(wait_report(), 98);
        run_child(server, 0, 20, endpoint, 0);
        first = wait_report();
        second = wait_report();
        SAME(first, senders[i] > 30 ? 1000 : 4);
        SAME(second, senders[i] > 30 ? 4 : 1000);
    }
    return true;
}

/* Calls while something less urgent than itself, more than the server, is ready. */
static bool fastpath_respects_priority(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(server, 0, 10, endpoint, 0);
    run_child(send_once, 99, 2, report, 0);
    SAME(wait_report(), 99); /* the server waits */
    run_child(send_once, 1, 20, report, 0);
    run_child(caller, 1, 30, endpoint, 5);
    SAME(wait_report(), 1); /* before the server could answer */
    SAME(wait_report(), 6);
    return true;
}

/* The same for the answer: the caller is less urgent than a ready thread. */
static void busy_server(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;) {
        send(SYS_NB_SEND, CHILD_OTHER, 0); /* makes a thread of priority 20 ready */
        m = reply_receive(CHILD_ENDPOINT, 0, m.w[0]);
    }
}

static void on_signal(word_t value)
{
    receive(CHILD_ENDPOINT);
    tell(value);
    rest();
}

static bool answer_respects_priority(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = make(TYPE_NOTIFICATION, 0);
    struct child child = make_child(busy_server, 0, 30, 0);

    give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&child, CHILD_OTHER, notification, RIGHTS_ALL, 0);
    start(&child);
    run_child(on_signal, 2, 20, notification, 0);
    run_child(caller, 1, 10, endpoint, 0);
    SAME(wait_report(), 2);
    SAME(wait_report(), 0);
    return true;
}

/* Short calls that would meet a waiting server, were they permitted. */
static void forbidden_caller(word_t unused)
{
    struct message m;
    word_t right = 0;

    (void)unused;
    m = call(CHILD_OTHER, 0, 1); /* no right to send */
    right += m.badge == (SYSCALL_FAILED | ERROR_NO_RIGHT);
    m = call(CHILD_ENDPOINT | 1u << 20, 0, 1); /* outside the guard */
    right += m.badge == (SYSCALL_FAILED | ERROR_LOOKUP_FAILED);
    m = call(CHILD_ENDPOINT | 1u << 31, 0, 1);
    right += m.badge == (SYSCALL_FAILED | ERROR_LOOKUP_FAILED);
    m = call(CHILD_ENDPOINT, 0, 1);
    right += m.w[0] == 2;
    tell(right);
    rest();
}

static bool fastpath_checks(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = make_child(forbidden_caller, 0, 20, 0);

    run_child(server, 0, 20, endpoint, 0);
    give(&child, CHILD_ENDPOINT, endpoint, RIGHT_SEND, 0);
    give(&child, CHILD_OTHER, endpoint, RIGHT_RECEIVE, 0);
    start(&child);
    SAME(wait_report(), 4);
    return true;
}

/* Answers a call, but may not receive: the answer arrives, the receive fails. */
static void deaf_server(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    m = reply_receive(CHILD_OTHER, 0, m.w[0] + 1);
    tell(m.badge);
    rest();
}

static bool reply_receive_without_right(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child child = make_child(deaf_server, 0, 20, 0);

    give(&child, CHILD_ENDPOINT, endpoint, RIGHT_RECEIVE, 0);
    give(&child, CHILD_OTHER, endpoint, RIGHT_SEND, 0);
    start(&child);
    run_child(caller, 1, 20, endpoint, 0);
    SAME(wait_report(), SYSCALL_FAILED | ERROR_NO_RIGHT);
    SAME(wait_report(), 1);
    return true;
}

/* Five words between equals: one more than the fastpath takes. */
static void five_words(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, message_make(5, 0, 0, 0), { 1, 2, 3, 4 } };

    (void)unused;
    BUFFER[BUFFER_WORDS + 4] = 55;
    syscall(SYS_CALL, &m);
    tell(message_length(m.info) << 8 | BUFFER[BUFFER_WORDS + 4]);
    rest();
}

static void five_server(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    m.badge = CHILD_ENDPOINT;
    BUFFER[BUFFER_WORDS + 4] += 11;
    m.info = message_make(message_length(m.info), 0, 0, 0);
    syscall(SYS_REPLY_RECEIVE, &m);
}

static bool five_words_between_equals(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(five_server, 0, 20, endpoint, 0);
    run_child(five_words, 0, 20, endpoint, 0);
    SAME(wait_report(), 5 << 8 | 66);
    return true;
}

/* One answer per call; receiving again gives the call up. */
static bool one_answer_per_call(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, message_make(1, 0, 0, 0), { 5, 0, 0, 0 } };

    run_child(caller, 1, 20, endpoint, 0);
    receive(endpoint);
    syscall(SYS_REPLY, &m);
    SAME(m.badge, 0);
    syscall(SYS_REPLY, &m);
    SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    SAME(wait_report(), 5);

    run_child(caller, 1, 20, endpoint, 0);
    receive(endpoint);
    run_child(send_once, 6, 20, endpoint, 0);
    SAME(receive(endpoint).w[0], 6); /* no call: there is nothing to answer */
    syscall(SYS_REPLY, &m);
    SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    return true;
}

static bool wrong_kind(void)
{
    struct message m = receive(ROOT_TCB);
    word_t notification = badged(make(TYPE_NOTIFICATION, 0), RIGHT_RECEIVE, 1);

    SAME(send(SYS_SEND, notification, 0), SYSCALL_FAILED | ERROR_NO_RIGHT);
    SAME(receive(0x12345678).badge, SYSCALL_FAILED | ERROR_LOOKUP_FAILED);

    SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    SAME(message_label(m.info), ERROR_INVALID_CAPABILITY);
    SAME(send(SYS_SEND, ROOT_TCB, 0), SYSCALL_FAILED | ERROR_ILLEGAL_OPERATION);
    SAME(send(SYS_SEND, 4000, 0), SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    SAME(send(SYS_SEND, 0xffffffff, 0), SYSCALL_FAILED | ERROR_LOOKUP_FAILED);
    SAME(call(0x80000001, 0, 0).badge, SYSCALL_FAILED | ERROR_LOOKUP_FAILED);
    return true;
}

/* ---- polling ------------------------------------------------------------ */

static bool polls(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = make(TYPE_NOTIFICATION, 0);
    word_t deaf = badged(endpoint, RIGHT_SEND, 1);
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    SAME(poll(endpoint, &m), ERROR_NOTHING);
    SAME(message_label(m.info), ERROR_NOTHING);
    SAME(poll(notification, &m), ERROR_NOTHING);
    SAME(poll(deaf, &m), ERROR_NO_RIGHT);
    SAME(poll(ROOT_TCB, &m), ERROR_INVALID_CAPABILITY);
    SAME(poll(0x12345678, &m), ERROR_LOOKUP_FAILED);
    SAME(send(SYS_SEND, badged(notification, RIGHTS_ALL, 6), 0), 0);
    SAME(poll(notification, &m), ERROR_NONE);
    SAME(m.badge, 6);
    SAME(poll(notification, &m), ERROR_NOTHING);
    run_child(send_once, 7, 20, endpoint, 3);
    let_others_run();
    SAME(poll(endpoint, &m), ERROR_NONE);
    SAME(m.badge, 3);
    SAME(m.w[0], 7);
    SAME(poll(endpoint, &m), ERROR_NOTHING);
    run_child(receive_once, 0, 20, endpoint, 0); /* who waits to receive is nothing to receive */
    let_others_run();
    SAME(poll(endpoint, &m), ERROR_NOTHING);
    SAME(send(SYS_SEND, endpoint, 8), 0);
    SAME(wait_report(), 8);
    return true;
}

/* A call is given up for a message only. */
static bool a_poll_keeps_the_call(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { 0, message_make(1, 0, 0, 0), { 5, 0, 0, 0 } };

    run_child(caller, 1, 20, endpoint, 0);
    receive(endpoint);
    SAME(poll(endpoint, &m), ERROR_NOTHING);
    m = (struct message){ 0, message_make(1, 0, 0, 0), { 5, 0, 0, 0 } };
    syscall(SYS_REPLY, &m);
    SAME(m.badge, 0);
    SAME(wait_report(), 5);

    run_child(caller, 1, 20, endpoint, 0);
    receive(endpoint);
    run_child(send_once, 6, 20, endpoint, 0);
    let_others_run();
    SAME(poll(endpoint, &m), ERROR_NONE);
    syscall(SYS_REPLY, &m);
    SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    return true;
}

const struct test ipc_tests[] = {
    { send_crosses, "send crosses address spaces, with its badge" },
    { receiver_waits_first, "a receiver blocks until a message comes" },
    { nb_send_drops, "a non-blocking send is lost without a receiver and arrives with one" },
    { call_and_answer, "call and reply-and-receive give each caller its own answer" },
    { many_clients, "one server answers three clients through the fastpath" },
    { low_priority_server, "a server less urgent than its client answers too" },
    { reply_alone, "reply alone answers once; without a caller it is an error" },
    { full_length, "120 words arrive both ways" },
    { overlong_is_cut, "a length over 120 is cut to 120 and nothing else is written" },
    { words_beyond_length_stay, "words beyond the length are not written" },
    { without_buffer, "a thread without a buffer receives four words and no capability" },
    { queue_is_fair, "senders are received in order of arrival" },
    { answer_waiting_sender, "reply-and-receive takes a sender that already waits" },
    { receivers_in_turn, "messages go to receivers in order of arrival" },
    { two_woken_at_once, "of two threads that one call wakes the more urgent runs first" },
    { fastpath_respects_priority, "a call does not pass over a ready thread above the server" },
    { answer_respects_priority, "an answer does not pass over a ready thread above the caller" },
    { fastpath_checks, "short calls need the right to send and the whole address" },
    { reply_receive_without_right, "reply-and-receive without the right to receive still answers" },
    { five_words_between_equals, "five words travel between threads of equal priority" },
    { one_answer_per_call, "a call is answered once, and given up by receiving again" },
    { polls, "a poll takes the message or signal that is there, and does not wait" },
    { a_poll_keeps_the_call, "a poll that finds nothing gives no call up" },
    { wrong_kind, "sending to and receiving from the wrong thing are errors" },
    { NULL, NULL },
};
