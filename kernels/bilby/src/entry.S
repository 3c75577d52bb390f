/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry from and exit to user threads.
 *
 * On entry the banked stack pointer is free: it first holds the current thread,
 * whose r0 to r14 are stored through it, then (in supervisor mode) the top of
 * the one kernel stack, from a literal.  Nothing survives on that stack between
 * two entries.  Interrupts stay masked from the vector to the exit.
 *
 * In the kernel the current thread is in r9 (kernel.h).  Its address is masked where it is
 * loaded, as in_window does, and its lines are read before registers are stored in them: a
 * store to a line that is not in the cache goes to memory by itself.
 *
 * The pc that is saved: after a system call the next instruction (a preempted
 * call moves it back onto the SVC), otherwise the instruction that faulted
 * or was interrupted.
 *
 * There is one exit.  It returns to the current thread, which may be the idle
 * thread: idle_loop, in system mode with interrupts enabled.
 */
#include <bilby/api.h>
#include <layout_asm.h>
#include <machine_asm.h>
#include <board.h>

#define MODE_SUPERVISOR 0x13
#define CPSR_MODE_LOW   0x0f /* zero in user mode only */
#define CPSR_THUMB      0x20

    /* sp (banked): the current thread. */
    .macro load_current
    ldr     sp, =current_thread
    ldr     sp, [sp]
    orr     sp, sp, #WINDOW_BASE
    bic     sp, sp, #DEVICE_WINDOW - WINDOW_BASE
    bic     sp, sp, #0xff
    .if     TCB_BYTES > 256
    bic     sp, sp, #0x100
    .endif
    .endm

    /* Store lr as pc, and r0-r14 of the interrupted thread; sp (banked) points to it. */
    .macro save_registers
    load_current
    str     lr, [sp, #TCB_REGS + 60]
    ldr     lr, [sp, #TCB_REGS]
    ldr     lr, [sp, #TCB_REGS + 32]
    ldr     lr, [sp, #TCB_REGS + 64]
    stmia   sp, {r0-r14}^
    .endm

    /* Store cpsr; r8, which is saved, holds it afterwards. */
    .macro save_status
    mrs     r8, spsr
    str     r8, [sp, #TCB_REGS + 64]
    .endm

    /* From another mode, in which r8 to r12 might be others than in supervisor mode. */
    .macro  enter_supervisor
    mov     r0, sp
    cps     #MODE_SUPERVISOR
    mov     r9, r0
    ldr     sp, =kernel_stack_top
    .endm

    /* An exception that only user code may raise. */
    .macro panic_unless_from_user
    mrs     sp, spsr
    tst     sp, #CPSR_MODE_LOW
    bne     kernel_panic
    .endm

    .macro function name
    .global \name
    .type \name, %function
\name:
    .endm

    .text
    .arm

function entry_svc
    save_registers
    save_status
    mov     r2, r7
    mov     r9, sp
    ldr     sp, =kernel_stack_top
    bl      handle_syscall
    b       return_to_current
    .size entry_svc, . - entry_svc

/*
 * A call is preempted, or a call or fault is done and an interrupt is pending: its path ends here,
 * and the interrupt's path begins.  The stack is dropped.
 */
function leave_to_interrupt
    ldr     sp, =kernel_stack_top
    .global exit_to_interrupt
exit_to_interrupt:
    bl      handle_interrupt
    b       return_to_current
    .size leave_to_interrupt, . - leave_to_interrupt

function entry_irq
    sub     lr, lr, #4
    save_registers
    save_status
    enter_supervisor
    bl      handle_interrupt
    b       return_to_current
    .size entry_irq, . - entry_irq

function entry_undefined
    panic_unless_from_user
    save_registers
    save_status
    ldr     lr, [sp, #TCB_REGS + 60]
    tst     r8, #CPSR_THUMB
    subeq   lr, lr, #4
    subne   lr, lr, #2
    str     lr, [sp, #TCB_REGS + 60]
    enter_supervisor
    bl      handle_undefined
    b       return_to_current
    .size entry_undefined, . - entry_undefined

function entry_prefetch_abort
    panic_unless_from_user
    sub     lr, lr, #4
    save_registers
    save_status
    enter_supervisor
    bl      handle_prefetch_abort
    b       return_to_current
    .size entry_prefetch_abort, . - entry_prefetch_abort

function entry_data_abort
    panic_unless_from_user
    sub     lr, lr, #8
    save_registers
    save_status
    enter_supervisor
    bl      handle_data_abort
    b       return_to_current
    .size entry_data_abort, . - entry_data_abort

    .ltorg

/* Supervisor mode.  The only way out of the kernel. */
function return_to_current
#ifdef CURRENT_IN_MEMORY
    load_current
#else
    mov     sp, r9
#endif
    ldr     r0, [sp, #TCB_REGS + 64]
    ldr     lr, [sp, #TCB_REGS + 60]
    msr     spsr_cxsf, r0
    ldmia   sp, {r0-r14}^
    nop
    .global exit_to_user
exit_to_user:
    movs    pc, lr
    .size return_to_current, . - return_to_current

/* The kernel is at fault: stop for good.  Paths of the analysis end here. */
function kernel_panic
    cpsid   if
1:  b       1b
    .size kernel_panic, . - kernel_panic

    .ltorg

/* The one kernel stack. */
    .section .bss.stack, "aw", %nobits
    .balign 4096
    .global kernel_stack
    .type kernel_stack, %object
kernel_stack:
    .space  4096
    .size kernel_stack, . - kernel_stack
    .global kernel_stack_top
kernel_stack_top:

/*
 * The idle thread: system mode, interrupts enabled.  Not part of any path.  Its one system call
 * finishes abandoned deletions; their owners send it here (delete.c).
 */
    .section .idle.text, "ax"
function idle_loop
    mov     r7, #SYS_IDLE
    svc     0
    mov     r0, #0
    machine_wait
    b       idle_loop
    .size idle_loop, . - idle_loop
