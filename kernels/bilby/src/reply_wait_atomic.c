/* SPDX-License-Identifier: BSD-2-Clause */
/* Reply-and-receive in one go: twice the longest message between two interrupts. */
#include <kernel.h>

void reply_receive(word_t address)
{
    reply_send(current_thread, &current_thread->caller);
    syscall_receive(address, true);
}
