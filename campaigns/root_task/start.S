@ Where the first user program starts, and where its other threads do. r0: the boot information,
@ or the argument of the thread.
        .section .text.start, "ax"
        .arm
        .global start
start:
        ldr     sp, =first_stack + 8192
        bl      main
        .ltorg

        .text
        .global undefined_instruction
undefined_instruction:
        .word   0xE7F000F0              @ permanently undefined
        bx      lr

        .global semihosting             @ r0: the operation, r1: its parameter
semihosting:
        svc     0x123456
        bx      lr

        .bss
        .balign 4096
first_stack:
        .space  8192
