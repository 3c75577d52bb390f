/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recycling: delete all that was derived from a capability, then make the object
 * ready for new users: an endpoint or a notification that nobody waits on, a thread
 * that is suspended.  With a badged endpoint capability, only sending with its
 * badge is ended.  The capability must have every right that its kind can have.
 */
#include <kernel.h>

static void reset_endpoint(const struct cap *cap)
{
    struct endpoint *endpoint = (struct endpoint *)endpoint_cap_object(cap);

    /* If another thread has begun to recycle all of it, that goes on. */
    if (endpoint_cap_badge(cap) != 0 && endpoint->state != EP_CLOSED)
        abort_badge(endpoint, endpoint_cap_badge(cap));
    else
        endpoint_recycle(endpoint);
}

static bool can_recycle(const struct cap *cap)
{
    return cap_type(cap) == CAP_ENDPOINT || cap_type(cap) == CAP_NOTIFICATION
        || cap_type(cap) == CAP_TCB;
}

static bool has_every_right(const struct cap *cap)
{
    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        return endpoint_cap_can_send(cap) && endpoint_cap_can_receive(cap)
            && endpoint_cap_can_grant(cap);
    case CAP_NOTIFICATION:
        return notification_cap_can_send(cap) && notification_cap_can_receive(cap);
    default:
        return true;
    }
}

/* Whether a capability can be recycled. */
word_t recycle_check(const struct cap *cap)
{
    if (!can_recycle(cap))
        return ERROR_ILLEGAL_OPERATION;
    return has_every_right(cap) ? ERROR_NONE : ERROR_NO_RIGHT;
}

/* With all derived capabilities deleted: the object. */
void recycle_reset(struct slot *slot)
{
    switch (cap_type(&slot->cap)) {
    case CAP_ENDPOINT:
        reset_endpoint(&slot->cap);
        break;
    case CAP_NOTIFICATION:
        notification_recycle((struct notification *)notification_cap_object(&slot->cap));
        break;
    case CAP_TCB:
        thread_suspend((struct tcb *)tcb_cap_object(&slot->cap));
        break;
    default:
        break; /* it stood in a deleted object */
    }
}
