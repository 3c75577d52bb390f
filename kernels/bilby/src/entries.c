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
#include <lookup.h>
#include <machine.h>
#include <timer.h>
#include <timing.h>

static void reply(void)
{
    word_t error = reply_send(current_thread, &current_thread->caller);

    if (error == ERROR_NONE)
        current_thread->regs[REG_BADGE] = 0;
    else
        thread_fail_call(current_thread, error);
}

/*
 * All is done but for the choice of who runs next.  An interrupt that has come meanwhile is
 * handled first: it may wake somebody, and its handler makes the choice.
 */
static void entry_finish(void)
{
    if (interrupts_pending())
        leave_to_interrupt();
    sched_run();
}

/*
 * What others left to delete; but if it has no turn, first unqueue threads that cannot run and would
 * be chosen.
 */
static void idle_work(void)
{
    if (sched_calm_idle() || !timing_idle())
        delete_abandoned();
}

/* A system call, but for the choice of who runs next. */
static void entry_dispatch(word_t address, word_t message, word_t number)
{
    switch (number) {
    case SYS_CALL:
        syscall_invoke(address, message, SEND_BLOCKING | SEND_CALL);
        break;
    case SYS_SEND:
        syscall_invoke(address, message, SEND_BLOCKING);
        break;
    case SYS_NB_SEND:
        syscall_invoke(address, message, 0);
        break;
    case SYS_RECEIVE:
        syscall_receive(address, false);
        break;
    case SYS_REPLY:
        reply();
        break;
    case SYS_REPLY_RECEIVE:
        reply_receive(address);
        break;
    case SYS_YIELD:
        sched_yield();
        break;
    case SYS_POLL:
        syscall_poll(address);
        break;
    default:
        if (current_thread == &idle_thread)
            idle_work();
        else if (!timing_syscall(address, message, number))
            thread_fail_call(current_thread, ERROR_INVALID_SYSCALL);
        break;
    }
}

void handle_syscall(word_t address, word_t message, word_t number)
{
    const struct cap *direct;

    if (number == SYS_CALL && !lookup_is_kept()) {
        direct = fastpath_call_applies(address, message);
        if (direct != NULL) {
            fastpath_call(direct, message);
            return;
        }
        lookup_first(address);
    }
    if (number == SYS_REPLY_RECEIVE && !lookup_is_kept()) {
        direct = fastpath_reply_receive_applies(address, message);
        if (direct != NULL) {
            fastpath_reply_receive(direct, message);
            return;
        }
        lookup_first(address);
    }
    lookup_begin();
    entry_dispatch(address, message, number);
    thread_end_call(current_thread);
    timing_settle();
    entry_finish();
}

/*
 * The line stays masked until its user acknowledges it; except the line of the kernel's timer: the
 * slice of time is over.
 */
void handle_interrupt(void)
{
    word_t irq = interrupts_take();
    struct cap *cap;

    if (irq == TICK_IRQ) {
        timer_interrupt();
    } else if (irq < IRQ_LINES) { /* else spurious */
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
    entry_finish();
}

void handle_prefetch_abort(void)
{
    fault_raise(current_thread, FAULT_PREFETCH_ABORT, current_thread->regs[REG_PC],
                machine_prefetch_fault_status());
    entry_finish();
}

void handle_data_abort(void)
{
    fault_raise(current_thread, FAULT_DATA_ABORT, machine_data_fault_address(),
                machine_data_fault_status());
    entry_finish();
}
