/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a message, wherever they are. */
#include <kernel.h>

/* Word of the message a thread sends; index < length. */
word_t message_word(const struct tcb *thread, word_t index)
{
    if (index < MESSAGE_REGISTERS)
        return thread->regs[REG_WORDS + index];
    return ((word_t *)in_window((word_t)thread->buffer, IPC_BUFFER_BYTES))[BUFFER_WORDS + index];
}
