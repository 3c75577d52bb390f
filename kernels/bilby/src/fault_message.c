/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults as messages: the information for the handler, and the effect of its answer. */
#include <timing.h>
#include <machine.h>

/* The message that the handler receives; api.h has its words. */
void fault_write_message(struct tcb *thread, struct tcb *handler)
{
    word_t length = MESSAGE_REGISTERS;

    handler->regs[REG_WORDS] = thread->regs[REG_PC];
    handler->regs[REG_WORDS + 1] = thread->regs[REG_SP];
    handler->regs[REG_WORDS + 2] = thread->regs[REG_CPSR];
    handler->regs[REG_WORDS + 3] = thread->fault_info[0];
    if (handler->buffer != NULL) {
        handler->buffer->w[BUFFER_WORDS + MESSAGE_REGISTERS] = thread->fault_info[1];
        length = FAULT_WORDS;
    }
    handler->regs[REG_MESSAGE] = message_make(length, 0, 0, thread->fault);
}

/* Apply the handler's answer; false if the thread is to stay stopped. */
bool fault_read_answer(struct tcb *thread, struct tcb *handler)
{
    word_t message = handler->regs[REG_MESSAGE];
    word_t length = message_length(message);
    word_t pc = handler->regs[REG_WORDS];
    word_t cpsr = thread->regs[REG_CPSR];

    thread->fault = 0;
    if (message_label(message) != 0) {
        thread->state = THREAD_INACTIVE;
        donation_stop(thread);
        return false;
    }
    if (length >= 2)
        thread->regs[REG_SP] = handler->regs[REG_WORDS + 1];
    if (length >= 3)
        cpsr = handler->regs[REG_WORDS + 2];
    else if (length >= 1 && pc != thread->regs[REG_PC])
        cpsr &= ~MACHINE_CPSR_IT; /* the block that it was in is not where it goes */
    if (length >= 1)
        thread_set_pc(thread, pc, cpsr);
    return true;
}
