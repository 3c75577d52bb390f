/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The five ways into the kernel, after entry.S has saved the registers.
 *
 * The current thread is the one that was interrupted; interrupts are masked.
 * Each handler does its work, then lets the scheduler choose who runs next, and
 * returns to entry.S, which leaves to the then current thread.
 */
#include <kernel.h>
#include <interrupts.h>
#include <machine.h>

void handle_syscall(word_t address, word_t message, word_t number)
{
    switch (number) {
    case SYS_CALL:
        if (fastpath_call(address, message))
            return;
        syscall_invoke(address, message, true, true);
        break;
    case SYS_SEND:
        syscall_invoke(address, message, true, false);
        break;
    case SYS_NB_SEND:
        syscall_invoke(address, message, false, false);
        break;
    case SYS_RECEIVE:
        syscall_receive(address);
        break;
    case SYS_REPLY:
        reply_send(current_thread, &current_thread->caller);
        break;
    case SYS_REPLY_RECEIVE:
        if (fastpath_reply_receive(address, message))
            return;
        reply_send(current_thread, &current_thread->caller);
        syscall_receive(address);
        break;
    case SYS_YIELD:
        sched_yield();
        break;
    default:
        current_thread->regs[REG_BADGE] = SYSCALL_FAILED | ERROR_INVALID_SYSCALL;
        break;
    }
    sched_run();
}

/* The line stays masked until its user acknowledges it. */
void handle_interrupt(void)
{
    word_t irq = interrupts_take();
    struct cap *cap;

    if (irq >= IRQ_LINES)
        return; /* spurious */
    interrupts_mask(irq);
    cap = &irq_slots[irq].cap;
    if (cap_type(cap) == CAP_NOTIFICATION)
        notification_signal((struct notification *)notification_cap_object(cap),
                            notification_cap_badge(cap));
    sched_run();
}

void handle_undefined(void)
{
    fault_raise(current_thread, FAULT_UNDEFINED, current_thread->regs[REG_PC], 0);
    sched_run();
}

void handle_prefetch_abort(void)
{
    fault_raise(current_thread, FAULT_PREFETCH_ABORT, current_thread->regs[REG_PC],
                machine_prefetch_fault_status());
    sched_run();
}

void handle_data_abort(void)
{
    fault_raise(current_thread, FAULT_DATA_ABORT, machine_data_fault_address(),
                machine_data_fault_status());
    sched_run();
}
