/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vector page, linked where it runs (0xffff0000).
 *
 * A slot jumps through a literal, because the kernel is out of a branch's reach.
 * The symbols of the slots are the entries of every path through the kernel.
 */
    .macro slot name
    .global \name
    .type \name, %function
\name:
    ldr     pc, literal_\name
    .size \name, . - \name
    .endm

    .macro literal name, target
literal_\name:
    .word   \target
    .endm

    .section .vectors, "ax"
    .arm
    slot vector_reset
    slot vector_undefined
    slot vector_svc
    slot vector_prefetch_abort
    slot vector_data_abort
    slot vector_unused
    slot vector_irq
    slot vector_fiq
    literal vector_reset, kernel_panic
    literal vector_undefined, entry_undefined
    literal vector_svc, entry_svc
    literal vector_prefetch_abort, entry_prefetch_abort
    literal vector_data_abort, entry_data_abort
    literal vector_unused, kernel_panic
    literal vector_irq, entry_irq
    literal vector_fiq, kernel_panic
