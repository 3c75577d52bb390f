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

/* Answer, if there is somebody to answer, and use the capability up. */
word_t reply_send(struct tcb *server, struct slot *reply)
{
    struct message_caps caps;
    struct tcb *caller;

    if (slot_is_empty(reply))
        return ERROR_INVALID_CAPABILITY;
    caller = (struct tcb *)reply_cap_object(&reply->cap);
    message_find_caps(&caps, server, caller,
                      reply_cap_can_grant(&reply->cap) && caller->fault == 0);
    slot_empty(reply);
    if (caller->fault != 0) {
        loan_return(server, caller);
        if (fault_read_answer(caller, server))
            thread_wake(caller);
        return ERROR_NONE;
    }
    message_transfer(server, caller, NULL, &caps);
    caller->regs[REG_BADGE] = 0;
    loan_return(server, caller);
    thread_wake(caller);
    return ERROR_NONE;
}
