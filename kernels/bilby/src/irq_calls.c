/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invocations of interrupt control and of interrupt handlers.
 *
 * A line is masked until its handler capability acknowledges it, and again from
 * each interrupt to the next acknowledgement.  The line of the kernel's own timer is nobody's.
 */
#include <kernel.h>
#include <interrupts.h>

/* Make the one handler capability of a line. */
word_t decode_irq_control(const struct invocation *call)
{
    struct slot *to = NULL;
    struct cap cap;
    word_t irq, error;

    if (call->label != LABEL_IRQ_GET)
        return ERROR_ILLEGAL_OPERATION;

    if (call->length < 3 || call->extra_count < 1)
        return ERROR_TRUNCATED;

    irq = message_word(current_thread, 0);
    if (irq >= IRQ_LINES || irq == TICK_IRQ)
        return ERROR_RANGE;

    if (irq_is_issued(irq))
        return ERROR_ILLEGAL_OPERATION;

    error = cspace_find_empty(&call->extra[0]->cap, message_word(current_thread, 1),
                              message_word(current_thread, 2), &to);
    if (error != ERROR_NONE)
        return error;

    irq_issue(irq);
    irq_handler_cap_make(&cap, irq);
    slot_insert(to, &cap, call->slot, true);
    return ERROR_NONE;
}

/* Signal this notification at each interrupt, until another is set after clearing. */
static word_t decode_set_notification(word_t irq, const struct invocation *call)
{
    struct slot *from;
    struct cap cap;

    if (call->extra_count < 1)
        return ERROR_TRUNCATED;

    from = call->extra[0];
    if (cap_type(&from->cap) != CAP_NOTIFICATION)
        return ERROR_INVALID_CAPABILITY;

    if (!notification_cap_can_send(&from->cap))
        return ERROR_NO_RIGHT;

    if (!slot_is_empty(&irq_slots[irq]))
        return ERROR_SLOT_OCCUPIED;

    slot_derive(from, &cap);
    slot_copy(&irq_slots[irq], &cap, from);
    return ERROR_NONE;
}

word_t decode_irq_handler(const struct invocation *call)
{
    word_t irq = irq_handler_cap_irq(&call->slot->cap);

    switch (call->label) {
    case LABEL_IRQ_SET_NOTIFICATION:
        return decode_set_notification(irq, call);
    case LABEL_IRQ_CLEAR_NOTIFICATION:
        delete_slot(&irq_slots[irq], false);
        return ERROR_NONE;
    case LABEL_IRQ_ACKNOWLEDGE:
        interrupts_unmask(irq);
        return ERROR_NONE;
    default:
        return ERROR_ILLEGAL_OPERATION;
    }
}
