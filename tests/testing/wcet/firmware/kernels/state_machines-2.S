// An interrupt on the supervisor's stack.
    .type irq_entry, %function
irq_entry:
    sub lr, lr, #4
    srsdb sp!, #0x13
    cps #0x13
    push {r0-r3, r12}
    and r1, sp, #4
    sub sp, sp, r1
    push {r1, lr}
    bl  board_interrupt
    pop {r1, lr}
    add sp, sp, r1
    pop {r0-r3, r12}
    rfeia sp!

    .type svc_entry, %function
svc_entry:
    push {r2-r12, lr}
    mov r2, r7
    bl  board_call
    ldm sp!, {r2-r12, pc}^
