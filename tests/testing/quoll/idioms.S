@ Indirect control flow as people write it. r0 selects.
        .syntax unified
        .arm
        .text

        .global main
main:
        push    {r4, lr}
        bl      computed
        bl      offsets
        bl      early
        bl      pushed
        bl      moved
        bl      split
        bl      linked
        bl      tail
        pop     {r4, pc}

        .global computed        @ add to the pc: no table
computed:
        cmp     r0, #3
        addls   pc, pc, r0, lsl #3
        b       9f
        mov     r0, #10
        b       9f
        mov     r0, #11
        b       9f
        mov     r0, #12
        b       9f
        mov     r0, #13
9:      bx      lr

        .global offsets         @ a table of signed half words, relative to it
offsets:
        and     r2, r0, #3
        adr     r1, 1f
        add     r2, r1, r2, lsl #1
        ldrsh   r2, [r2]
        add     pc, r1, r2
1:      .hword  2f - 1b, 3f - 1b, 4f - 1b, 2f - 1b
2:      mov     r0, #1
3:      mov     r0, #2
4:      bx      lr

        .global early           @ the entry is loaded before the guard
early:
        adr     r1, 1f
        cmp     r0, #2
        movhi   r0, #2
        ldr     r2, [r1, r0, lsl #2]
        tst     r3, #1
        bne     5f
        bx      r2
1:      .word   3f, 4f, 5f
3:      mov     r0, #1
4:      mov     r0, #2
5:      bx      lr

        .global pushed          @ through the stack, to a target and back by ldm
pushed:
        and     r0, r0, #1
        ldr     r3, =1f
        add     r3, r3, r0, lsl #3
        push    {r3, lr}
        ldr     pc, [sp], #4
1:      mov     r0, #5
        pop     {pc}
        mov     r0, #6
        pop     {pc}

        .global moved           @ the return address in another register
moved:
        mov     r12, lr
        mov     lr, #1
        add     r0, lr, #4
        mov     pc, r12
        .global leaf
leaf:
        mov     r0, #3
        bx      lr

        .global split           @ the guard is two blocks before the branch
split:
        cmp     r0, #3
        bhi     8f
        tst     r1, #1
        beq     7f
        adr     r3, 1f
        ldr     pc, [r3, r0, lsl #2]
1:      .word   7f, 8f, 7f, 9f
7:      mov     r0, #1
8:      mov     r0, #2
9:      bx      lr

        .global linked          @ a call before ARMv5: lr is the address after
linked:
        push    {r4, lr}
        and     r0, r0, #1
        ldr     r4, =1f
        ldr     r3, [r4, r0, lsl #2]
        mov     lr, pc
        bx      r3
        pop     {r4, lr}
        bx      lr
        .section .rodata
1:      .word   leaf, moved
        .text

        .global tail            @ a jump to a constant, by way of registers
tail:
        ldr     r3, =leaf
        eor     r3, r3, #0x10000
        eor     r3, r3, #0x10000
        bx      r3
        .ltorg
