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

/* What replying says to the thread that replies. */
static void note_reply(word_t error)
{
    current_thread->regs[REG_BADGE] = error == ERROR_NONE ? 0 : SYSCALL_FAILED | error;
}

/* A system call, but for the choice of who runs next; ERROR_PREEMPTED or ERROR_NONE. */
static word_t dispatch(word_t address, word_t message, word_t number)
{
    switch (number) {
    case SYS_CALL:
        return syscall_invoke(address, message, true, true);
    case SYS_SEND:
        return syscall_invoke(address, message, true, false);
    case SYS_NB_SEND:
        return syscall_invoke(address, message, false, false);
    case SYS_RECEIVE:
        syscall_receive(address);
        return ERROR_NONE;
    case SYS_REPLY:
        note_reply(reply_send(current_thread, &current_thread->caller));
        return ERROR_NONE;
    case SYS_REPLY_RECEIVE:
        return reply_receive(address);
    case SYS_YIELD:
        sched_yield();
        return ERROR_NONE;
    default:
        current_thread->regs[REG_BADGE] = SYSCALL_FAILED | ERROR_INVALID_SYSCALL;
        return ERROR_NONE;
    }
}

/* The pc back onto the SVC: the thread makes the call again when it runs next. */
static void make_again(struct tcb *thread)
{
    thread->regs[REG_PC] -= thread->regs[REG_CPSR] & CPSR_THUMB ? 2 : 4;
}

/* True if it was preempted: entry.S goes on with handle_interrupt, which schedules. */
bool handle_syscall(word_t address, word_t message, word_t number)
{
    const struct cap *direct;

    if (number == SYS_CALL) {
        direct = fastpath_call_applies(address, message);
        if (direct != NULL) {
            fastpath_call(direct, message);
            return false;
        }
    }
    if (number == SYS_REPLY_RECEIVE) {
        direct = fastpath_reply_receive_applies(address, message);
        if (direct != NULL) {
            fastpath_reply_receive(direct, message);
            return false;
        }
    }
    if (dispatch(address, message, number) == ERROR_PREEMPTED) {
        make_again(current_thread);
        return true;
    }
    sched_run();
    return false;
}

/* The line stays masked until its user acknowledges it. */
void handle_interrupt(void)
{
    word_t irq = interrupts_take();
    struct cap *cap;

    if (irq < IRQ_LINES) { /* else spurious */
        interrupts_mask(irq);
        cap = &irq_slots[irq].cap;
        if (cap_type(cap) == CAP_NOTIFICATION)
            notification_signal((struct notification *)notification_cap_object(cap),
                                notification_cap_badge(cap));
    }
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
