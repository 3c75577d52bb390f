/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls: find the capability, check the right, act by its kind.
 *
 * Addresses that one system call can resolve (each of up to 32 levels):
 *   reply-and-receive: 11.  The answer: the caller's receive slot (root, index)
 *     and 3 capabilities; the endpoint; a waiting sender's message: 2 and 3.
 *   call, send: 6.  The endpoint, and one message.
 *   poll: 7.  The endpoint twice, and one message.
 *   invocation: 7.  The object, 3 capabilities, and three more by rotate.
 * All of a phase are found before it changes anything (lookup_*.c).
 */
#include <bound.h>
#include <lookup.h>
#include <timing.h>

/* Look up the capabilities that an invocation sends. */
static word_t find_extra(struct invocation *call, word_t message)
{
    word_t count = message_extra(message);

    if (count != 0 && current_thread->buffer == NULL)
        return ERROR_TRUNCATED;
    if (lookup_row(current_thread, count, call->extra, &call->extra_count))
        return call->extra_count == count ? ERROR_NONE : ERROR_LOOKUP_FAILED;
    /* bound: EXTRA_CAPS_MAX + 1: count is a two-bit field */
    for (word_t i = 0; i < count; i++) {
        struct slot *slot = cspace_lookup(current_thread,
                                          current_thread->buffer->w[BUFFER_CAPS + i]);

        if (slot == NULL)
            return ERROR_LOOKUP_FAILED;
        call->extra[i] = slot_at(slot);
    }
    call->extra_count = count;
    return ERROR_NONE;
}

/* The message as an invocation: its fields, before any kind of object is known. */
static word_t read_invocation(struct invocation *call, struct slot *slot, word_t message)
{
    word_t length = message_length(message);

    if (length > MESSAGE_WORDS_MAX)
        return ERROR_RANGE;
    if (length > MESSAGE_REGISTERS && current_thread->buffer == NULL)
        return ERROR_TRUNCATED;
    call->slot = slot;
    call->label = message_label(message);
    call->length = length;
    return find_extra(call, message);
}

static word_t invocation_dispatch(const struct invocation *call)
{
    switch (cap_type(&call->slot->cap)) {
    case CAP_UNTYPED:
    case CAP_DEVICE:
        return decode_untyped(call);
    case CAP_CNODE:
        return decode_cnode(call);
    case CAP_TCB:
        return decode_tcb(call);
    case CAP_FRAME:
        return decode_frame(call);
    case CAP_PAGE_TABLE:
        return decode_page_table(call);
    case CAP_IRQ_CONTROL:
        return decode_irq_control(call);
    case CAP_IRQ_HANDLER:
        return decode_irq_handler(call);
    default:
        return timing_decode(call);
    }
}

/* An operation on an object; its error code is the label of the result. */
static void invoke_object(struct slot *slot, word_t message)
{
    struct invocation call;
    word_t error = read_invocation(&call, slot, message);

    if (error == ERROR_NONE)
        error = invocation_dispatch(&call);
    current_thread->regs[REG_BADGE] = 0;
    current_thread->regs[REG_MESSAGE] = message_make(error >> ANSWER_SHIFT, 0, 0, error);
}

/* Call, send and non-blocking send: SEND_ bits. */
void syscall_invoke(word_t address, word_t message, word_t how)
{
    struct slot *slot = cspace_lookup(current_thread, address);
    struct cap *cap;

    if (slot == NULL) {
        thread_fail_call(current_thread, ERROR_LOOKUP_FAILED);
        return;
    }
    slot = slot_at(slot);
    cap = &slot->cap;
    switch (cap_type(cap)) {
    case CAP_NULL:
        thread_fail_call(current_thread, ERROR_INVALID_CAPABILITY);
        return;
    case CAP_ENDPOINT:
        if (!endpoint_cap_can_send(cap)) {
            thread_fail_call(current_thread, ERROR_NO_RIGHT);
            return;
        }
        endpoint_send(current_thread, (struct endpoint *)endpoint_cap_object(cap),
                      endpoint_cap_badge(cap), how, endpoint_cap_can_grant(cap));
        return;
    case CAP_NOTIFICATION:
        if (!notification_cap_can_send(cap)) {
            thread_fail_call(current_thread, ERROR_NO_RIGHT);
            return;
        }
        current_thread->regs[REG_BADGE] = 0;
        current_thread->regs[REG_MESSAGE] = 0;
        notification_signal((struct notification *)notification_cap_object(cap),
                            notification_cap_badge(cap));
        return;
    default:
        if (!(how & SEND_CALL)) {
            thread_fail_call(current_thread, ERROR_ILLEGAL_OPERATION);
            return;
        }
        invoke_object(slot, message);
    }
}

/*
 * Receive a message or a signal.  A call still unanswered is given up; "answered": there is none, as
 * the same system call has answered it.
 */
void syscall_receive(word_t address, bool answered)
{
    struct slot *slot = cspace_lookup(current_thread, address);
    struct cap *cap;

    if (slot == NULL) {
        thread_fail_call(current_thread, ERROR_LOOKUP_FAILED);
        return;
    }
    slot = slot_at(slot);
    cap = &slot->cap;
    switch (cap_type(cap)) {
    case CAP_ENDPOINT:
        if (!endpoint_cap_can_receive(cap)) {
            thread_fail_call(current_thread, ERROR_NO_RIGHT);
            return;
        }
        if (!answered && !slot_is_empty(&current_thread->caller))
            slot_empty(&current_thread->caller);
        if (bound_has_signal(current_thread)
            && donation_has_time_for(notification_at(current_thread->bound), current_thread)) {
            donation_for_signal(notification_at(current_thread->bound), current_thread);
            notification_wait(current_thread, notification_at(current_thread->bound));
            current_thread->regs[REG_BADGE] |= BOUND_SIGNAL;
            return;
        }
        endpoint_receive(current_thread, (struct endpoint *)endpoint_cap_object(cap),
                         endpoint_cap_can_grant(cap));
        return;
    case CAP_NOTIFICATION:
        if (!notification_cap_can_receive(cap)) {
            thread_fail_call(current_thread, ERROR_NO_RIGHT);
            return;
        }
        notification_wait(current_thread,
                          (struct notification *)notification_cap_object(cap));
        return;
    default:
        thread_fail_call(current_thread, ERROR_INVALID_CAPABILITY);
        return;
    }
}
