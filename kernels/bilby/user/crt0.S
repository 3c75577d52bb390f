/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a program, its first instructions, and the way out of QEMU. */
#include <bilby/api.h>

    .section .header, "a"
    .word   IMAGE_MAGIC
    .word   __text_bytes
    .word   __image_bytes
    .word   _start

    .text
    .arm
    .global _start
    .type _start, %function
/* r0: address of struct boot_info.  QEMU and boot leave .bss clear. */
_start:
    ldr     sp, =main_stack_top
    bl      main
    .global exit_program
    .type exit_program, %function
/* End the emulation with the status in r0: a semihosting call, not the kernel's. */
exit_program:
    ldr     r1, =exit_block
    str     r0, [r1, #4]
    mov     r0, #0x20
    svc     0x123456
1:  b       1b
    .size _start, . - _start
    .ltorg

    .data
exit_block:
    .word   0x20026, 0

    .bss
    .balign 8
    .space  8192
    .global main_stack_top
main_stack_top:
