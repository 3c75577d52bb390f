/* SPDX-License-Identifier: BSD-2-Clause */
/* The system call poll: a receive that does not wait. */
#include <bound.h>

/* A receive through this capability, which may be refused, would wait. */
static bool would_wait(const struct cap *cap)
{
    const struct endpoint *endpoint = (const struct endpoint *)endpoint_cap_object(cap);

    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        return endpoint_cap_can_receive(cap)
            && (endpoint->state == EP_IDLE || endpoint->state == EP_RECEIVING)
            && !bound_has_signal(current_thread);
    case CAP_NOTIFICATION:
        return notification_cap_can_receive(cap)
            && ((const struct notification *)notification_cap_object(cap))->signalled == 0;
    default:
        return false;
    }
}

/* Receive if possible; otherwise fail and change nothing.  The address is looked up twice. */
void syscall_poll(word_t address)
{
    const struct slot *slot = cspace_lookup(current_thread, address);

    if (slot == NULL || !would_wait(&slot->cap)) {
        syscall_receive(address, false);
        return;
    }
    thread_fail_call(current_thread, ERROR_NOTHING);
}
