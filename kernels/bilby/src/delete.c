/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deleting capabilities, and what they were the last of.
 *
 * A capability that is to be deleted is first moved into "limbo", a slot of the
 * kernel's own: from then on nobody can use it.  If it is the last one of a CNode
 * or a thread, its slots may hold the last capabilities of others, and so on
 * without a limit.  That needs no recursion and no memory: what remains of the
 * container (a capability "remains") stands in the container's own first slot,
 * and what stood there goes into limbo instead.  "graves" is the stack of those
 * containers, linked through their remains; each is emptied from its last slot
 * down.  Since remains stand in their own container, cycles need no care: a CNode
 * that holds itself, or two that hold each other, are emptied like any other.
 *
 * All of it is one sequence of short steps with a preemption point after each.
 * Whoever deletes next, the same thread or another one, first finishes it.
 *
 * Invariants: no capability leads to a container in "graves", and none of its
 * threads can run; it has one capability "remains" in its first slot, in the
 * derivation list where its last capability was, so that the memory is not
 * reused.  "transit" is empty between steps.
 */
#include <kernel.h>
#include <preemption.h>
#include <space.h>

static struct slot limbo __attribute__((aligned(16)));
static struct slot transit __attribute__((aligned(16)));
static struct slot *graves; /* first slot of the container that is being emptied */

static bool is_container(const struct cap *cap)
{
    return cap_type(cap) == CAP_CNODE || cap_type(cap) == CAP_TCB;
}

/* What remains of a container, and where: its first slot. */
static struct slot *make_remains(struct cap *remains, const struct cap *last)
{
    if (cap_type(last) == CAP_CNODE) {
        remains_cap_make(remains, (word_t)graves, 0, 1u << cnode_cap_radix(last));
        return (struct slot *)cnode_cap_object(last);
    }
    remains_cap_make(remains, (word_t)graves, 1, THREAD_SLOTS);
    return thread_slots((struct tcb *)tcb_cap_object(last));
}

/*
 * The last capability of a container goes into its first slot, as remains; what
 * was there goes into limbo, which is empty unless it is the slot itself.
 */
static void delete_bury(struct slot *slot)
{
    struct cap remains;
    struct slot *first = make_remains(&remains, &slot->cap);

    if (first != slot) {
        if (!slot_is_empty(first))
            slot_move(&transit, first);
        slot_move(first, slot);
        if (!slot_is_empty(&transit))
            slot_move(&limbo, &transit);
    }
    first->cap = remains;
    graves = first;
}

/* The first container on the stack: one slot less, or none left. */
static void delete_dig(void)
{
    struct cap *remains = &graves->cap;
    word_t left = remains_cap_left(remains) - 1;
    struct slot *first = graves;

    remains_cap_set_left(remains, left);
    if (left != 0)
        return;
    graves = remains_cap_next(remains) == WINDOW_BASE
        ? NULL : (struct slot *)remains_cap_next(remains);
    slot_empty(first);
}

/* The slot to be emptied next; null if the stack's first container has none. */
static struct slot *next_victim(void)
{
    word_t left;

    if (!slot_is_empty(&limbo))
        return &limbo;
    left = remains_cap_left(&graves->cap);
    return left == 1 || slot_is_empty(&graves[left - 1]) ? NULL : &graves[left - 1];
}

/* A thread that does something, or stands in a ready queue: it is stopped before it is buried. */
static bool is_active(const struct cap *cap)
{
    const struct tcb *thread = (const struct tcb *)tcb_cap_object(cap);

    return cap_type(cap) == CAP_TCB && (thread->state != THREAD_INACTIVE || thread->queued);
}

/* The line of an interrupt handler capability still signals somebody. */
static bool has_notification(const struct cap *cap)
{
    return cap_type(cap) == CAP_IRQ_HANDLER && !slot_is_empty(&irq_slots[irq_handler_cap_irq(cap)]);
}

/* What a capability leaves behind, by its kind; can be preempted, then it is still there. */
static void delete_finalise(struct slot *slot, bool last)
{
    struct cap *cap = &slot->cap;

    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        if (last)
            endpoint_close((struct endpoint *)endpoint_cap_object(cap));
        break;
    case CAP_NOTIFICATION:
        if (last)
            notification_close((struct notification *)notification_cap_object(cap));
        break;
    case CAP_FRAME:
        vspace_unmap_frame(slot);
        break;
    case CAP_PAGE_TABLE:
        if (last)
            vspace_delete_table(slot);
        break;
    case CAP_PAGE_DIRECTORY:
        if (last)
            vspace_delete_directory(slot);
        break;
    case CAP_IRQ_HANDLER:
        if (last)
            irq_release(irq_handler_cap_irq(cap));
        break;
    case CAP_REPLY:
        if (reply_cap_master(cap))
            reply_revoke((struct tcb *)reply_cap_object(cap));
        break;
    default:
        space_finalise(cap, last);
        break;
    }
}

/*
 * One step: a slot is emptied, a thread stopped, a container buried, or one slot less is
 * left.  True, as delete_take is: there may be more to do.
 */
static bool delete_step(void)
{
    struct slot *victim = next_victim();
    bool last;

    if (victim == NULL) {
        delete_dig();
        return true;
    }
    last = slot_is_last(victim);
    if (last && is_container(&victim->cap)) {
        if (is_active(&victim->cap))
            thread_suspend((struct tcb *)tcb_cap_object(&victim->cap));
        else
            delete_bury(victim);
        return true;
    }
    if (last && has_notification(&victim->cap)) {
        victim = &irq_slots[irq_handler_cap_irq(&victim->cap)];
        last = slot_is_last(victim);
    }
    slot_leave_thread(victim);
    delete_finalise(victim, last);
    slot_empty(victim);
    return true;
}

/*
 * With nothing left of earlier deletions: take what is to be deleted now.  False
 * if there is nothing.
 */
static bool delete_take(struct slot *slot, bool derived)
{
    if (derived) {
        if (!slot_has_child(slot))
            return false;
        slot = slot_next(slot);
    }
    if (slot_is_empty(slot))
        return false;
    slot_leave_thread(slot);
    slot_move(&limbo, slot);
    return true;
}

/*
 * Empty a slot and whatever nothing else leads to; or delete in this way all that
 * was derived from its capability.  That may include the capability itself, if it
 * stands in a CNode that is deleted.
 */
PREEMPTIBLE void delete_slot(struct slot *slot, bool derived)
{
    /* preempted: 1 */
    while (graves != NULL || !slot_is_empty(&limbo) ? delete_step() : delete_take(slot, derived))
        PREEMPTION_POINT(1);
}
