/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benchmark: two threads in two address spaces, one calling and one answering.
 * Between two rounds no other system call is made, so that a recording of the kernel
 * shows the rounds as two paths that alternate; bench/ipc.py finds and times them.
 */
#include "tests.h"

#define ROUNDS 64
#define CLIENT 10 /* priority; of the server too: the fastpath switches between equals */

/* What one round carries each way; the server answers with word 0 plus 1. */
struct load {
    word_t length, caps;
};

/* Words that travel in registers, words in buffers, and with capabilities as badges. */
static const struct load loads[] = { { 4, 0 }, { 5, 0 }, { 120, 0 }, { 120, 3 } };

static void name_caps(void)
{
    for (word_t i = 0; i < EXTRA_CAPS_MAX; i++)
        BUFFER[BUFFER_CAPS + i] = CHILD_ENDPOINT;
}

static void server(word_t which)
{
    const struct load *load = &loads[which];
    struct message m = { CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };

    syscall(SYS_RECEIVE, &m);
    for (;;) {
        m.w[0]++;
        m.badge = CHILD_ENDPOINT;
        m.info = message_make(load->length, 0, 0, 0);
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

static void client(word_t which)
{
    const struct load *load = &loads[which];
    word_t wrong = 0;

    for (word_t round = 0; round < ROUNDS; round++) {
        struct message m = { CHILD_ENDPOINT, message_make(load->length, load->caps, 0, 0),
                             { round, 0, 0, 0 } };

        name_caps(); /* badges took their places */
        syscall(SYS_CALL, &m);
        wrong += m.w[0] != round + 1 || message_length(m.info) != load->length;
    }
    tell(wrong);
    rest();
}

static bool rounds(word_t which)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    run_child(server, which, CLIENT, endpoint, 0);
    run_child(client, which, CLIENT, endpoint, 1);
    SAME(wait_report(), 0);
    return true;
}

static bool in_registers(void)
{
    return rounds(0);
}

static bool in_buffers(void)
{
    return rounds(1);
}

static bool full(void)
{
    return rounds(2);
}

static bool full_with_caps(void)
{
    return rounds(3);
}

static const struct test pingpong_tests[] = {
    { in_registers, "call and answer with 4 words, by the fastpath" },
    { in_buffers, "call and answer with 5 words, by the general path" },
    { full, "call and answer with 120 words" },
    { full_with_caps, "call with 120 words and 3 capabilities, answer with 120 words" },
    { NULL, NULL },
};

const struct test *const suite[] = { pingpong_tests, NULL };
