/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invocations of CNodes: copy a capability, or mint one with fewer rights and a
 * badge or guard.  (Move, mutate, rotate, delete, revoke: later.)
 */
#include <kernel.h>

#define WORD_TO_INDEX   0
#define WORD_TO_DEPTH   1
#define WORD_FROM_INDEX 2
#define WORD_FROM_DEPTH 3
#define WORD_RIGHTS     4
#define WORD_DATA       5

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

/* The slot to copy from: its address below the CNode that was sent. */
static word_t find_source(const struct invocation *call, struct slot **found)
{
    const struct cap *root;
    word_t depth = message_word(current_thread, WORD_FROM_DEPTH);

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    root = &call->extra[0]->cap;
    if (cap_type(root) != CAP_CNODE)
        return ERROR_INVALID_CAPABILITY;

    if (depth < 1 || depth > ADDRESS_BITS)
        return ERROR_RANGE;

    *found = cspace_resolve(root, message_word(current_thread, WORD_FROM_INDEX), depth);
    return *found == NULL ? ERROR_LOOKUP_FAILED : ERROR_NONE;
}

word_t decode_cnode(const struct invocation *call)
{
    struct slot *to = NULL;
    struct slot *from = NULL;
    struct cap cap;
    bool mint = call->label == LABEL_CNODE_MINT;
    word_t error;

    if (call->label != LABEL_CNODE_COPY && !mint)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length <= (mint ? WORD_DATA : WORD_RIGHTS))
        return ERROR_TRUNCATED;

    error = cspace_find_empty(&call->slot->cap, message_word(current_thread, WORD_TO_INDEX),
                              message_word(current_thread, WORD_TO_DEPTH), &to);
    if (error != ERROR_NONE)
        return error;

    error = find_source(call, &from);
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
