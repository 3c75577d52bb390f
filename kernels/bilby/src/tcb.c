/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invocations of threads: configure and unconfigure, read and write registers, resume, suspend,
 * priority, bind and unbind a notification.
 */
#include <kernel.h>
#include <timing.h>

#define WORDS_CONFIGURE 2
#define WORDS_REGISTERS (3 + GENERAL_REGISTERS + 1)

/* The frame of a message buffer: memory of its own, that the thread may write. */
static word_t check_buffer(const struct cap *frame, word_t offset)
{
    if (cap_type(frame) != CAP_FRAME)
        return ERROR_INVALID_CAPABILITY;

    if (frame_cap_device(frame))
        return ERROR_ILLEGAL_OPERATION;

    if (!frame_cap_can_write(frame))
        return ERROR_NO_RIGHT;

    if (offset % IPC_BUFFER_BYTES != 0)
        return ERROR_ALIGNMENT;

    if (offset >> (12 + 4 * frame_cap_size(frame)) != 0)
        return ERROR_RANGE;

    return ERROR_NONE;
}

static void copy_into(struct slot *to, struct slot *from)
{
    struct cap cap;

    slot_derive(from, &cap);
    slot_copy(to, &cap, from);
}

static void set_buffer(struct tcb *thread, struct slot *frame, word_t offset)
{
    word_t base = to_window(frame_cap_base(&frame->cap) << 12);

    copy_into(&thread->buffer_frame, frame);
    frame_cap_set_buffer(&thread->buffer_frame.cap, 1);
    thread->buffer = (struct ipc_buffer *)(base + offset);
}

/* Capability space, address space, fault handler, message buffer (if sent), of a thread without. */
static word_t decode_configure(struct tcb *thread, const struct invocation *call)
{
    word_t error;

    if (call->length < WORDS_CONFIGURE || call->extra_count < 2)
        return ERROR_TRUNCATED;

    if (!slot_is_empty(&thread->cspace) || !slot_is_empty(&thread->vspace)
        || !slot_is_empty(&thread->buffer_frame))
        return ERROR_ILLEGAL_OPERATION;

    if (cap_type(&call->extra[0]->cap) != CAP_CNODE
        || cap_type(&call->extra[1]->cap) != CAP_PAGE_DIRECTORY
        || space_directory(&call->extra[1]->cap) == NULL)
        return ERROR_INVALID_CAPABILITY;

    if (call->extra_count == 3) {
        error = check_buffer(&call->extra[2]->cap, message_word(current_thread, 1));
        if (error != ERROR_NONE)
            return error;
    }

    if (slot_is_empty(&thread->reply))
        thread_init(thread);
    copy_into(&thread->cspace, call->extra[0]);
    copy_into(&thread->vspace, call->extra[1]);
    thread->fault_handler = message_word(current_thread, 0);
    if (call->extra_count == 3)
        set_buffer(thread, call->extra[2], message_word(current_thread, 1));
    return ERROR_NONE;
}

/* Only of a thread that is not started or was stopped. */
static word_t decode_write_registers(struct tcb *thread, const struct invocation *call)
{
    if (call->length < WORDS_REGISTERS)
        return ERROR_TRUNCATED;

    if (thread->state != THREAD_INACTIVE)
        return ERROR_ILLEGAL_OPERATION;

    thread_set_pc(thread, message_word(current_thread, 0), message_word(current_thread, 2));
    thread->regs[REG_SP] = message_word(current_thread, 1);
    /* bound: GENERAL_REGISTERS + 1 */
    for (word_t i = 0; i < GENERAL_REGISTERS; i++)
        thread->regs[i] = message_word(current_thread, 3 + i);
    thread->regs[REG_LR] = message_word(current_thread, 3 + GENERAL_REGISTERS);
    return ERROR_NONE;
}

static word_t decode_resume(struct tcb *thread)
{
    if (thread->state != THREAD_INACTIVE || slot_is_empty(&thread->cspace))
        return ERROR_ILLEGAL_OPERATION;

    thread->fault = 0;
    thread_wake(thread);
    return ERROR_NONE;
}

static word_t decode_set_priority(struct tcb *thread, const struct invocation *call)
{
    word_t priority;

    if (call->length < 1)
        return ERROR_TRUNCATED;

    priority = message_word(current_thread, 0);
    if (priority > timing_control_priority(current_thread))
        return ERROR_RANGE;

    timing_set_priority(thread, priority);
    return ERROR_NONE;
}

word_t decode_tcb(const struct invocation *call)
{
    struct tcb *thread = (struct tcb *)tcb_cap_object(&call->slot->cap);

    switch (call->label) {
    case LABEL_TCB_CONFIGURE:
        return decode_configure(thread, call);
    case LABEL_TCB_WRITE_REGISTERS:
        return decode_write_registers(thread, call);
    case LABEL_TCB_READ_REGISTERS:
        return stopped_read_registers(thread);
    case LABEL_TCB_UNCONFIGURE:
        return stopped_unconfigure(thread);
    case LABEL_TCB_BIND:
        return bound_bind(thread, call);
    case LABEL_TCB_UNBIND:
        return bound_unbind(thread);
    case LABEL_TCB_RESUME:
        return decode_resume(thread);
    case LABEL_TCB_SUSPEND:
        thread_suspend(thread);
        return ERROR_NONE;
    case LABEL_TCB_SET_PRIORITY:
        return decode_set_priority(thread, call);
    default:
        return timing_decode_tcb(thread, call);
    }
}
