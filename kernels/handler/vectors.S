@ Exception vectors, and the way into and out of the interrupt handler.
    .syntax unified
    .arm
    .section .vectors, "ax"
    .global _start, irq_entry
_start:
    b   reset
    b   .
    b   .
    b   .
    b   .
    nop
    b   irq_entry
    b   .

reset:
    cps #0x12               @ mode IRQ
    ldr sp, =irq_stack_top
    cps #0x13               @ mode SVC
    ldr sp, =svc_stack_top
    bl  main
    b   .

irq_entry:
    sub  lr, lr, #4
    push {r0-r3, r12, lr}
    bl   handle_irq
    ldm  sp!, {r0-r3, r12, pc}^

    .bss
    .balign 8
    .space 1024
irq_stack_top:
    .space 1024
svc_stack_top:
