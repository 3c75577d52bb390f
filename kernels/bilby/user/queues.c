/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests: queues of sends, calls and faults whose threads get other priorities, are aborted and come again,
 * beside a model of the queue.
 */
#include "tests.h"
#include "waiters.h"

#define STEPS 120

static void sends(word_t value)
{
    for (;;)
        send(SYS_SEND, CHILD_ENDPOINT, value);
}

static void calls(word_t value)
{
    for (;;)
        call(CHILD_ENDPOINT, 0, value);
}

/* Its handler is the endpoint; it goes on behind the word that faults. */
static void faults(word_t value)
{
    for (;;)
        __asm__ volatile("mov r4, %0\n\t.word 0xe7f000f0" : : "r"(value) : "r4");
}

enum kind { SENDS, CALLS, FAULTS };

static void (*const kinds[])(word_t) = { sends, calls, faults };

static bool takes(word_t endpoint)
{
    word_t first = first_of_queue();
    struct message m = receive(endpoint);

    SAME(m.badge, first + 1);
    SAME(message_label(m.info) == FAULT_UNDEFINED, waiters[first].kind == FAULTS);
    if (waiters[first].kind == FAULTS)
        m = (struct message){ 0, message_make(1, 0, 0, 0), { m.w[0] + 4, 0, 0, 0 } };
    else
        m = (struct message){ 0, message_make(1, 0, 0, 0), { 0, 0, 0, 0 } };
    if (waiters[first].kind != SENDS)
        syscall(SYS_REPLY, &m);
    comes(first);
    return true;
}

static bool changes(word_t which)
{
    static const word_t levels[] = { 2, 31, 32, 33, 64, 95, 96, 223 };

    return gets_priority(which, levels[draw(8)]);
}

/* Its badge is recycled: it sends again, or has stopped if it had faulted, and is resumed. */
static bool aborted(word_t which, word_t slot)
{
    SAME(cnode_recycle(ROOT_CNODE, slot, 32), 0);
    cnode_delete(waiters[which].child.cnode, CHILD_ENDPOINT, 32);
    give(&waiters[which].child, CHILD_ENDPOINT, slot, RIGHTS_ALL, 0);
    if (waiters[which].kind == FAULTS)
        SAME(tcb_resume(waiters[which].child.tcb), 0); /* faults again */
    comes(which);
    return true;
}

static bool order(void)
{
    word_t endpoint = make(TYPE_ENDPOINT, 0), slots[WAITERS];

    for (word_t i = 0; i < WAITERS; i++) {
        waiters[i].kind = i % 3;
        waiters[i].priority = 10 + i;
        waiters[i].child = make_child(kinds[i % 3], i, 10 + i, CHILD_ENDPOINT);
        slots[i] = badged(endpoint, RIGHTS_ALL, i + 1);
        give(&waiters[i].child, CHILD_ENDPOINT, slots[i], RIGHTS_ALL, 0);
        start(&waiters[i].child);
        comes(i);
    }
    for (word_t step = 0; step < STEPS; step++) {
        word_t which = draw(8);

        switch (draw(4)) {
        case 0:
            if (!takes(endpoint))
                return same("step", step, 0);
            break;
        case 1:
            if (!aborted(which, slots[which]))
                return same("step", step, 1);
            break;
        default:
            if (!changes(which))
                return same("step", step, 2);
            break;
        }
    }
    for (word_t i = 0; i < 3 * WAITERS; i++)
        if (!takes(endpoint))
            return same("at the end", i, 0);
    for (word_t i = 0; i < WAITERS; i++)
        SAME(tcb_suspend(waiters[i].child.tcb), 0);
    return true;
}

static const struct test tests[] = {
    { order, "sends, calls and faults are in order, however their threads change and are aborted" },
    { NULL, NULL },
};

const struct test *const suite[] = { tests, NULL };
