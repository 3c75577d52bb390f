/* SPDX-License-Identifier: BSD-2-Clause */
/* Invocations of a thread that does not run: read registers, unconfigure. */
#include <kernel.h>

/*
 * The words of write registers, into the caller's message; the caller is another thread, for it
 * runs.  Where a call was ended, the pc is behind it.
 */
word_t stopped_read_registers(const struct tcb *thread)
{
    word_t *buffer;

    if (thread->state != THREAD_INACTIVE)
        return ERROR_ILLEGAL_OPERATION;

    if (current_thread->buffer == NULL)
        return ERROR_TRUNCATED;

    current_thread->regs[REG_WORDS] = thread->regs[REG_PC];
    current_thread->regs[REG_WORDS + 1] = thread->regs[REG_SP];
    current_thread->regs[REG_WORDS + 2] = thread->regs[REG_CPSR];
    current_thread->regs[REG_WORDS + 3] = thread->regs[0];
    buffer = &current_thread->buffer->w[BUFFER_WORDS + 3];
    /* bound: GENERAL_REGISTERS */
    for (word_t i = 1; i < GENERAL_REGISTERS; i++)
        buffer[i] = thread->regs[i];
    buffer[GENERAL_REGISTERS] = thread->regs[REG_LR];
    return (word_t)(3 + GENERAL_REGISTERS + 1) << ANSWER_SHIFT;
}

/*
 * A thread that does not run loses its configuration.  It can be preempted: then it can not be
 * resumed, for its capability space goes first, and the rest when the call is made again.
 */
word_t stopped_unconfigure(struct tcb *thread)
{
    if (thread->state != THREAD_INACTIVE)
        return ERROR_ILLEGAL_OPERATION;

    delete_slot(&thread->cspace, false);
    delete_slot(&thread->vspace, false);
    delete_slot(&thread->buffer_frame, false);
    return ERROR_NONE;
}
