// Stacks, masks, and the end of every kernel.
    .global _start
_start:
    cps #0x12
    ldr sp, =irq_stack_top
    cps #0x13
    ldr sp, =svc_stack_top
    ldr r0, =__bss_words
    bl  board_start
    b   .
    .global board_lock, board_unlock
    .type board_lock, %function
board_lock:
    mrs r0, cpsr
    cpsid i
    bx  lr
    .type board_unlock, %function
board_unlock:
    msr cpsr_c, r0
    bx  lr
    .type abort_entry, %function
abort_entry:
    mov r0, lr
    bl  fatal
    b   .
    .bss
    .balign 8
__bss_words: .space 8
    .space 2048
irq_stack_top:
    .space 2048
svc_stack_top:
