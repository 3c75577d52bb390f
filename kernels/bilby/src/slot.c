/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots and the derivation list.
 *
 * The list is the pre-order walk of the derivation tree: whatever was derived
 * from a capability stands after it, before anything that was not.  Two bits say
 * what cannot be told from neighbours: "revocable", this one may have
 * descendants; "first badged", the first of its badge under an unbadged one.
 *
 * Invariants: a->next == b  <=>  b->prev == a; a null capability is in no list.
 */
#include <kernel.h>

#define REVOCABLE    1u
#define FIRST_BADGED 2u
#define FLAGS        0xfu

static struct slot *pointer(word_t link)
{
    return (struct slot *)(link & ~FLAGS);
}

bool slot_is_empty(const struct slot *slot)
{
    return cap_type(&slot->cap) == CAP_NULL;
}

/* Put a capability into an empty slot, right after another slot of the list. */
void slot_insert(struct slot *to, const struct cap *cap, struct slot *after,
                 bool revocable)
{
    struct slot *next = pointer(after->next);

    to->cap = *cap;
    to->prev = (word_t)after | (revocable ? REVOCABLE | FIRST_BADGED : 0);
    to->next = (word_t)next;
    after->next = (word_t)to | (after->next & FLAGS);
    if (next != NULL)
        next->prev = (word_t)to | (next->prev & FLAGS);
}

/* Take a capability out, for those whose disappearance has no other effect. */
void slot_empty(struct slot *slot)
{
    struct slot *prev = pointer(slot->prev);
    struct slot *next = pointer(slot->next);

    if (prev != NULL)
        prev->next = (word_t)next | (prev->next & FLAGS);
    if (next != NULL)
        next->prev = (word_t)prev | (next->prev & FLAGS);
    null_cap_make(&slot->cap);
    slot->prev = 0;
    slot->next = 0;
}

/*
 * The capability that a copy of this one would be.  A frame's copy is unmapped.
 * What must stay unique has no copy: untyped memory, interrupt control, replies.
 */
word_t slot_derive(const struct slot *from, struct cap *result)
{
    *result = from->cap;
    switch (cap_type(&from->cap)) {
    case CAP_NULL:
        return ERROR_INVALID_CAPABILITY;
    case CAP_UNTYPED:
    case CAP_IRQ_CONTROL:
    case CAP_REPLY:
        return ERROR_ILLEGAL_OPERATION;
    case CAP_FRAME:
        frame_cap_set_entry(result, 0);
        return ERROR_NONE;
    default:
        return ERROR_NONE;
    }
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

/* Put what was derived from a slot into an empty one. */
void slot_copy(struct slot *to, const struct cap *cap, struct slot *from)
{
    slot_insert(to, cap, from, begins_family(cap, &from->cap));
}
