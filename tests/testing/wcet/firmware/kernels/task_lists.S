// Both entries save the whole context of a task, and load another.
    .macro save_context
    push {r0}
    stmdb sp, {sp}^
    nop
    sub sp, sp, #4
    pop {r0}
    stmdb r0!, {lr}
    mov lr, r0
    pop {r0}
    stmdb lr, {r0-lr}^
    nop
    sub lr, lr, #60
    mrs r0, spsr
    stmdb lr!, {r0}
    ldr r0, =current_task
    ldr r0, [r0]
    str lr, [r0]
    .endm
    .macro restore_context
    ldr r0, =current_task
    ldr r0, [r0]
    ldr lr, [r0]
    ldm lr!, {r0}
    msr spsr_fsxc, r0
    ldm lr, {r0-r14}^
    nop
    ldr lr, [lr, #60]
    subs pc, lr, #4
    .endm
    .type irq_entry, %function
irq_entry:
    save_context
    bl  board_interrupt
    restore_context
    .type svc_entry, %function
svc_entry:
    add lr, lr, #4
    save_context
    bl  select_task
    restore_context
