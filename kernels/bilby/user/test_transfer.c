/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: capabilities that travel with messages. */
#include "tests.h"

static word_t receive_index; /* the first thread's receive slot */

static void set_receive_slot(word_t root, word_t index, word_t depth)
{
    BUFFER[BUFFER_RECEIVE_ROOT] = root;
    BUFFER[BUFFER_RECEIVE_INDEX] = index;
    BUFFER[BUFFER_RECEIVE_DEPTH] = depth;
}

static void fresh_receive_slot(void)
{
    receive_index = new_slots(1);
    set_receive_slot(ROOT_CNODE, receive_index, 32);
}

/* Sends the capabilities at CHILD_FREE and following through CHILD_ENDPOINT. */
static void send_caps(word_t count)
{
    struct message m = { CHILD_ENDPOINT, message_make(1, count, 0, 0), { 31, 0, 0, 0 } };

    for (word_t i = 0; i < count; i++)
        BUFFER[BUFFER_CAPS + i] = CHILD_FREE + i;
    syscall(SYS_SEND, &m);
    tell(m.badge);
    rest();
}

/*
 * A child that sends "count" capabilities, those in caps (null: none in that
 * slot); the first thread receives.
 */
static struct message transfer(const word_t *caps, word_t count, word_t endpoint,
                               word_t rights)
{
    struct child child = make_child(send_caps, count, 10, 0);

    give(&child, CHILD_ENDPOINT, endpoint, rights, 9);
    for (word_t i = 0; i < count; i++)
        if (caps[i] != 0)
            give(&child, CHILD_FREE + i, caps[i], RIGHTS_ALL, 0);
    start(&child);
    return receive(endpoint);
}

/* Everything arrived but no capability, and the sender was not harmed. */
static bool message_without_cap(struct message m)
{
    SAME(m.w[0], 31);
    SAME(m.badge, 9);
    SAME(message_extra(m.info), 0);
    SAME(message_unwrapped(m.info), 0);
    SAME(wait_report(), 0);
    return true;
}

static bool cap_arrives(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = badged(make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 64);
    struct message m;

    fresh_receive_slot();
    m = transfer(&notification, 1, endpoint, RIGHTS_ALL);
    SAME(message_extra(m.info), 1);
    SAME(message_unwrapped(m.info), 0);
    SAME(send(SYS_SEND, receive_index, 0), 0); /* use the received capability */
    SAME(receive(notification).badge, 64);
    SAME(wait_report(), 0);
    return true;
}

static bool own_endpoint_unwraps(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t caps[] = { badged(endpoint, RIGHT_SEND, 0xbadbad), 0, 0 };
    struct message m;

    caps[1] = make(TYPE_NOTIFICATION, 0);
    caps[2] = badged(endpoint, RIGHT_SEND, 0x77);
    fresh_receive_slot();
    m = transfer(caps, 3, endpoint, RIGHTS_ALL);
    SAME(message_extra(m.info), 3);
    SAME(message_unwrapped(m.info), 5);
    SAME(BUFFER[BUFFER_CAPS], 0xbadbad);
    SAME(BUFFER[BUFFER_CAPS + 2], 0x77);
    SAME(send(SYS_SEND, receive_index, 0), 0);
    SAME(receive(caps[1]).badge, 0);
    SAME(wait_report(), 0);
    return true;
}

static bool only_one_slot(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t caps[2];
    struct message m;

    caps[0] = make(TYPE_NOTIFICATION, 0);
    caps[1] = make(TYPE_NOTIFICATION, 0);
    fresh_receive_slot();
    m = transfer(caps, 2, endpoint, RIGHTS_ALL);
    SAME(message_extra(m.info), 1);
    SAME(wait_report(), 0);
    return true;
}

static bool occupied_slot(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cap = make(TYPE_NOTIFICATION, 0);

    set_receive_slot(ROOT_CNODE, cap, 32);
    return message_without_cap(transfer(&cap, 1, endpoint, RIGHTS_ALL));
}

static bool bad_receive_root(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cap = make(TYPE_NOTIFICATION, 0);

    set_receive_slot(0xdead0000, new_slots(1), 32);
    if (!message_without_cap(transfer(&cap, 1, endpoint, RIGHTS_ALL)))
        return false;
    set_receive_slot(cap, new_slots(1), 32); /* not a CNode */
    return message_without_cap(transfer(&cap, 1, endpoint, RIGHTS_ALL));
}

static bool bad_receive_depth(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cap = make(TYPE_NOTIFICATION, 0);
    static const word_t depths[] = { 0, 31, 33, 0xffffffff };

    for (word_t i = 0; i < 4; i++) {
        set_receive_slot(ROOT_CNODE, new_slots(1), depths[i]);
        if (!message_without_cap(transfer(&cap, 1, endpoint, RIGHTS_ALL)))
            return false;
    }
    return true;
}

static bool no_grant_no_cap(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cap = make(TYPE_NOTIFICATION, 0);

    fresh_receive_slot();
    return message_without_cap(transfer(&cap, 1, endpoint, RIGHT_SEND));
}

static bool missing_and_uncopyable(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t cap = 0; /* an empty slot of the sender */

    fresh_receive_slot();
    return message_without_cap(transfer(&cap, 1, endpoint, RIGHTS_ALL));
}

/* The sender waits first: its rights are those it had then. */
static bool no_grant_when_waiting(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    for (word_t may = 0; may < 2; may++) {
        struct child child = make_child(send_caps, 1, 10, 0);
        struct message m;

        give(&child, CHILD_ENDPOINT, endpoint, may ? RIGHTS_ALL : RIGHT_SEND, 9);
        give(&child, CHILD_FREE, make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 0);
        start(&child);
        run_child(tells, 3, 5, 0, 0);
        SAME(wait_report(), 3); /* the sender has blocked */
        fresh_receive_slot();
        m = receive(endpoint);
        SAME(message_extra(m.info), may);
        SAME(wait_report(), 0);
    }
    return true;
}

/* A server that hands its notification to every caller, between equals. */
static void giving_server(word_t unused)
{
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    m = reply_receive(CHILD_OTHER, 0, 0); /* first answer: none, by the fastpath */
    m.badge = CHILD_OTHER;
    m.info = message_make(0, 1, 0, 0);
    BUFFER[BUFFER_CAPS] = CHILD_FREE;
    syscall(SYS_REPLY_RECEIVE, &m);
}

static void asks_twice(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    (void)unused;
    set_receive_slot(CHILD_CNODE, CHILD_FREE, 32);
    syscall(SYS_CALL, &m);
    m.badge = CHILD_ENDPOINT;
    m.info = 0;
    syscall(SYS_CALL, &m);
    tell(message_extra(m.info));
    rest();
}

/* The right to grant in an answer follows from the receive that the call came through. */
static bool answer_rights_follow_receive(void)
{
    for (word_t may = 0; may < 2; may++) {
        word_t endpoint = make(TYPE_ENDPOINT, 0);
        struct child child = make_child(giving_server, 0, 20, 0);

        give(&child, CHILD_ENDPOINT, endpoint, may ? RIGHT_RECEIVE : RIGHTS_ALL, 0);
        give(&child, CHILD_OTHER, endpoint, may ? RIGHTS_ALL : RIGHT_RECEIVE, 0);
        give(&child, CHILD_FREE, make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 0);
        start(&child);
        run_child(asks_twice, 0, 20, endpoint, 0);
        SAME(wait_report(), may);
    }
    return true;
}

/* A short call with a capability, to a waiting server of equal priority. */
static void takes_cap(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    (void)unused;
    set_receive_slot(CHILD_CNODE, CHILD_FREE, 32);
    syscall(SYS_RECEIVE, &m);
    tell(message_extra(m.info));
    rest();
}

static void calls_with_cap(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, message_make(1, 1, 0, 0), { 0, 0, 0, 0 } };

    (void)unused;
    BUFFER[BUFFER_CAPS] = CHILD_PARK;
    syscall(SYS_CALL, &m);
}

static bool short_call_with_cap(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(takes_cap, 0, 20, endpoint, 0);
    run_child(calls_with_cap, 0, 20, endpoint, 0);
    SAME(wait_report(), 1);
    return true;
}

/* Asks for a capability and uses it. */
static void ask(word_t unused)
{
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    (void)unused;
    set_receive_slot(CHILD_CNODE, CHILD_FREE, 32);
    syscall(SYS_CALL, &m);
    tell(message_extra(m.info));
    tell(send(SYS_SEND, CHILD_FREE, 0));
    rest();
}

static bool answer_with_cap(word_t server_end, word_t *client)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    word_t notification = badged(make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 8);
    word_t own = badged(endpoint, server_end, 0);
    struct message m;

    run_child(ask, 0, 10, endpoint, 0);
    m = receive(own);
    m.info = message_make(0, 1, 0, 0);
    BUFFER[BUFFER_CAPS] = notification;
    syscall(SYS_REPLY, &m);
    client[0] = wait_report();
    client[1] = wait_report();
    return true;
}

static bool answer_carries_cap(void)
{
    word_t client[2];

    answer_with_cap(RIGHTS_ALL, client);
    SAME(client[0], 1);
    SAME(client[1], 0);
    answer_with_cap(RIGHT_SEND | RIGHT_RECEIVE, client); /* no right to grant */
    SAME(client[0], 0);
    SAME(client[1], SYSCALL_FAILED | ERROR_INVALID_CAPABILITY);
    return true;
}

/* A full exchange: 120 words and three capabilities each way in one system call. */
static void full_client(word_t which)
{
    struct message m = { CHILD_ENDPOINT, message_make(120, 3, 0, which), { 1, 2, 3, 4 } };
    word_t wrong = 0;

    set_receive_slot(CHILD_CNODE, CHILD_FREE + 8, 32);
    for (word_t i = 0; i < 3; i++)
        BUFFER[BUFFER_CAPS + i] = CHILD_FREE + i;
    for (word_t i = 4; i < 120; i++)
        BUFFER[BUFFER_WORDS + i] = i * which;
    syscall(SYS_CALL, &m);
    for (word_t i = 4; i < 120; i++)
        wrong += BUFFER[BUFFER_WORDS + i] != i + which;
    tell(wrong << 8 | message_extra(m.info) << 4 | message_unwrapped(m.info));
    rest();
}

static bool full_exchange(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct message m = { endpoint, 0, { 0, 0, 0, 0 } };

    for (word_t which = 1; which <= 2; which++) {
        struct child child = make_child(full_client, which, 10, 0);

        give(&child, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, which);
        give(&child, CHILD_FREE, endpoint, RIGHTS_ALL, 100 + which);
        give(&child, CHILD_FREE + 1, endpoint, RIGHTS_ALL, 200 + which);
        give(&child, CHILD_FREE + 2, make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 300 + which);
        start(&child);
    }
    fresh_receive_slot();
    syscall(SYS_RECEIVE, &m);
    for (word_t which = 1; which <= 2; which++) {
        SAME(m.badge, which);
        SAME(message_length(m.info), 120);
        SAME(message_extra(m.info), 3);
        SAME(message_unwrapped(m.info), 3);
        SAME(BUFFER[BUFFER_CAPS], 100 + which);
        SAME(BUFFER[BUFFER_CAPS + 1], 200 + which);
        for (word_t i = 4; i < 120; i++)
            SAME(BUFFER[BUFFER_WORDS + i], i * which);
        SAME(send(SYS_SEND, receive_index, 0), 0);
        fresh_receive_slot();
        for (word_t i = 0; i < 3; i++)
            BUFFER[BUFFER_CAPS + i] = park;
        for (word_t i = 4; i < 120; i++)
            BUFFER[BUFFER_WORDS + i] = i + which;
        m.badge = which == 1 ? endpoint : report;
        m.info = message_make(120, 3, 0, 0);
        syscall(SYS_REPLY_RECEIVE, &m);
    }
    SAME(m.w[0], 1 << 4); /* an answer does not unwrap: one capability per receive slot */
    SAME(wait_report(), 1 << 4);
    return true;
}

const struct test transfer_tests[] = {
    { cap_arrives, "a capability arrives in the receive slot and can be used" },
    { own_endpoint_unwraps, "capabilities to the endpoint itself arrive as badges" },
    { only_one_slot, "of two capabilities the first takes the receive slot" },
    { occupied_slot, "an occupied receive slot: the message arrives, the capability does not" },
    { bad_receive_root, "a receive root that is missing or no CNode: the same" },
    { bad_receive_depth, "a receive depth of 0, too little, over 32: the same" },
    { no_grant_no_cap, "without the right to grant: the same" },
    { missing_and_uncopyable, "an empty slot of the sender: the same" },
    { no_grant_when_waiting, "a waiting sender keeps the right to grant that it came with" },
    { short_call_with_cap, "a short call between equals carries a capability" },
    { answer_rights_follow_receive, "an answer may grant if the call was received so" },
    { answer_carries_cap, "an answer carries a capability if the server may grant" },
    { full_exchange, "reply-and-receive with 120 words and 3 capabilities both ways" },
    { NULL, NULL },
};
