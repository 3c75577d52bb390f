/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server rollback, section 5.2.4 of "Mixed-criticality support in a high-assurance, general-purpose
 * microkernel": a passive server encrypts on its clients' time.  When a client's budget is used up
 * in the middle of a request, the server's timeout handler answers the client, and sends the server
 * back to where it waits.
 *
 * The server's state is the last block of a chain, of which there are two: the good one, and one
 * that it works on.  So nothing has to be undone: who begins anew begins with the good one.
 *
 * To reach the place where it waits the server needs time, and the client has none.  So the handler,
 * which controls budgets, raises the client's for that long.  The server signals when it waits again.
 */
#include "tests.h"
#include "work.h"
#include "aes_cipher.h"

#define SHARED_ADDRESS 0x001fa000u
#define HANDLES 220 /* priorities */
#define SERVES  200
#define ASKS    10

#define BUDGET    (4 * MILLISECOND)   /* of a client that asks for too much */
#define PERIOD    (400 * MILLISECOND)
#define EMERGENCY (BUDGET_LEAST + MILLISECOND)
#define ENOUGH    (300 * MILLISECOND)
#define FEW       200    /* blocks of a request */
#define MANY      20000
#define ROLLBACKS 12     /* as the paper has */
#define CLIENTS   3      /* their badges: 1 and 2 */

/* Slots of the server and of the handler.  The handler has schedule control where the first thread had it. */
#define SERVER_READY   CHILD_OTHER
#define HANDLER_SERVER CHILD_OTHER
#define HANDLER_KEPT   (CHILD_OTHER + 1)
#define HANDLER_CONTEXTS CHILD_FREE /* and the badge of the client */

/* Labels of answers, and the reports of the handler. */
enum { SERVED, OUT_OF_TIME, SUSPENDED = 99 };

enum policy { ROLL_BACK, RAISE, SUSPEND };

struct block {
    word_t w[4];
};

struct order {
    word_t requests, blocks, budget;
    struct block answer; /* the last one */
    word_t late;         /* so many requests were out of time */
};

struct shared {
    volatile struct block chain[2];
    volatile word_t good;     /* which of the two */
    volatile word_t client;   /* whose request is served */
    volatile word_t timeouts, errors;
    volatile struct order orders[CLIENTS];
    struct figure rollback;
};

extern char main_stack_top[];

#define SEEN ((struct shared *)SHARED_ADDRESS) /* by children */

static struct aes_key key; /* children have it as it was when they were made */

/* ---- the server ----------------------------------------------------------------------------- */

/* So many blocks of a chain, each with the same text. */
static void extend(struct block *chain, const struct block *text, word_t blocks)
{
    while (blocks-- != 0) {
        for (word_t i = 0; i < 4; i++)
            chain->w[i] ^= text->w[i];
        aes_encrypt(&key, (byte *)chain->w);
    }
}

static void serve_request(struct message *m)
{
    struct shared *state = SEEN;
    struct block *good = (struct block *)&state->chain[state->good];
    struct block *dirty = (struct block *)&state->chain[!state->good];
    struct block text;

    state->client = m->badge;
    for (word_t i = 0; i < 4; i++)
        text.w[i] = m->w[i];
    *dirty = *good;
    extend(dirty, &text, message_label(m->info));
    state->good = !state->good; /* one store: it is done, or it is not */
    for (word_t i = 0; i < 4; i++)
        m->w[i] = dirty->w[i];
    m->info = message_make(4, 0, 0, SERVED);
}

/* It begins here anew after each rollback: nothing but "good" counts. */
static void serves(word_t unused)
{
    struct message m = { 0, 0, { 0, 0, 0, 0 } };

    (void)unused;
    signal_receive(SERVER_READY, CHILD_ENDPOINT, &m);
    for (;;) {
        serve_request(&m);
        m.badge = CHILD_ENDPOINT;
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

/* ---- the handler ---------------------------------------------------------------------------- */

static ticks_t began;   /* the rollback that is under way */
static word_t rolled;   /* for this client; 0: none is */

static void note_error(word_t error)
{
    if (error != ERROR_NONE)
        SEEN->errors++;
}

static void set_budget(word_t client, word_t budget)
{
    note_error(context_configure(HANDLER_CONTEXTS + client, budget, PERIOD));
}

/* Answers the client as if it were the server, then sends the server back. */
static void roll_back(struct message *m)
{
    began = clock_now();
    rolled = SEEN->client;
    note_error(tcb_save_caller(HANDLER_SERVER, CHILD_CNODE, HANDLER_KEPT, 32));
    note_error(cnode_swap_caller(CHILD_CNODE, HANDLER_KEPT, 32));
    m->info = message_make(0, 0, 0, OUT_OF_TIME);
    syscall(SYS_REPLY, m);
    set_budget(rolled, SEEN->orders[rolled].budget + EMERGENCY);
    note_error(cnode_swap_caller(CHILD_CNODE, HANDLER_KEPT, 32));
    m->info = message_make(2, 0, 0, 0);
    m->w[0] = (word_t)serves;
    m->w[1] = (word_t)main_stack_top;
}

/* The server waits. */
static void end_rollback(void)
{
    if (rolled == 0)
        return;
    figure_add(&SEEN->rollback, (word_t)(clock_now() - began));
    set_budget(rolled, SEEN->orders[rolled].budget);
    rolled = 0;
}

/* Write the answer to the timeout into the message. */
static void handle_timeout(enum policy policy, struct message *m)
{
    SEEN->timeouts++;
    if (message_label(m->info) != FAULT_TIMEOUT || m->w[3] != TIMEOUT_BUDGET)
        SEEN->errors++;
    if (policy == ROLL_BACK) {
        roll_back(m);
        return;
    }
    m->info = message_make(0, 0, 0, 0);
    if (policy == RAISE) {
        set_budget(SEEN->client, ENOUGH);
        return;
    }
    note_error(tcb_suspend(HANDLER_SERVER));
    tell(SUSPENDED);
}

static void handles(word_t policy)
{
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        word_t number = SYS_REPLY_RECEIVE;

        if (m.badge & BOUND_SIGNAL) {
            end_rollback();
            number = SYS_RECEIVE;
        } else {
            handle_timeout(policy, &m);
        }
        m.badge = CHILD_ENDPOINT;
        syscall(number, &m);
    }
}

/* ---- clients ---------------------------------------------------------------------------------- */

static void asks(word_t which)
{
    volatile struct order *order = &SEEN->orders[which];
    word_t late = 0;

    for (word_t i = 0; i < order->requests; i++) {
        struct message m = { CHILD_ENDPOINT, message_make(4, 0, 0, order->blocks),
                             { which, 2, 3, 4 } };

        syscall(SYS_CALL, &m);
        late += message_label(m.info) == OUT_OF_TIME;
        for (word_t j = 0; j < 4; j++)
            order->answer.w[j] = m.w[j];
    }
    order->late = late;
    tells(which);
}

/* ---- the first thread ------------------------------------------------------------------------- */

static struct shared *shared;
static word_t shared_frame, endpoint;
static struct child server, handler, clients[CLIENTS];
static struct block expected; /* the chain, of the requests that are served to the end */

static void share_with(const struct child *child)
{
    require(frame_map(copy_of(shared_frame), child->directory, SHARED_ADDRESS,
                      RIGHT_READ | RIGHT_WRITE, 0), "shared frame");
}

static void make_server(enum policy policy)
{
    word_t told = make(TYPE_ENDPOINT, 0), ready = make(TYPE_NOTIFICATION, 0);

    server = make_child(serves, 0, SERVES, 0);
    handler = make_child(handles, policy, HANDLES, 0);
    share_with(&server);
    share_with(&handler);
    give(&server, CHILD_ENDPOINT, endpoint, RIGHT_RECEIVE, 0);
    give(&server, SERVER_READY, ready, RIGHT_SEND, 1);
    give(&handler, CHILD_ENDPOINT, told, RIGHT_RECEIVE, 0);
    give(&handler, HANDLER_SERVER, server.tcb, RIGHTS_ALL, 0);
    require(tcb_bind(handler.tcb, ready), "bound notification");
    require(tcb_set_timeout(server.tcb, told), "timeout handler");
    start(&handler);
    start(&server);
    let_others_run();
    make_passive(&server); /* Figure 5: it has initialised itself */
}

static void begin(enum policy policy)
{
    static const byte bytes[AES_BYTES] = { "sixteen letters" };

    shared_frame = make(TYPE_FRAME_4K, 0);
    shared = look_at(shared_frame);
    endpoint = make(TYPE_ENDPOINT, 0);
    expected = (struct block){ { 0, 0, 0, 0 } };
    aes_expand(&key, bytes);
    make_server(policy);
}

static void put_line(const char *name, word_t value)
{
    put_string("# ");
    put_string(name);
    put_string(" ");
    put_number(value);
    put_string("\n");
}

static word_t used_of(word_t context)
{
    ticks_t used;

    require(context_consumed(context, &used), "consumed");
    return (word_t)used;
}

static void make_client(word_t which, word_t budget, word_t requests, word_t blocks)
{
    struct child *client = &clients[which];

    *client = make_child(asks, which, ASKS, 0);
    share_with(client);
    give(client, CHILD_ENDPOINT, endpoint, RIGHT_SEND, which);
    give(&handler, HANDLER_CONTEXTS + which, client->context, RIGHTS_ALL, 0);
    require(context_configure(client->context, budget, PERIOD), "client's budget");
    shared->orders[which].requests = requests;
    shared->orders[which].blocks = blocks;
    shared->orders[which].budget = budget;
    used_of(client->context);
}

/* The handler has schedule control while clients run. */
static void handler_controls(void)
{
    require(cnode_move(handler.cnode, ROOT_SCHED_CONTROL, 32, ROOT_CNODE, ROOT_SCHED_CONTROL, 32),
            "schedule control");
}

static void first_thread_controls(void)
{
    require(cnode_move(ROOT_CNODE, ROOT_SCHED_CONTROL, 32, handler.cnode, ROOT_SCHED_CONTROL, 32),
            "schedule control back");
}

static bool is_answered(word_t which)
{
    struct block text = { { which, 2, 3, 4 } };

    extend(&expected, &text, shared->orders[which].blocks);
    for (word_t i = 0; i < 4; i++)
        SAME(shared->orders[which].answer.w[i], expected.w[i]);
    SAME(shared->orders[which].late, 0);
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static bool same_bytes(const byte *got, const byte *right)
{
    for (word_t i = 0; i < AES_BYTES; i++)
        SAME(got[i], right[i]);
    return true;
}

/* FIPS-197, Appendix B and C.1. */
static bool vectors(void)
{
    static const struct {
        byte key[AES_BYTES], text[AES_BYTES], cipher[AES_BYTES];
    } rows[] = {
        { { 0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c },
          { 0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d, 0x31, 0x31, 0x98, 0xa2, 0xe0, 0x37, 0x07, 0x34 },
          { 0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb, 0xdc, 0x11, 0x85, 0x97, 0x19, 0x6a, 0x0b, 0x32 } },
        { { 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f },
          { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff },
          { 0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a } },
    };

    for (word_t row = 0; row < 2; row++) {
        byte block[AES_BYTES];

        for (word_t i = 0; i < AES_BYTES; i++)
            block[i] = rows[row].text[i];
        aes_expand(&key, rows[row].key);
        aes_encrypt(&key, block);
        if (!same_bytes(block, rows[row].cipher))
            return false;
    }
    return true;
}

static bool on_the_clients_budget(void)
{
    ticks_t before;
    word_t all, used;

    begin(ROLL_BACK);
    make_client(1, ENOUGH, 1, FEW);
    used_of(server.context);
    before = clock_now();
    handler_controls();
    start(&clients[1]);
    SAME(wait_report(), 1);
    first_thread_controls();
    all = (word_t)(clock_now() - before);
    used = used_of(clients[1].context);
    put_line("aes-few-blocks", used);
    SAME(used_of(server.context), 0);
    SAME(context_unbind(server.context), ERROR_ILLEGAL_OPERATION); /* it is not bound */
    SAME(shared->timeouts, 0);
    SAME(shared->errors, 0);
    SAME(used <= all && used >= all - all / 16, true); /* the rest is for the first thread */
    return is_answered(1);
}

/* The second client is served before the first one, which has no time until its next period. */
static bool rollback(void)
{
    begin(ROLL_BACK);
    make_client(1, BUDGET, 1, MANY);
    make_client(2, ENOUGH, 1, FEW);
    handler_controls();
    start(&clients[1]);
    start(&clients[2]);
    SAME(wait_report(), 2);
    SAME(shared->timeouts, 1);
    SAME(wait_report(), 1);
    first_thread_controls();
    SAME(shared->timeouts, 1);
    SAME(shared->errors, 0);
    SAME(shared->orders[1].late, 1);
    SAME(shared->rollback.count, 1);
    return is_answered(2);
}

static bool many_rollbacks(void)
{
    begin(ROLL_BACK);
    make_client(1, BUDGET, ROLLBACKS, MANY);
    make_client(2, ENOUGH, 1, FEW);
    handler_controls();
    start(&clients[1]);
    SAME(wait_report(), 1);
    start(&clients[2]);
    SAME(wait_report(), 2);
    first_thread_controls();
    SAME(shared->timeouts, ROLLBACKS);
    SAME(shared->errors, 0);
    SAME(shared->orders[1].late, ROLLBACKS);
    SAME(shared->rollback.count, ROLLBACKS);
    figure_print("aes-rollback", &shared->rollback);
    return is_answered(2);
}

static bool budget_is_raised(void)
{
    begin(RAISE);
    make_client(1, BUDGET, 1, MANY / 16);
    handler_controls();
    start(&clients[1]);
    SAME(wait_report(), 1);
    first_thread_controls();
    SAME(shared->timeouts, 1);
    SAME(shared->errors, 0);
    return is_answered(1);
}

static bool server_is_suspended(void)
{
    begin(SUSPEND);
    make_client(1, BUDGET, 1, MANY);
    handler_controls();
    start(&clients[1]);
    SAME(wait_report(), SUSPENDED);
    first_thread_controls();
    SAME(shared->errors, 0);
    used_of(clients[1].context);
    /* The client waits for good; on its own context it does something else. */
    SAME(tcb_suspend(clients[1].tcb), 0);
    SAME(tcb_write_registers(clients[1].tcb, (word_t)tells, (word_t)main_stack_top, 0, 5), 0);
    SAME(tcb_resume(clients[1].tcb), 0);
    SAME(wait_report(), 5);
    return used_of(clients[1].context) != 0;
}

static const struct test aes_tests[] = {
    { vectors, "AES-128 is what FIPS-197 says, Appendix B and C.1" },
    { on_the_clients_budget, "a request is served on the client's budget" },
    { rollback, "a client without time is answered by the handler, the next one is served" },
    { many_rollbacks, "the server is rolled back many times, and then serves" },
    { budget_is_raised, "or the handler raises the budget, and the request is served" },
    { server_is_suspended, "or it suspends the server, and the client has its context again" },
    { NULL, NULL },
};

const struct test *const suite[] = { aes_tests, NULL };
