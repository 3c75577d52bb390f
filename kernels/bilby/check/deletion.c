/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done step by step, between two steps (sections 3.3 to 3.6).
 *
 *   D1  "transit" is empty between operations
 *   D2  a container that is being emptied has "remains" in its first slot; what is
 *       above the slots that are left is empty; the stack of them ends
 *   D3  no capability leads to such a container
 *   E1  a badged abort: the endpoint sends, both threads it records are in its
 *       queue, the first not behind the last; its worker knows the endpoint
 *   E2  a thread that cannot run, or whose call is over, is worker of none, was told of
 *       none, and has sent no answer before
 */
#include "invariants.h"

extern struct slot transit __attribute__((weak));
extern struct slot *graves __attribute__((weak));

static void check_graves(void)
{
    word_t count = 0;
    struct slot *first = graves;

    while (first != NULL) {
        const struct cap *remains = &first->cap;

        require(cap_type(remains) == CAP_REMAINS, "D2 remains stand in the first slot", first);
        require(remains_cap_left(remains) >= 1, "D2 the first slot is left", first);
        require(++count <= universe->slot_count, "D2 the stack ends", first);
        first = remains_cap_next(remains) == WINDOW_BASE
            ? NULL : (struct slot *)remains_cap_next(remains);
    }
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        count -= cap_type(&slot->cap) == CAP_REMAINS;
        if (cap_type(&slot->cap) == CAP_CNODE)
            require(cap_type(&((struct slot *)cnode_cap_object(&slot->cap))->cap) != CAP_REMAINS,
                    "D3 no capability leads to a container that is emptied", slot);
        if (cap_type(&slot->cap) == CAP_TCB)
            require(cap_type(&((struct tcb *)tcb_cap_object(&slot->cap))->cspace.cap)
                    != CAP_REMAINS,
                    "D3 no capability leads to a thread that is emptied", slot);
    }
    require(count == 0, "D2 all remains are on the stack", NULL);
}

#ifdef LAYOUT_HAS_ABORT
static bool is_in_queue(const struct endpoint *endpoint, const struct tcb *wanted)
{
    for (const struct tcb *thread = endpoint->head; thread != NULL; thread = thread->wait_next)
        if (thread == wanted)
            return true;
    return false;
}

static void check_abort(const struct endpoint *endpoint)
{
    const struct tcb *thread = endpoint->abort_at;

    if (thread == NULL) {
        return;
    }
    require(endpoint->state == EP_SENDING, "E1 an abort is under way: the endpoint sends",
            endpoint);
    require(is_in_queue(endpoint, thread), "E1 abort_at is in the queue", endpoint);
    while (thread != NULL && thread != endpoint->abort_last)
        thread = thread->wait_next;
    require(thread != NULL, "E1 abort_at is not behind abort_last", endpoint);
    require(endpoint->abort_worker == NULL
            || endpoint->abort_worker->aborting == endpoint, "E1 the worker knows", endpoint);
}
#endif

void check_call_is_over(const struct tcb *thread)
{
#ifdef LAYOUT_HAS_ABORT
    require(thread->aborting == NULL && thread->aborted == NULL,
            "E2 a call that is over has no abort", thread);
#endif
    require(thread->replied == 0, "E2 a call that is over has sent no answer before", thread);
    check_no_lookups(thread);
}

void check_deletion(void)
{
    if (&transit != NULL)
        require(cap_type(&transit.cap) == CAP_NULL, "D1 transit is empty", &transit);
    if (&graves != NULL)
        check_graves();
#ifdef LAYOUT_HAS_ABORT
    for (word_t i = 0; i < universe->endpoints.count; i++)
        check_abort((const struct endpoint *)universe->endpoints.at[i]);
#endif
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        if (thread->state != THREAD_RUNNING)
            check_call_is_over(thread);
    }
}
