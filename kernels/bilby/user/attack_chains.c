/* SPDX-License-Identifier: BSD-2-Clause */
/* Hostile programs about budgets that end in chains of calls, with timeout handlers at each level (preset mcs). */
#include "tests.h"
#include "timed.h"

#define DEPTH 5 /* servers that call another one */

static word_t turns; /* of each server's work; children have it as it is when they are made */

/* Works, calls the next server, if it is not the last, and works again; tells where the chain is. */
static void links(word_t which)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = receive(CHILD_ENDPOINT);

    for (;;) {
        word_t value = m.w[0];

        seen->turns[0] = which;
        works(turns);
        if (which != DEPTH)
            value = call(CHILD_OTHER, 0, value).w[0];
        seen->turns[0] = which;
        works(turns);
        m = reply_receive(CHILD_ENDPOINT, 0, value + 1);
    }
}

struct chain {
    word_t endpoints[DEPTH + 1];
    struct child servers[DEPTH + 1];
};

static struct chain made(word_t ticks_of_work)
{
    struct chain c;

    turns = turns_in(ticks_of_work);
    share_nothing_yet();
    for (word_t i = 0; i <= DEPTH; i++)
        c.endpoints[i] = make(TYPE_ENDPOINT, 0);
    for (word_t i = 0; i <= DEPTH; i++) {
        struct child server = make_child(links, i, HANDLES - 10 * i, 0);

        share_with(&server);
        give(&server, CHILD_ENDPOINT, c.endpoints[i], RIGHTS_ALL, 0);
        if (i != DEPTH)
            give(&server, CHILD_OTHER, c.endpoints[i + 1], RIGHTS_ALL, 0);
        start_passive(&server);
        c.servers[i] = server;
    }
    return c;
}

static void handles_by_answer(word_t unused)
{
    struct shared *seen = (struct shared *)SHARED_ADDRESS;
    struct message m = receive(CHILD_ENDPOINT);

    (void)unused;
    for (;;) {
        seen->turns[message_label(m.info) == FAULT_TIMEOUT ? 1 : 2]++;
        m = (struct message){ CHILD_ENDPOINT, 0, { 0, 0, 0, 0 } };
        syscall(SYS_REPLY_RECEIVE, &m);
    }
}

/* The handlers of all levels are one passive thread, or one with time, or there is one at every second level. */
static bool handlers_at_levels(void)
{
    for (word_t how = 0; how < 4; how++) {
        struct chain c = made(2 * BUDGET_LEAST);
        word_t timeouts = make(TYPE_ENDPOINT, 0);
        struct child handler = make_child(handles_by_answer, 0, how & 1 ? 220 : 20, 0);

        share_with(&handler);
        give(&handler, CHILD_ENDPOINT, timeouts, RIGHTS_ALL, 0);
        start(&handler);
        let_others_run();
        if (how & 2)
            make_passive(&handler);
        for (word_t i = 0; i <= DEPTH; i += 1 + (how & 1))
            SAME(tcb_set_timeout(c.servers[i].tcb, timeouts), 0);
        calls_on(c.endpoints[0], 100, BUDGET_LEAST, 3 * BUDGET_LEAST);
        SAME(wait_report(), 100 + DEPTH + 1);
        put_string("# timeouts told: ");
        put_number(shared->turns[1]);
        put_string("\n");
        SAME(shared->turns[1] != 0, true);
        SAME(shared->turns[2], 0);
        SAME(tcb_suspend(handler.tcb), 0);
    }
    return true;
}

/* The server that works is stopped or deleted, and the client's time is used up, at ever deeper places. */
static bool servers_go_in_chains(void)
{
    for (word_t i = 0; i < 8; i++) {
        struct chain c = made(BUDGET_LEAST);
        struct child client;
        struct registers registers;
        word_t at;

        client = calls_on(c.endpoints[0], 100, BUDGET_LEAST, 4 * BUDGET_LEAST);
        sleep_for((3 + 4 * i) * BUDGET_LEAST);
        at = shared->turns[0];
        SAME(tcb_set_priority(c.servers[at].tcb, 3), 0);
        if (i & 1) {
            SAME(tcb_suspend(c.servers[at].tcb), 0);
        } else {
            SAME(cnode_revoke(ROOT_CNODE, c.servers[at].tcb, 32), 0);
            SAME(cnode_delete(ROOT_CNODE, c.servers[at].tcb, 32), 0);
        }
        if (at != DEPTH)
            SAME(call(c.endpoints[DEPTH], 0, 7).w[0], 8); /* it has ended its work */
        SAME(tcb_suspend(client.tcb), 0);
        SAME(tcb_read_registers(client.tcb, &registers), 0);
        SAME(tcb_write_registers(client.tcb, (word_t)tells, registers.sp, 0, 9), 0);
        SAME(tcb_resume(client.tcb), 0);
        SAME(wait_report(), 9); /* on its own context */
    }
    return true;
}

#define CLIENTS 6

/* Each is served on its own time, which ends meanwhile; the most urgent first. */
static bool clients_in_order(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);

    passive_server(serves_slowly, turns_in(4 * BUDGET_LEAST), endpoint);
    for (word_t i = 0; i < CLIENTS; i++) {
        struct child client = make_child(calls_once, 10 * i, WORK + i, 0);

        give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
        SAME(context_configure(client.context, BUDGET_LEAST, 3 * BUDGET_LEAST), 0);
        start(&client);
        SAME(tcb_set_priority(client.tcb, 40 - i), 0); /* it is another order now */
    }
    for (word_t i = 0; i < CLIENTS; i++)
        SAME(wait_report(), 10 * i + 1);
    return true;
}

/* The client's context has other budgets, is unbound or deleted, while a server far down uses it. */
static bool contexts_change_in_chains(void)
{
    for (word_t how = 0; how < 3; how++) {
        struct chain c = made(BUDGET_LEAST);
        struct child client;
        word_t other;

        client = calls_on(c.endpoints[0], 100, BUDGET_LEAST, 9 * BUDGET_LEAST);
        sleep_for(3 * BUDGET_LEAST);
        switch (how) {
        case 0:
            for (word_t i = 0; i < 40; i++) {
                SAME(context_configure(client.context, (1 + (i & 3)) * BUDGET_LEAST, 9 * BUDGET_LEAST), 0);
                sleep_for(BUDGET_LEAST);
            }
            SAME(wait_report(), 100 + DEPTH + 1);
            break;
        case 1:
            SAME(context_unbind(client.context), 0);
            sleep_for(300 * BUDGET_LEAST);
            run_child(tells, NEVER, 1, 0, 0);
            SAME(wait_report(), NEVER); /* it was answered, on time that is nobody's, and may not wait to send */
            SAME(context_bind(client.context, client.tcb), 0);
            run_child(calls_once, 200, WORK, c.endpoints[0], 0);
            SAME(wait_report(), 200 + DEPTH + 1);
            break;
        default:
            SAME(cnode_revoke(ROOT_CNODE, client.context, 32), 0);
            SAME(cnode_delete(ROOT_CNODE, client.context, 32), 0);
            other = make(TYPE_CONTEXT, 0);
            SAME(context_configure(other, SLICE, SLICE), 0);
            for (word_t i = DEPTH + 1; i-- > 0;) { /* who has lost it, and then each that is answered */
                SAME(context_bind(other, c.servers[i].tcb), 0);
                sleep_for(30 * BUDGET_LEAST);
                SAME(context_unbind(other), 0);
            }
            SAME(context_bind(other, client.tcb), 0);
            SAME(wait_report(), 100 + DEPTH + 1);
            break;
        }
        SAME(tcb_suspend(client.tcb), 0);
    }
    return true;
}

const struct test chain_attacks[] = {
    { handlers_at_levels, "timeouts are told at each level of a chain of calls, and it goes on" },
    { servers_go_in_chains, "a server of a chain goes while its time is used up, and nobody else waits for ever" },
    { clients_in_order, "clients whose budgets end in their server are answered in order" },
    { contexts_change_in_chains, "a context is changed, taken back or deleted while a chain of servers uses it" },
    { NULL, NULL },
};
