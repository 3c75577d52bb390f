/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer to a call. */
#include <timing.h>

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
        donation_return(server, caller);
        if (fault_read_answer(caller, server))
            thread_wake(caller);
        return ERROR_NONE;
    }
    message_transfer(server, caller, NULL, &caps);
    caller->regs[REG_BADGE] = 0;
    donation_return(server, caller);
    thread_wake(caller);
    return ERROR_NONE;
}
