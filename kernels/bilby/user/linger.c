/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of linger.elf: leave calls unanswered and a fault unhandled, say so,
 * and stay, so that memory can be looked at.
 */
#include "tests.h"

/* Keeps its caller waiting: waiting for a signal does not give the call up. */
static void keeper(word_t unused)
{
    (void)unused;
    receive(CHILD_ENDPOINT);
    for (;;)
        receive(CHILD_OTHER);
}

static void patient(word_t unused)
{
    (void)unused;
    call(CHILD_ENDPOINT, 0, 0);
}

static void faulty(word_t unused)
{
    (void)unused;
    __asm__ volatile(".inst 0xe7f000f0");
}

static void keep_waiting(void (*run)(word_t), word_t priority)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0);
    struct child server = make_child(keeper, 0, priority, 0);
    struct child client = make_child(run, 0, 10, CHILD_ENDPOINT);

    give(&server, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 0);
    give(&server, CHILD_OTHER, make(TYPE_NOTIFICATION, 0), RIGHTS_ALL, 0);
    give(&client, CHILD_ENDPOINT, endpoint, RIGHTS_ALL, 3);
    start(&server);
    start(&client);
}

static void least_urgent(word_t unused)
{
    (void)unused;
    tell(0);
    rest();
}

_Noreturn void finish(word_t failed)
{
    keep_waiting(patient, 10); /* by the fastpath */
    keep_waiting(patient, 5);
    keep_waiting(faulty, 10);
    run_child(least_urgent, 0, 1, 0, 0);
    wait_report(); /* now all of those wait */
    put_string(failed ? "# lingering after failures\n" : "# lingering\n");
    for (;;)
        receive(park);
}
