/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests: system calls with every argument wrong.  Error codes, and the kernel goes on. */
#include "tests.h"

#define ROUNDS 4000
#ifdef TIME_CONTEXTS
#define FIRST_UNKNOWN (SYS_NB_SEND_RECEIVE + 1)
#define FEWEST 16 /* the same numbers make other objects */
#else
#define FIRST_UNKNOWN (SYS_POLL + 1)
#define FEWEST 40
#endif

static bool unknown_calls(void)
{
    static const word_t numbers[] = { 0, FIRST_UNKNOWN, FIRST_UNKNOWN + 1, 255, 0x7fffffff, 0x80000000, 0xffffffff };

    for (word_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct message m = { 1, 0xffffffff, { 1, 2, 3, 4 } };

        syscall(numbers[i], &m);
        SAME(m.badge, SYSCALL_FAILED | ERROR_INVALID_SYSCALL);
        SAME(m.w[3], 4);
    }
    return true;
}

/* Every label on every kind of object, without words and without capabilities. */
static bool empty_invocations(void)
{
    word_t objects[] = {
        ROOT_CNODE, ROOT_UNTYPED, ROOT_PAGE_TABLE, ROOT_PAGE_DIRECTORY, ROOT_FRAME_1M,
        ROOT_IRQ_CONTROL, ROOT_TCB,
    };

    for (word_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        for (word_t label = 0; label < 30; label++) {
            word_t error;

            if (label == LABEL_TCB_SUSPEND || label == LABEL_FRAME_UNMAP
                || label == LABEL_PAGE_TABLE_UNMAP || label == LABEL_FRAME_ADDRESS)
                continue; /* they take no arguments */
            error = invoke(objects[i], label, NULL, 0, NULL, 0);

            SAME(error == ERROR_TRUNCATED || error == ERROR_ILLEGAL_OPERATION, true);
        }
        SAME(invoke(objects[i], 0xfffff, NULL, 0, NULL, 0), ERROR_ILLEGAL_OPERATION);
    }
    return true;
}

static bool overlong_invocation(void)
{
    word_t words[127] = { 0 };

    SAME(invoke(ROOT_UNTYPED, LABEL_UNTYPED_RETYPE, words, 121, NULL, 0), ERROR_RANGE);
    return true;
}

/* More words than registers, or capabilities, without a buffer. */
static void bare_caller(word_t unused)
{
    struct message m = { CHILD_OTHER, message_make(6, 0, 0, LABEL_UNTYPED_RETYPE), { 0 } };
    word_t errors;

    (void)unused;
    syscall(SYS_CALL, &m);
    errors = message_label(m.info);
    m.badge = CHILD_OTHER;
    m.info = message_make(2, 1, 0, LABEL_UNTYPED_RETYPE);
    syscall(SYS_CALL, &m);
    tell(errors << 8 | message_label(m.info));
    rest();
}

static bool invocation_without_buffer(void)
{
    struct child child = make_bare_child(bare_caller, 0, 10);

    give(&child, CHILD_OTHER, make(TYPE_TCB, 0), RIGHTS_ALL, 0);
    start(&child);
    SAME(wait_report(), ERROR_TRUNCATED << 8 | ERROR_TRUNCATED);
    return true;
}

/* ---- random invocations ----------------------------------------------------- */

static word_t seed;

static word_t random(void)
{
    seed ^= seed << 13; /* xorshift: seed is never 0 */
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

/* Mostly small numbers, sometimes anything: a slot, a depth, a size, an address. */
static word_t argument(void)
{
    static const word_t odd[] = { 0, 1, 31, 32, 33, 0x001f0000, 0x30000000, 0x30100000,
                                  0xefffffff, 0xf0000000, 0xffffffff, 0x80000000 };
    word_t kind = random() & 7;

    if (kind < 3)
        return CHILD_FREE + (random() & 63);
    if (kind < 5)
        return 32;
    if (kind < 6)
        return random() & 15;
    if (kind < 7)
        return odd[(random() & 0xff) * 12 >> 8];
    return random();
}

/* The capabilities of the child from CHILD_FREE on, and their labels. */
static const struct { word_t type, label, labels; } holdings[] = {
    { 0, LABEL_CNODE_COPY, 2 },          /* its own CNode */
    { 0, LABEL_FRAME_MAP, 1 },           /* its page directory */
    { 0, LABEL_TCB_CONFIGURE, 4 },       /* itself */
    { TYPE_UNTYPED, LABEL_UNTYPED_RETYPE, 1 },
    { TYPE_TCB, LABEL_TCB_CONFIGURE, 4 },
    { TYPE_PAGE_TABLE, LABEL_PAGE_TABLE_MAP, 1 },
    { TYPE_PAGE_TABLE, LABEL_PAGE_TABLE_MAP, 1 },
    { TYPE_FRAME_4K, LABEL_FRAME_MAP, 1 },
    { TYPE_FRAME_4K, LABEL_FRAME_MAP, 1 },
    { TYPE_FRAME_4K, LABEL_FRAME_MAP, 1 },
    { TYPE_FRAME_64K, LABEL_FRAME_MAP, 1 },
    { TYPE_CNODE, LABEL_CNODE_COPY, 2 },
    { TYPE_UNTYPED, LABEL_UNTYPED_RETYPE, 1 },
    { TYPE_FRAME_4K, LABEL_FRAME_MAP, 1 },
    { TYPE_CNODE, LABEL_CNODE_COPY, 2 },
    { TYPE_TCB, LABEL_TCB_CONFIGURE, 4 },
};
#define HOLDINGS (sizeof(holdings) / sizeof(holdings[0]))

static void random_message(struct message *m)
{
    word_t held = random() & 15;
    word_t label = holdings[held].label + (random() & (holdings[held].labels - 1));

    for (word_t i = 0; i < 24; i++)
        BUFFER[BUFFER_WORDS + i] = argument();
    for (word_t i = 0; i < 3; i++)
        BUFFER[BUFFER_CAPS + i] = (random() & 3) ? CHILD_FREE + (random() & 1)
                                                 : CHILD_FREE + (random() & 31);
    for (word_t i = 0; i < 4; i++)
        m->w[i] = argument();
    if ((random() & 7) == 0)
        label = random() & 7; /* moving and deleting, which could end the test: test_delete.c */
    if (held == 3 || held == 12) /* types are small numbers, and so are sizes */
        m->w[0] = random() & 15, m->w[1] = random() & 7, m->w[3] = 0;
    m->badge = CHILD_FREE + held;
    if ((random() & 31) == 0)
        m->badge = random() | 0x100; /* not the endpoints, on which it would wait */
    m->info = message_make(random() & 31, random() & 3, 0, label);
    if ((random() & 15) == 0)
        m->info = random();
}

static void hostile(word_t start_seed)
{
    word_t done = 0;
    word_t bad = 0;
    struct message m;

    seed = start_seed;
    for (word_t i = 0; i < ROUNDS; i++) {
        random_message(&m);
        syscall(SYS_CALL, &m);
        bad += message_label(m.info) > ERROR_NO_NUMBER;
        done += m.badge == 0 && message_label(m.info) == 0;
    }
    tell(bad << 16 | done);
    rest();
}

static bool random_invocations(void)
{
    for (word_t round = 1; round <= 4; round++) {
        struct child child = make_child(hostile, round * 7919, 10, 0);
        word_t result;

        give(&child, CHILD_FREE, child.cnode, RIGHTS_ALL, 0);
        give(&child, CHILD_FREE + 1, child.directory, RIGHTS_ALL, 0);
        give(&child, CHILD_FREE + 2, child.tcb, RIGHTS_ALL, 0);
        for (word_t i = 3; i < HOLDINGS; i++)
            require(make_error(holdings[i].type, holdings[i].type == TYPE_UNTYPED ? 18 : 4,
                               child.cnode, CHILD_FREE + i), "hostile holdings");
        start(&child);
        result = wait_report();
        SAME(result >> 16, 0);
        if ((result & 0xffff) < FEWEST) /* too few succeed: it tests nothing */
            SAME(result & 0xffff, FEWEST);
    }
    return true;
}

const struct test hostile_tests[] = {
    { unknown_calls, "unknown system calls are refused" },
    { empty_invocations, "every operation without its arguments is refused on every object" },
    { overlong_invocation, "an invocation with more than 120 words is refused" },
    { invocation_without_buffer, "words or capabilities beyond registers need a buffer" },
    { random_invocations, "16000 random invocations return error codes and harm nobody" },
    { NULL, NULL },
};
