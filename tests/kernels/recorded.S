@ A program for the KZM board whose every privileged instruction and access is
@ known, to compare with what the recorder says (tests/kernels/test_recorder.py).
@ "Kernel" code is at 0xf00xxxxx, vectors at 0xffff0000, "user" code at 0x800xxxxx.

        .syntax unified
        .arch   armv6
        .arm

        .equ    PHYSICAL, 0x80000000
        .equ    TABLE,    0x80040000        @ first-level page table
        .equ    UART_TX,  0x43f90040
        .equ    INTFRCL,  0x68000054        @ forces an interrupt
        .equ    INTENNUM, 0x68000008
        .equ    INTERRUPT, 7
        .equ    UNMAPPED, 0x20000000

@ Maps a section of 1 MiB, full access, uncached.
        .macro  map section, physical
        ldr     r0, =TABLE + 4 * \section
        ldr     r1, =\physical + 0xc02
        str     r1, [r0]
        .endm

@ --- Boot: runs at physical addresses, then jumps into the kernel; not recorded

        .section .boot, "ax"
        .global boot
boot:   map     0x800, PHYSICAL             @ itself
        map     0xf00, PHYSICAL             @ the same memory
        map     0xfff, PHYSICAL + 0x100000  @ the memory after it
        map     0x43f, 0x43f00000           @ UART
        map     0x680, 0x68000000           @ interrupt controller
        ldr     r0, =TABLE
        mcr     p15, 0, r0, c2, c0, 0
        mvn     r2, #0
        mcr     p15, 0, r2, c3, c0, 0
        mov     r2, #0
        mcr     p15, 0, r2, c8, c7, 0
        mrc     p15, 0, r2, c1, c0, 0
        orr     r2, r2, #0x2000             @ vectors at 0xffff0000
        orr     r2, r2, #0x800000           @ ARMv6 page tables
        orr     r2, r2, #1
        mcr     p15, 0, r2, c1, c0, 0
        ldr     pc, =kernel_boot
        .ltorg

@ --- Vectors

        .section .vectors, "ax"
        b       .                           @ reset
        ldr     pc, =undefined
        ldr     pc, =call
        ldr     pc, =prefetch_abort
        ldr     pc, =data_abort
        b       .
        ldr     pc, =interrupt
        b       .
        .ltorg

@ --- Kernel

        .section .kernel, "ax"
        .global kernel_boot, call, undefined, prefetch_abort, data_abort, interrupt
        .global fault, force, repeat, shared, literals
kernel_boot:
        ldr     r0, =shared - 0xf0000000 + PHYSICAL
        blx     r0
        ldr     r0, =INTENNUM
        mov     r1, #INTERRUPT
        str     r1, [r0]
        cps     #0x17                       @ abort mode needs a stack of its own
        ldr     sp, =abort_stack
        cps     #0x13
        ldr     sp, =stack
        mov     r0, #0x10                   @ user mode, interrupts on
        msr     spsr_cxsf, r0
        ldr     lr, =user
        movs    pc, lr

@ r0 says what to do.
        .balign 32
call:   push    {r1-r3, lr}                 @ +00: 4 stores
        cmp     r0, #1                      @ +04
        beq     fault                       @ +08
        cmp     r0, #2                      @ +0c
        beq     force                       @ +10
        cmp     r0, #3                      @ +14
        beq     repeat                      @ +18
        ldr     r1, =data                   @ +1c: load of a literal
        ldreq   r2, [r1]                    @ +20: never taken, no access
        ldrb    r2, [r1, #1]                @ +24
        ldr     r3, =UART_TX                @ +28: load of a literal
        str     r2, [r3]                    @ +2c: device access inside a translated block
        strh    r2, [r1, #2]                @ +30
        ldrd    r2, r3, [r1, #8]            @ +34
        strd    r2, r3, [r1, #16]           @ +38
        ldm     sp!, {r1-r3, pc}^           @ +3c: 4 loads, and back to user

        .balign 32
fault:  bl      shared                      @ +00
        ldr     r1, =UNMAPPED               @ +04
        ldr     r2, [r1]                    @ +08: faults, no access
        ldm     sp!, {r1-r3, pc}^           @ +0c

@ Boot has run this at its physical address already.
        .balign 32
shared: nop                                 @ +00
        bx      lr                          @ +04

        .balign 32
force:  ldr     r1, =INTFRCL                @ +00
        mov     r2, #1 << INTERRUPT         @ +04
        str     r2, [r1]                    @ +08: pending until interrupts are on
        ldm     sp!, {r1-r3, pc}^           @ +0c

        .balign 32
repeat: ldr     r1, =data                   @ +00
        ldr     r2, =40000                  @ +04: more than one chunk of the file
1:      str     r2, [r1]                    @ +08
        subs    r2, r2, #1                  @ +0c
        bne     1b                          @ +10
        ldm     sp!, {r1-r3, pc}^           @ +14

        .balign 32
undefined:
        movs    pc, lr                      @ +00: skips the undefined instruction

        .balign 32
prefetch_abort:
        ldr     lr, =returned               @ +00
        movs    pc, lr                      @ +04

        .balign 32
data_abort:
        srsdb   sp!, #0x17                  @ +00: 2 stores
        subs    pc, lr, #4                  @ +04: skips the load

        .balign 32
interrupt:
        ldr     r1, =INTFRCL                @ +00
        mov     r2, #0                      @ +04
        str     r2, [r1]                    @ +08
        subs    pc, lr, #4                  @ +0c

        .balign 32
literals:
        .ltorg

@ --- Data of the kernel

        .section .kerneldata, "aw"
        .balign 32
        .global data, stack, abort_stack
data:   .byte   'A', 'B', 'C', 'D'
        .space  60
        .space  256
abort_stack:
        .space  256
stack:

@ --- User: its instructions and accesses are not recorded

        .section .user, "ax"
        .global user, returned
user:   mov     r0, #0
        svc     0                           @ execution 0
        .inst   0xe7f000f0                  @ 1: undefined
        ldr     r1, =UNMAPPED
        ldr     r2, [r1]                    @ 2: data abort
        bx      r1                          @ 3: prefetch abort
returned:
        mov     r0, #1
        svc     0                           @ 4, 5: a fault in the kernel
        mov     r0, #2
        svc     0                           @ 6, 7: an interrupt as soon as it is allowed
        mov     r0, #3
        svc     0                           @ 8
        ldr     r1, =exit
        mov     r0, #0x20                   @ QEMU ends with the status in `exit`
        svc     0x123456
        b       .
        .ltorg
        .balign 4
exit:   .word   0x20026, 7
