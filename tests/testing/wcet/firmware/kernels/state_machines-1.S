// An interrupt on its own stack.
    .type irq_entry, %function
irq_entry:
    sub lr, lr, #4
    push {r0-r3, r12, lr}
    bl  board_interrupt
    ldm sp!, {r0-r3, r12, pc}^

    .type svc_entry, %function
svc_entry:
    push {r2-r12, lr}
    mov r2, r7
    bl  board_call
    ldm sp!, {r2-r12, pc}^
