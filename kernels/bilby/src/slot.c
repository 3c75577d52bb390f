/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots and the derivation list.
 *
 * The list is the pre-order walk of the derivation tree: a capability stands before its
 * descendants, and they stand before all others.  Two bits record facts that the neighbours do not
 * show: "revocable", this one may have descendants; "first badged", the first of its badge under an
 * unbadged one.
 *
 * Invariants: a->next == b  <=>  b->prev == a; a null capability is in no list.
 */
#include <kernel.h>
#include <lookup.h>
#include <timing.h>

#define REVOCABLE    1u
#define FIRST_BADGED 2u
#define FLAGS        0xfu

static struct slot *pointer(word_t link)
{
    return (struct slot *)(link & ~FLAGS);
}

/* The next in the list; null at its end. */
struct slot *slot_next(const struct slot *slot)
{
    return pointer(slot->next);
}

/* Link a slot's predecessor, if any, to another successor. */
static void set_next(struct slot *slot, const struct slot *next)
{
    if (slot == NULL)
        return;
    slot = slot_at(slot);
    slot->next = (word_t)next | (slot->next & FLAGS);
}

/* Link its successor, if any, to another predecessor. */
static void set_prev(struct slot *slot, const struct slot *prev)
{
    if (slot == NULL)
        return;
    slot = slot_at(slot);
    slot->prev = (word_t)prev | (slot->prev & FLAGS);
}

/* A capability changes its slot, not its place in the list; the new slot is empty. */
void slot_move(struct slot *to, struct slot *from)
{
    struct slot *prev = pointer(from->prev);
    struct slot *next = pointer(from->next);

    lookup_moved(&from->cap);
    *to = *from;
    null_cap_make(&from->cap);
    from->prev = 0;
    from->next = 0;
    set_next(prev, to);
    set_prev(next, to);
    vspace_moved(to, from);
}

/* Pivot to "to", "from" to pivot; if "to" is "from", they change places. */
void slot_rotate(struct slot *to, struct slot *pivot, struct slot *from)
{
    static struct slot spare __attribute__((aligned(16))); /* empty but in here; in the window */

    slot_move(&spare, pivot);
    slot_move(pivot, from);
    slot_move(to, &spare);
}

/* The slot of a thread loses its meaning for the thread. */
void slot_leave_thread(struct slot *slot)
{
    if (cap_type(&slot->cap) != CAP_FRAME || !frame_cap_buffer(&slot->cap))
        return;
    ((struct tcb *)((word_t)slot & ~(sizeof(struct tcb) - 1)))->buffer = NULL;
    frame_cap_set_buffer(&slot->cap, 0);
}

/* Put a capability into an empty slot, right after another slot of the list. */
void slot_insert(struct slot *to, const struct cap *cap, struct slot *after,
                 bool revocable)
{
    struct slot *next;

    after = slot_at(after);
    next = pointer(after->next);
    after->next = (word_t)to | (after->next & FLAGS);
    set_prev(next, to);
    to = slot_at(to);
    READ_LINE(&to->prev);
    to->cap = *cap;
    to->prev = (word_t)after | (revocable ? REVOCABLE | FIRST_BADGED : 0);
    to->next = (word_t)next;
}

/*
 * The first capabilities of objects, in a row of slots: each follows the one before,
 * and differs from it as the second does from the first.
 */
void slot_fill_row(struct slot *row, word_t count, const struct cap *first, const struct cap *second)
{
    word_t low = first->w[0], low_step = second->w[0] - low;
    word_t high = first->w[1], high_step = second->w[1] - high;

    /* bound: RETYPE_OBJECTS_MAX + 1 */
    for (word_t left = count < RETYPE_OBJECTS_MAX ? count : RETYPE_OBJECTS_MAX; left != 0; left--) {
        row = (struct slot *)in_window((word_t)row, sizeof(struct slot));
        FETCH_LINE((word_t *)&row->cap); /* into the cache, to be written there */
        row->cap.w[0] = low;
        row->cap.w[1] = high;
        row->prev = (word_t)(row - 1) | REVOCABLE | FIRST_BADGED;
        row->next = (word_t)(row + 1);
        low += low_step;
        high += high_step;
        row++;
    }
}

/* Both ends of such a row enter the list, right after another slot. */
void slot_insert_row(struct slot *row, word_t count, struct slot *after)
{
    struct slot *last = &row[count - 1];
    struct slot *next;

    after = slot_at(after);
    next = pointer(after->next);
    after->next = (word_t)row | (after->next & FLAGS);
    row->prev = (word_t)after | REVOCABLE | FIRST_BADGED;
    last->next = (word_t)next;
    set_prev(next, last);
}

/* Take a capability out, for those whose disappearance has no other effect. */
void slot_empty(struct slot *slot)
{
    struct slot *prev, *next;

    slot = slot_at(slot);
    prev = pointer(slot->prev);
    next = pointer(slot->next);
    set_next(prev, next);
    set_prev(next, prev);
    READ_LINE(&slot->prev);
    null_cap_make(&slot->cap);
    slot->prev = 0;
    slot->next = 0;
}

/*
 * The capability that a copy of this one would be.  A frame's copy is unmapped.  A unique
 * capability has no copy: untyped memory, device regions, interrupt control, replies, and page
 * tables, whose mapping names one slot.
 */
word_t slot_derive(const struct slot *from, struct cap *result)
{
    *result = from->cap;
    lookup_pass_none(result);
    switch (cap_type(&from->cap)) {
    case CAP_NULL:
        return ERROR_INVALID_CAPABILITY;
    case CAP_UNTYPED:
    case CAP_DEVICE:
    case CAP_IRQ_CONTROL:
    case CAP_REPLY:
    case CAP_PAGE_TABLE:
    case CAP_REMAINS:
        return ERROR_ILLEGAL_OPERATION;
    case CAP_FRAME:
        vspace_forget_mapping(result);
        frame_cap_set_buffer(result, 0);
        return ERROR_NONE;
    default:
        return space_has_copy(result) && timing_has_copy(result) ? ERROR_NONE : ERROR_ILLEGAL_OPERATION;
    }
}

/* Two capabilities are to the same object. */
static bool same_object(const struct cap *a, const struct cap *b)
{
    if (cap_type(a) != cap_type(b))
        return false;
    switch (cap_type(a)) {
    case CAP_CNODE:
    case CAP_TCB:
    case CAP_ENDPOINT:
    case CAP_NOTIFICATION:
    case CAP_PAGE_TABLE:
    case CAP_PAGE_DIRECTORY:
    SPACE_OBJECTS
    TIMING_OBJECTS
        return cnode_cap_object(a) == cnode_cap_object(b); /* all have it in the same place */
    case CAP_FRAME:
        return frame_cap_base(a) == frame_cap_base(b) && frame_cap_size(a) == frame_cap_size(b);
    case CAP_REPLY:
        return reply_cap_object(a) == reply_cap_object(b);
    case CAP_IRQ_HANDLER:
        return irq_handler_cap_irq(a) == irq_handler_cap_irq(b);
    default:
        return false;
    }
}

/* No other capability leads to the object: all that do are neighbours in the list. */
bool slot_is_last(const struct slot *slot)
{
    const struct slot *prev = pointer(slot->prev);
    const struct slot *next = pointer(slot->next);

    return !(prev != NULL && same_object(&prev->cap, &slot->cap))
        && !(next != NULL && same_object(&next->cap, &slot->cap));
}

/* Window address of the first byte that a capability's object takes; 0 if it takes none. */
static word_t first_byte(const struct slot *slot)
{
    switch (cap_type(&slot->cap)) {
    case CAP_UNTYPED:
    case CAP_CNODE:
    case CAP_TCB:
    case CAP_ENDPOINT:
    case CAP_NOTIFICATION:
    case CAP_PAGE_TABLE:
    case CAP_PAGE_DIRECTORY:
    SPACE_OBJECTS
    TIMING_OBJECTS
        return cnode_cap_object(&slot->cap);
    case CAP_FRAME:
        return to_window(frame_cap_base(&slot->cap) << 12);
    case CAP_REMAINS:
        return (word_t)slot;
    default:
        return 0;
    }
}

/* Badged capabilities: an unbadged one is above all, a badged one above copies of itself. */
static bool is_under_badge(word_t badge, const struct slot *below, word_t below_badge)
{
    return badge == 0 || (badge == below_badge && !(below->prev & FIRST_BADGED));
}

/* The capability in "below", which follows "above" in the list, was derived from it. */
static bool is_derived(const struct slot *above, const struct slot *below)
{
    const struct cap *cap = &above->cap;

    if (!(above->prev & REVOCABLE))
        return false;
    switch (cap_type(cap)) {
    case CAP_UNTYPED:
        return first_byte(below) - untyped_cap_object(cap) < 1u << untyped_cap_size_bits(cap);
    case CAP_DEVICE: /* below stands a region or a frame: both have the page in the same place */
        return frame_cap_base(&below->cap) - device_cap_base(cap)
            < 1u << (device_cap_size_bits(cap) - 12);
    case CAP_IRQ_CONTROL:
        return cap_type(&below->cap) == CAP_IRQ_HANDLER;
    case CAP_ENDPOINT:
        return same_object(cap, &below->cap)
            && is_under_badge(endpoint_cap_badge(cap), below, endpoint_cap_badge(&below->cap));
    case CAP_NOTIFICATION:
        return same_object(cap, &below->cap)
            && is_under_badge(notification_cap_badge(cap), below,
                              notification_cap_badge(&below->cap));
    default:
        return same_object(cap, &below->cap);
    }
}

/* Something was derived from this capability and still exists. */
bool slot_has_child(const struct slot *slot)
{
    const struct slot *next = pointer(slot->next);

    return next != NULL && is_derived(slot_at(slot), slot_at(next));
}

/* A new badge begins a family that can be revoked by itself. */
static bool begins_family(const struct cap *cap, const struct cap *from)
{
    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        return endpoint_cap_badge(cap) != endpoint_cap_badge(from);
    case CAP_NOTIFICATION:
        return notification_cap_badge(cap) != notification_cap_badge(from);
    default:
        return false;
    }
}

/* Put a derived capability into an empty slot. */
void slot_copy(struct slot *to, const struct cap *cap, struct slot *from)
{
    slot_insert(to, cap, from, begins_family(cap, &from->cap));
}
