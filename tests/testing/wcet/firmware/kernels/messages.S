// Registers of users are saved in threads.
    .type svc_entry, %function
svc_entry:
    ldr sp, =current_thread
    ldr sp, [sp]
    stm sp, {r0-lr}^
    mrs r2, spsr
    str r2, [sp, #64]
    str lr, [sp, #60]
    mov r0, r7
    ldr r1, [sp]
    ldr sp, =svc_stack_top
    bl  board_call
    .global leave
    .type leave, %function
leave:
    ldr lr, =current_thread
    ldr lr, [lr]
    ldr r0, [lr, #64]
    msr spsr_fsxc, r0
    mov r1, lr
    ldr lr, [r1, #60]
    ldm r1, {r0-r14}^
    nop
    movs pc, lr
    .type irq_entry, %function
irq_entry:
    sub lr, lr, #4
    ldr sp, =current_thread
    ldr sp, [sp]
    stm sp, {r0-lr}^
    mrs r2, spsr
    str r2, [sp, #64]
    str lr, [sp, #60]
    ldr sp, =irq_stack_top
    bl  board_interrupt
    b   leave
