/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait for their answer.
 *
 * Each thread has a master reply capability in its own TCB.  A call derives the
 * one that answers it, into the "caller" slot of the thread that received it.
 *
 * Invariant: a thread is THREAD_BLOCKED_REPLY <=> its master has one descendant,
 * unless the holder gave it up by receiving again; then it waits for good.
 */
#include <timing.h>

/* The caller now waits for the server, whose caller slot is empty. */
void reply_expect(struct tcb *caller, struct tcb *server, bool may_grant)
{
    struct cap cap;

    reply_cap_make(&cap, (word_t)caller, 0, may_grant);
    slot_insert(&server->caller, &cap, &caller->reply, false);
    caller->state = THREAD_BLOCKED_REPLY;
}

/* Nobody can answer the thread any more. */
void reply_revoke(struct tcb *caller)
{
    struct slot *reply = slot_next(&caller->reply);

    if (reply != NULL)
        slot_empty(reply);
}
