/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invocations of CNodes: copy a capability, or mint one with fewer rights and a badge or guard;
 * move it, mutate it (move it with a new guard), rotate (two moves at once); delete it, revoke its
 * derived capabilities, recycle its object.
 */
#include <timing.h>
#include <lookup.h>

#define WORD_TO_INDEX   0
#define WORD_TO_DEPTH   1
#define WORD_FROM_INDEX 2
#define WORD_FROM_DEPTH 3
#define WORD_RIGHTS     4
#define WORD_DATA       5
#define WORD_MOVE_DATA  4
#define WORD_PIVOT_INDEX 2
#define WORD_ROTATE_FROM_INDEX 4
#define WORD_ROTATE_FROM_DEPTH 5

/* Remove the rights that are not given. */
static void restrict_rights(struct cap *cap, word_t rights)
{
    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        if (!(rights & RIGHT_SEND))
            endpoint_cap_set_can_send(cap, 0);
        if (!(rights & RIGHT_RECEIVE))
            endpoint_cap_set_can_receive(cap, 0);
        if (!(rights & RIGHT_GRANT))
            endpoint_cap_set_can_grant(cap, 0);
        break;
    case CAP_NOTIFICATION:
        if (!(rights & RIGHT_SEND))
            notification_cap_set_can_send(cap, 0);
        if (!(rights & RIGHT_RECEIVE))
            notification_cap_set_can_receive(cap, 0);
        break;
    case CAP_FRAME:
        if (!(rights & RIGHT_WRITE))
            frame_cap_set_can_write(cap, 0);
        break;
    default:
        break;
    }
}

static word_t set_guard(struct cap *cap, word_t data)
{
    word_t size = guard_data_size(data);
    word_t value = guard_data_value(data);

    if (size + cnode_cap_radix(cap) > ADDRESS_BITS || value >> size != 0)
        return ERROR_RANGE;
    cnode_cap_set_guard_size(cap, size);
    cnode_cap_set_guard(cap, value);
    return ERROR_NONE;
}

/* Apply mint's last argument.  A badge cannot be changed, only given. */
static word_t set_data(struct cap *cap, word_t data)
{
    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        if (data >> BADGE_BITS != 0)
            return ERROR_RANGE;
        if (endpoint_cap_badge(cap) != 0)
            return ERROR_ILLEGAL_OPERATION;
        endpoint_cap_set_badge(cap, data);
        return ERROR_NONE;
    case CAP_NOTIFICATION:
        if (data >> BADGE_BITS != 0)
            return ERROR_RANGE;
        if (notification_cap_badge(cap) != 0)
            return ERROR_ILLEGAL_OPERATION;
        notification_cap_set_badge(cap, data);
        return ERROR_NONE;
    case CAP_CNODE:
        return set_guard(cap, data);
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}

/*
 * Mutate's argument: a guard.  An existing capability cannot get a badge, for copies of it may
 * exist too, and they would not have it.
 */
static word_t set_guard_only(struct cap *cap, word_t data)
{
    return cap_type(cap) == CAP_CNODE ? set_guard(cap, data) : ERROR_ILLEGAL_OPERATION;
}

/* A slot by the words of the message at "at": index and depth below a CNode. */
static word_t cnode_find(const struct cap *root, word_t at, struct slot **found)
{
    return cspace_find(root, message_word(current_thread, at),
                       message_word(current_thread, at + 1), found);
}

static word_t cnode_find_empty(const struct invocation *call, struct slot **found)
{
    return cspace_find_empty(&call->slot->cap, message_word(current_thread, WORD_TO_INDEX),
                             message_word(current_thread, WORD_TO_DEPTH), found);
}

/* Copy and mint. */
static word_t decode_copy(const struct invocation *call, bool mint)
{
    struct slot *to = NULL;
    struct slot *from = NULL;
    struct cap cap;
    word_t error;

    if (call->length <= (mint ? WORD_DATA : WORD_RIGHTS))
        return ERROR_TRUNCATED;

    error = cnode_find_empty(call, &to);
    if (error != ERROR_NONE)
        return error;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    error = cnode_find(&call->extra[0]->cap, WORD_FROM_INDEX, &from);
    if (error != ERROR_NONE)
        return error;

    error = slot_derive(from, &cap);
    if (error != ERROR_NONE)
        return error;

    restrict_rights(&cap, message_word(current_thread, WORD_RIGHTS));
    if (mint)
        error = set_data(&cap, message_word(current_thread, WORD_DATA));
    if (error != ERROR_NONE)
        return error;

    slot_copy(to, &cap, from);
    return ERROR_NONE;
}

/* Move and mutate.  The capability keeps its place among those derived. */
static word_t decode_move(const struct invocation *call, bool mutate)
{
    struct slot *to = NULL;
    struct slot *from = NULL;
    struct cap cap;
    word_t error;

    if (call->length <= (mutate ? WORD_MOVE_DATA : WORD_FROM_DEPTH) || call->extra_count < 1)
        return ERROR_TRUNCATED;

    error = cnode_find_empty(call, &to);
    if (error != ERROR_NONE)
        return error;

    error = cnode_find(&call->extra[0]->cap, WORD_FROM_INDEX, &from);
    if (error != ERROR_NONE)
        return error;

    if (slot_is_empty(from))
        return ERROR_INVALID_CAPABILITY;

    cap = from->cap;
    lookup_pass_none(&cap);
    if (mutate)
        error = set_guard_only(&cap, message_word(current_thread, WORD_MOVE_DATA));
    if (error != ERROR_NONE)
        return error;

    slot_move(to, from);
    to->cap = cap;
    return ERROR_NONE;
}

/* Pivot goes to the empty slot, from goes to pivot; from and to may be the same. */
static word_t decode_rotate(const struct invocation *call)
{
    struct slot *to = NULL;
    struct slot *pivot = NULL;
    struct slot *from = NULL;
    word_t error;

    if (call->length <= WORD_ROTATE_FROM_DEPTH || call->extra_count < 2)
        return ERROR_TRUNCATED;

    error = cnode_find(&call->slot->cap, WORD_TO_INDEX, &to);
    if (error != ERROR_NONE)
        return error;

    error = cnode_find(&call->extra[0]->cap, WORD_PIVOT_INDEX, &pivot);
    if (error != ERROR_NONE)
        return error;

    error = cnode_find(&call->extra[1]->cap, WORD_ROTATE_FROM_INDEX, &from);
    if (error != ERROR_NONE)
        return error;

    if (pivot == from || pivot == to)
        return ERROR_INVALID_ARGUMENT;

    if (to != from && !slot_is_empty(to))
        return ERROR_SLOT_OCCUPIED;

    if (slot_is_empty(pivot) || slot_is_empty(from))
        return ERROR_INVALID_CAPABILITY;

    slot_rotate(to, pivot, from);
    return ERROR_NONE;
}

/* Delete, revoke and recycle; each can be preempted. */
static word_t decode_one(const struct invocation *call)
{
    struct slot *slot = NULL;
    word_t error;

    if (call->length <= WORD_TO_DEPTH)
        return ERROR_TRUNCATED;

    error = cnode_find(&call->slot->cap, WORD_TO_INDEX, &slot);
    if (error != ERROR_NONE)
        return error;

    if (call->label == LABEL_CNODE_RECYCLE)
        error = recycle_check(&slot->cap);
    if (error != ERROR_NONE)
        return error;

    delete_slot(slot, call->label != LABEL_CNODE_DELETE);
    if (call->label == LABEL_CNODE_RECYCLE)
        recycle_reset(slot);
    return ERROR_NONE;
}

word_t decode_cnode(const struct invocation *call)
{
    switch (call->label) {
    case LABEL_CNODE_COPY:
        return decode_copy(call, false);
    case LABEL_CNODE_MINT:
        return decode_copy(call, true);
    case LABEL_CNODE_MOVE:
        return decode_move(call, false);
    case LABEL_CNODE_MUTATE:
        return decode_move(call, true);
    case LABEL_CNODE_ROTATE:
        return decode_rotate(call);
    case LABEL_CNODE_DELETE:
    case LABEL_CNODE_REVOKE:
    case LABEL_CNODE_RECYCLE:
        return decode_one(call);
    default:
        return timing_decode_cnode(call);
    }
}
