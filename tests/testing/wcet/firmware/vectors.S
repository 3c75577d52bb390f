@ Exception vectors, entries, and the context switch of a small firmware.
    .syntax unified
    .arm
    .section .vectors, "ax"
    .global _start
_start:
    ldr pc, reset_word
    ldr pc, undefined_word
    ldr pc, service_word
    ldr pc, abort_word
    ldr pc, abort_word
    nop
    ldr pc, interrupt_word
fast:
    b   fast
reset_word:     .word reset
undefined_word: .word fault_entry
service_word:   .word service_entry
abort_word:     .word fault_entry
interrupt_word: .word interrupt_entry

    .text
    .arm
    .type reset, %function
reset:
    cps #0x12
    ldr sp, =interrupt_stack
    cps #0x13
    ldr sp, =supervisor_stack
    bl  start
    b   .

    .type interrupt_entry, %function
interrupt_entry:
    sub lr, lr, #4
    push {r0-r3, r12, lr}
    bl  handle_interrupt
    ldm sp!, {r0-r3, r12, pc}^

    .type service_entry, %function
service_entry:
    push {r3-r11, lr}
    bl  handle_service
    ldm sp!, {r3-r11, pc}^

    .type fault_entry, %function
fault_entry:
    mov r0, lr
    bl  fault

@ switch_to(struct thread *from, struct thread *to): their first word is the stack pointer.
    .global switch_to
    .type switch_to, %function
switch_to:
    push {r4-r11, lr}
    str sp, [r0]
    ldr sp, [r1]
    pop {r4-r11, pc}
    .size switch_to, . - switch_to

    .bss
    .balign 8
    .space 1024
interrupt_stack:
    .space 1024
supervisor_stack:
