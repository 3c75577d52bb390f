/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that is done step by step, between two steps (sections 3.3 to 3.6).
 *
 *   D1  "transit" is empty between operations
 *   D2  a container that is being emptied has "remains" in its first slot, and is in one
 *       ring of graves: its owner's, or the idle thread's
 *   D3  no capability leads to such a container
 *   D5  a thread that has anything in limbo or in its ring of graves is in the ring of
 *       owners, exists, or is being emptied itself
 *   D6  if the idle thread runs, it is about to finish the work that others left
 *   D7  the owner whose turn is next is in the ring of owners
 *   E1  a badged abort: the endpoint sends, both threads it records are in its
 *       queue, the first not behind the last; its worker knows the endpoint
 *   E2  a thread that cannot run, or whose call is over, is worker of none, was told of
 *       none, and has sent no answer before
 *   E3  an endpoint or a notification that is closed has a worker that knows it, or nobody
 *       can use it: no CNode has a capability to it
 */
#include "invariants.h"

extern struct slot transit __attribute__((weak));
extern struct tcb *next_owner __attribute__((weak));

/* The ring of an owner's graves leads back to it; their number. */
static word_t check_graves(const struct tcb *owner)
{
    const struct cap *prev = &owner->graves;
    word_t count = 0;

    for (const struct cap *grave = (const struct cap *)remains_cap_next(prev);
         grave != &owner->graves; grave = (const struct cap *)remains_cap_next(grave)) {
        require(cap_type(grave) == CAP_REMAINS, "D2 remains stand in the first slot", grave);
        require((const struct cap *)remains_cap_prev(grave) == prev,
                "D2 the ring of graves is doubly linked", grave);
        require(++count <= universe->slot_count, "D2 the ring of graves ends", grave);
        prev = grave;
    }
    require((const struct cap *)remains_cap_prev(&owner->graves) == prev,
            "D2 the ring of graves is doubly linked", owner);
    return count;
}

static bool is_remains(const struct slot *first)
{
    return cap_type(&first->cap) == CAP_REMAINS;
}

/* Each container that is emptied is in one ring, and no capability leads to it. */
static void check_containers(word_t count)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        count -= is_remains(slot);
        require(cap_type(&slot->cap) != CAP_CNODE
                || !is_remains((const struct slot *)cnode_cap_object(&slot->cap)),
                "D3 no capability leads to a container that is emptied", slot);
        require(cap_type(&slot->cap) != CAP_TCB
                || !is_remains(&((const struct tcb *)tcb_cap_object(&slot->cap))->cspace),
                "D3 no capability leads to a thread that is emptied", slot);
    }
    require(count == 0, "D2 all remains are in a ring of graves", NULL);
}

/* A thread that is no more: nothing leads to its memory, and nothing may be left of it. */
static bool exists(const struct tcb *thread)
{
    for (word_t i = 0; i < universe->slot_count; i++)
        if (cap_type(&universe->slot[i]->cap) == CAP_TCB
            && (const struct tcb *)tcb_cap_object(&universe->slot[i]->cap) == thread)
            return true;
    return is_remains(&thread->cspace);
}

/* There is nothing left, or the idle thread is where it looks for it. */
static bool idle_has_work_ahead(void)
{
    return (idle_thread.deleting_next == &idle_thread
            && (const struct cap *)remains_cap_next(&idle_thread.graves) == &idle_thread.graves
            && cap_type(&idle_thread.limbo.cap) == CAP_NULL)
        || idle_thread.regs[REG_PC] <= (word_t)idle_loop + 4;
}

static void check_owners(void)
{
    const struct tcb *prev = &idle_thread;
    bool has_next = &next_owner == NULL || next_owner == &idle_thread;
    word_t graves = check_graves(&idle_thread), count = 0;

    for (const struct tcb *owner = idle_thread.deleting_next; owner != &idle_thread;
         owner = owner->deleting_next) {
        require(owner->deleting_prev == prev, "D5 the ring of owners is doubly linked", owner);
        require(++count <= universe->threads.count, "D5 the ring of owners ends", owner);
        require(exists(owner), "D5 an owner exists", owner);
        graves += check_graves(owner);
        has_next |= &next_owner != NULL && owner == next_owner;
        prev = owner;
    }
    require(idle_thread.deleting_prev == prev, "D5 the ring of owners is doubly linked", prev);
    require(has_next, "D7 the next owner is in the ring", &idle_thread);
    check_containers(graves);
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        count -= thread->deleting_next != NULL;
        require(thread->deleting_next != NULL || cap_type(&thread->limbo.cap) == CAP_NULL
                || is_remains(&thread->cspace), "D5 who has anything in limbo is an owner", thread);
    }
    require(count == 0, "D5 an owner is in the ring", NULL);
    require(current_thread != &idle_thread || idle_has_work_ahead(),
            "D6 the idle thread finishes what others left", &idle_thread);
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
}

static bool knows(const struct tcb *worker, const void *object, word_t type)
{
    return worker->aborting == object && worker->recycles == type;
}

static bool is_in_a_cnode(const struct slot *slot)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct cap *cap = &universe->slot[i]->cap;

        if (cap_type(cap) == CAP_CNODE
            && (word_t)slot - cnode_cap_object(cap) < sizeof(*slot) << cnode_cap_radix(cap))
            return true;
    }
    return false;
}

/* An object that is closed for good. */
static void check_unused(const void *object, word_t type)
{
    for (word_t i = 0; i < universe->slot_count; i++) {
        const struct slot *slot = universe->slot[i];

        require(cap_type(&slot->cap) != type || endpoint_cap_object(&slot->cap) != (word_t)object
                || !is_in_a_cnode(slot), "E3 what is closed for good cannot be used", object);
    }
}

static void check_worker(const struct tcb *thread)
{
    const struct endpoint *endpoint = thread->aborting;
    const struct notification *notification = thread->aborting;

    if (thread->aborting != NULL)
        require((thread->recycles == CAP_ENDPOINT ? endpoint->abort_worker : notification->recycler)
                == thread, "E1 what a thread recycles knows it", thread);
}

static void check_closed(void)
{
    for (word_t i = 0; i < universe->endpoints.count; i++) {
        const struct endpoint *endpoint = (const struct endpoint *)universe->endpoints.at[i];

        require(endpoint->abort_worker == NULL
                || knows(endpoint->abort_worker, endpoint, CAP_ENDPOINT), "E1 the worker knows",
                endpoint);
        if (endpoint->state == EP_CLOSED && endpoint->abort_worker == NULL)
            check_unused(endpoint, CAP_ENDPOINT);
    }
    for (word_t i = 0; i < universe->threads.count; i++)
        check_worker((const struct tcb *)universe->threads.at[i]);
    for (word_t i = 0; i < universe->notifications.count; i++) {
        const struct notification *notification =
            (const struct notification *)universe->notifications.at[i];

        if (notification->signalled != NOTIFICATION_CLOSED)
            continue;
        require(notification->recycler == NULL
                || knows(notification->recycler, notification, CAP_NOTIFICATION),
                "E3 who closed it knows", notification);
        if (notification->recycler == NULL)
            check_unused(notification, CAP_NOTIFICATION);
    }
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
    check_owners();
#ifdef LAYOUT_HAS_ABORT
    for (word_t i = 0; i < universe->endpoints.count; i++)
        check_abort((const struct endpoint *)universe->endpoints.at[i]);
    check_closed();
#endif
    for (word_t i = 0; i < universe->threads.count; i++) {
        const struct tcb *thread = (const struct tcb *)universe->threads.at[i];

        if (thread->state != THREAD_RUNNING)
            check_call_is_over(thread);
    }
}
