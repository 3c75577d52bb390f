/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deleting capabilities, and the objects whose last capability they were.
 *
 * A capability that is to be deleted is first moved into "limbo", a slot of the
 * deleting thread: from then on nobody can use it.  If it is the last one of a CNode
 * or a thread, its slots may hold the last capabilities of others, and so on without
 * a limit.  That needs no recursion and no memory: the remains of the container (a
 * capability "remains") stand in the container's own first slot, and the capability
 * from there goes into limbo instead.  "graves" is the ring of those containers,
 * linked through their remains; each is emptied from its last slot down, the one
 * buried last first.  Since remains stand in their own container, cycles need no
 * care: a CNode that holds itself, or two that hold each other, are emptied like any
 * other.
 *
 * All of it is one sequence of short steps with a preemption point after each.  The remaining
 * work belongs to the thread that began it (its "owner"): nobody else waits for it.  A
 * revocation that reaches an object of another thread's deletion takes just that over: a
 * capability out of its limbo, or one container out of its ring.  The other thread finds less to
 * do.
 *
 * A thread with remaining work is in a ring of threads, whose head is the idle thread.  The idle
 * thread continues for them, whether they were suspended, wait for their fault handler, are deleted,
 * or do not run because others do; a step for each in turn.  A deleted thread leaves its work to the
 * idle thread.  It does so when nobody else runs, and at each tick before others, but only for a
 * small share of the time until the next ("turn"): a thread that waits on an object in there may be
 * more urgent than all that run, which nobody can tell before the object is reached.
 *
 * A thread may delete itself.  Its own remains are then the last of its ring, so that all
 * it has begun is done before its memory can be used again, and its call ends there.
 *
 * Invariants: no capability leads to a container in a ring of graves, and none of its
 * threads can run; it has one capability "remains" in its first slot, in the
 * derivation list where its last capability was, so that the memory is not
 * reused.  Whoever has a capability in limbo or a container in its ring is in the ring of
 * threads, and so is "next_owner".  "transit" is empty between steps.
 */
#include <kernel.h>
#include <preemption.h>
#include <timing.h>

static struct slot transit __attribute__((aligned(16)));
static struct tcb *next_owner; /* whose deletion the idle thread continues next; perhaps its own */

static bool is_container(const struct cap *cap)
{
    return cap_type(cap) == CAP_CNODE || cap_type(cap) == CAP_TCB;
}

/* ---- the ring of a thread's graves; its head is no remains, but has the same links ---- */

static struct cap *grave_next(const struct cap *grave)
{
    return (struct cap *)remains_cap_next(grave);
}

static struct cap *grave_prev(const struct cap *grave)
{
    return (struct cap *)remains_cap_prev(grave);
}

static void grave_link(struct cap *prev, struct cap *next)
{
    remains_cap_set_next(prev, (word_t)next);
    remains_cap_set_prev(next, (word_t)prev);
}

static void grave_insert(struct cap *grave, struct cap *prev)
{
    struct cap *next = grave_next(prev);

    grave_link(prev, grave);
    grave_link(grave, next);
}

static void grave_remove(const struct cap *grave)
{
    grave_link(grave_prev(grave), grave_next(grave));
}

/* ---- the ring of threads that have begun to delete -------------------------------------- */

static void ring_make(struct tcb *owner)
{
    null_cap_make(&owner->graves);
    grave_link(&owner->graves, &owner->graves);
}

/* It has something to delete now; the idle thread is to look for it when it runs next. */
static void ring_enter(struct tcb *owner)
{
    struct tcb *last = idle_thread.deleting_prev;

    if (owner->deleting_next != NULL)
        return;
    ring_make(owner);
    timing_note_left();
    owner->deleting_next = &idle_thread;
    owner->deleting_prev = last;
    last->deleting_next = owner;
    idle_thread.deleting_prev = owner;
    idle_thread.regs[REG_PC] = (word_t)idle_loop;
}

static void ring_leave(struct tcb *owner)
{
    timing_note_left();
    if (owner == &idle_thread)
        return;
    if (owner == next_owner)
        next_owner = owner->deleting_next;
    owner->deleting_next->deleting_prev = owner->deleting_prev;
    owner->deleting_prev->deleting_next = owner->deleting_next;
    owner->deleting_next = NULL;
    owner->deleting_prev = NULL;
}

/*
 * A thread that is no more has nothing left: its graves are the idle thread's now, behind those that
 * are already, which does not sleep while anybody is in the ring.
 */
static void ring_abandon(struct tcb *owner)
{
    struct cap *heir = &idle_thread.graves;

    if (owner->deleting_next == NULL)
        return;
    if (delete_has_graves(owner)) {
        grave_link(grave_prev(heir), grave_next(&owner->graves));
        grave_link(grave_prev(&owner->graves), heir);
    }
    ring_leave(owner);
}

BOOT_CODE void delete_init(void)
{
    ring_make(&idle_thread);
    idle_thread.deleting_next = &idle_thread;
    idle_thread.deleting_prev = &idle_thread;
    next_owner = &idle_thread;
}

/* ---- containers -------------------------------------------------------------------------- */

/* The number of the last slot of a grave that may hold something. */
static word_t grave_last(const struct cap *grave)
{
    return remains_cap_last_high(grave) << 10 | remains_cap_last_low(grave);
}

static void grave_set_last(struct cap *grave, word_t last)
{
    remains_cap_set_last_high(grave, last >> 10);
    remains_cap_set_last_low(grave, last);
}

/*
 * The remains of a container go into its first slot, and its place among the graves is behind
 * another one.
 */
static void make_remains(struct slot *first, word_t slots, struct cap *behind)
{
    remains_cap_make(&first->cap, 0, 0, 0, 0);
    grave_set_last(&first->cap, slots - 1);
    grave_insert(&first->cap, behind);
}

/*
 * The last capability of a container goes into its first slot, as remains; the content of that slot
 * goes into limbo, which is empty unless it is the slot itself.
 */
static void delete_bury(struct tcb *owner, struct slot *slot)
{
    struct tcb *thread = (struct tcb *)tcb_cap_object(&slot->cap);
    bool is_cnode = cap_type(&slot->cap) == CAP_CNODE;
    word_t slots = is_cnode ? 1u << cnode_cap_radix(&slot->cap) : THREAD_SLOTS;
    struct slot *first = is_cnode ? (struct slot *)cnode_cap_object(&slot->cap)
                                  : thread_slots(thread);
    struct cap *behind = &owner->graves;

    if (!is_cnode && thread == owner)
        behind = grave_prev(behind);
    else if (!is_cnode)
        ring_abandon(thread);
    if (!is_cnode) {
        bound_leave_thread(thread);
        donation_leave_thread(thread);
    }
    if (first != slot) {
        if (!slot_is_empty(first))
            slot_move(&transit, first);
        slot_move(first, slot);
        if (!slot_is_empty(&transit))
            slot_move(&owner->limbo, &transit);
    }
    make_remains(first, slots, behind);
}

/* The first container of the ring: one slot less, or none left. */
static void delete_dig(struct tcb *owner)
{
    struct cap *grave = grave_next(&owner->graves);
    word_t last = grave_last(grave);

    if (last != 0) {
        grave_set_last(grave, last - 1);
        return;
    }
    grave_remove(grave);
    slot_empty((struct slot *)grave);
}

/* The slot to be emptied next; null if the ring's first container has none. */
static struct slot *next_victim(struct tcb *owner)
{
    struct slot *first = (struct slot *)grave_next(&owner->graves);
    word_t last;

    if (!slot_is_empty(&owner->limbo))
        return &owner->limbo;
    last = grave_last(&first->cap);
    return last == 0 || slot_is_empty(&first[last]) ? NULL : &first[last];
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

/* Remove the effects of a capability, by its kind; if preempted, it is still there. */
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
        timing_finalise(cap, last);
        break;
    }
}

/* One step: a slot is emptied, a thread stopped, a container buried, or one slot less is left. */
static void delete_step(struct tcb *owner)
{
    struct slot *victim = next_victim(owner);
    bool last;

    if (victim == NULL) {
        delete_dig(owner);
        return;
    }
    last = slot_is_last(victim);
    if (last && is_container(&victim->cap)) {
        if (is_active(&victim->cap))
            thread_suspend((struct tcb *)tcb_cap_object(&victim->cap));
        else
            delete_bury(owner, victim);
        return;
    }
    if (last && has_notification(&victim->cap)) {
        victim = &irq_slots[irq_handler_cap_irq(&victim->cap)];
        last = slot_is_last(victim);
    }
    slot_leave_thread(victim);
    delete_finalise(victim, last);
    slot_empty(victim);
}

/* The same; an owner that has nothing left leaves the ring at once, for it may be no more. */
static void delete_go_on(struct tcb *owner)
{
    delete_step(owner);
    if (!delete_has_left(owner))
        ring_leave(owner);
}

/*
 * A container that another thread is emptying.  If it is that thread itself, its other work is
 * abandoned, except for its limbo, the last of its slots: only when limbo is empty does the
 * emptying continue.
 */
static void take_grave(struct tcb *owner, struct slot *first)
{
    struct tcb *thread = (struct tcb *)((word_t)first - __builtin_offsetof(struct tcb, cspace));
    struct cap *next = grave_next(&first->cap);

    grave_remove(&first->cap);
    grave_insert(&first->cap, &owner->graves);
    if (next != &thread->graves || cap_type(next) != CAP_NULL)
        return;
    ring_abandon(thread);
}

/*
 * With nothing left of the thread's earlier deletions: take the capability to be deleted now.
 * False if there is none, or if the thread has just deleted itself.
 */
static bool delete_take(struct tcb *owner, struct slot *slot, bool derived)
{
    if (owner->state == THREAD_INACTIVE)
        return false;
    if (derived) {
        if (!slot_has_child(slot))
            return false;
        slot = slot_next(slot);
    }
    if (slot_is_empty(slot))
        return false;
    ring_enter(owner);
    if (cap_type(&slot->cap) == CAP_REMAINS) {
        take_grave(owner, slot);
        return true;
    }
    slot_leave_thread(slot);
    slot_move(&owner->limbo, slot);
    return true;
}

/* One turn; false if all is done. */
static bool delete_turn(struct tcb *owner, struct slot *slot, bool derived)
{
    if (owner->deleting_next == NULL || !delete_has_left(owner))
        return delete_take(owner, slot, derived);
    delete_go_on(owner);
    return true;
}

/*
 * Empty a slot and delete everything that only it led to; or delete in this way all capabilities
 * derived from it.  That may include the capability itself, if it stands in a CNode that is
 * deleted.
 */
PREEMPTIBLE void delete_slot(struct slot *slot, bool derived)
{
    /* preempted: 1 */
    while (delete_turn(current_thread, slot, derived))
        PREEMPTION_POINT(1);
}

/* The owners take turns, the idle thread among them if it has something left. */
static struct tcb *take_owner(void)
{
    struct tcb *owner = next_owner;

    if (owner == &idle_thread && !delete_has_left(owner))
        owner = owner->deleting_next;
    next_owner = owner->deleting_next;
    return owner;
}

/*
 * The idle thread's call: continue what others left, step by step, until the turn is over.  Who was
 * woken runs then, and if nobody does, the idle thread makes its call again.  An interrupt ends the
 * turn, too, but not before a step is done.
 */
PREEMPTIBLE void delete_abandoned(void)
{
    /* preempted: 14 */
    while (delete_is_left()) {
        struct tcb *owner = take_owner();

        if (delete_has_left(owner))
            delete_go_on(owner);
        else
            ring_leave(owner);
        if (timing_turn_is_over()) {
            idle_thread.regs[REG_PC] = (word_t)idle_loop;
            return;
        }
        PREEMPTION_POINT(14);
    }
}
