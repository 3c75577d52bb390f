@ Loads a kernel of the seL4 family, and its first user program, on the KZM board.
@
@ The kernel expects to run at its virtual addresses with the MMU on: r0 and r1 are the physical
@ range of the program, r2 its physical minus its virtual address, r3 its first instruction, and
@ two words on the stack are the device tree, which this board has none of. One table of sections
@ maps RAM to itself and the kernel's window to RAM; the kernel then installs its own tables.

        .section .text.loader, "ax"
        .arm
        .global loader
loader:
        ldr     r4, =table              @ all sections to themselves
        mov     r5, #0
        ldr     r6, =0xC02              @ a section that may be read and written
fill:
        orr     r7, r6, r5, lsl #20
        str     r7, [r4, r5, lsl #2]
        add     r5, r5, #1
        cmp     r5, #0x1000
        bne     fill
        ldr     r5, =0xF00              @ the window: 128 MiB from the start of RAM
        ldr     r8, =0x800
        mov     r9, #128
window:
        orr     r7, r6, r8, lsl #20
        str     r7, [r4, r5, lsl #2]
        add     r5, r5, #1
        add     r8, r8, #1
        subs    r9, r9, #1
        bne     window
        mvn     r7, #0                  @ accesses in every domain are allowed
        mcr     p15, 0, r7, c3, c0, 0
        mcr     p15, 0, r4, c2, c0, 0   @ the table
        mov     r7, #0
        mcr     p15, 0, r7, c2, c0, 2
        mcr     p15, 0, r7, c8, c7, 0   @ no stale translations
        mrc     p15, 0, r7, c1, c0, 0
        orr     r7, r7, #1              @ the MMU,
        orr     r7, r7, #1 << 23        @ with tables of ARMv6
        mcr     p15, 0, r7, c1, c0, 0
        ldr     r0, =PROGRAM_PHYSICAL
        ldr     r1, =PROGRAM_PHYSICAL + PROGRAM_BYTES
        ldr     r2, =PROGRAM_PHYSICAL - PROGRAM_VIRTUAL
        ldr     r3, =PROGRAM_VIRTUAL
        ldr     sp, =no_device_tree
        ldr     pc, =KERNEL_ENTRY
        .ltorg

        .balign 8
no_device_tree:
        .word   0, 0

        .bss
        .balign 0x4000
table:
        .space  0x4000
