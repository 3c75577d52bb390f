// Contexts are restored, or saved for a loop that awaits the next thread.
    .type irq_entry, %function
irq_entry:
    push {r0-r3}
    mrs r0, spsr
    sub lr, lr, #4
    push {r0, r10, r12, lr}
    ldr r3, =system_state
    ldr r2, [r3]
    add r2, r2, #1
    str r2, [r3]
    bl  board_interrupt
    b   context_restore
    .type context_restore, %function
context_restore:
    cpsid i
    ldr r3, =system_state
    ldr r2, [r3]
    sub r2, r2, #1
    str r2, [r3]
    cmp r2, #0
    bne 1f
    ldr r1, =current_thread
    ldr r0, [r1]
    cmp r0, #0
    beq 2f
    ldr r3, =disabled
    ldr r2, [r3]
    cmp r2, #0
    bne 1f
    ldr r3, =execute_thread
    ldr r2, [r3]
    cmp r0, r2
    bne 3f
1:  pop {r0, r10, r12, lr}
    msr spsr_cxsf, r0
    pop {r0-r3}
    movs pc, lr
3:  pop {r3, r10, r12, lr}
    mov r1, lr
    pop {r4-r7}
    cps #0x13
    push {r1}
    push {r4-r12, lr}
    mov r4, #1
    push {r3, r4}
    ldr r1, =current_thread
    ldr r0, [r1]
    str sp, [r0, #8]
    mov r3, #0
    str r3, [r1]
2:  cps #0x13
    b   schedule
    .global schedule
    .type schedule, %function
schedule:
    cpsie i
    ldr r1, =execute_thread
1:  ldr r0, [r1]
    cmp r0, #0
    beq 1b
    cpsid i
    ldr r1, =current_thread
    str r0, [r1]
    ldr r2, [r0, #4]
    add r2, r2, #1
    str r2, [r0, #4]
    ldr sp, [r0, #8]
    pop {r1, r4}
    cmp r4, #0
    msr spsr_cxsf, r1
    popne {r4-r12, lr}
    ldmne sp!, {pc}^
    pop {r4-r12, lr}
    bx  lr
    .global system_return
    .type system_return, %function
system_return:
    push {r4-r12, lr}
    mov r0, #0
    mrs r1, cpsr
    push {r0, r1}
    ldr r4, =current_thread
    ldr r5, [r4]
    str sp, [r5, #8]
    mov r1, #0
    str r1, [r4]
    b   schedule
    .type svc_entry, %function
svc_entry:
    push {r2-r12, lr}
    bl  board_call
    ldm sp!, {r2-r12, pc}^
