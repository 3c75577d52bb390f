"""A table of records of three words: the index times twelve selects the callback of each record."""

from __future__ import annotations

import pytest

from tests.testing.quoll.sketch import assemble, extracted

SEARCH = """
main:   push {{r4, r5, r6, lr}}
        ldr r4, =records
        movs r6, #0
again:  {scaled}
        ldr r3, [r4, r5]
        ldrb r3, [r3]
compare: ldrb r2, [r0], #1
        cmp r2, r3
        beq found
        cmp r2, #0
        bne compare
        adds r6, #1
        cmp r6, #3
        bne again
        pop {{r4, r5, r6, pc}}
found:  adds r4, r5
        ldr r3, [r4, #4]
        blx r3
        pop {{r4, r5, r6, pc}}
        .type first, %function
        .thumb_func
first:  bx lr
        .type second, %function
        .thumb_func
second: bx lr
        .type third, %function
        .thumb_func
third:  bx lr
        .section .rodata
names:  .asciz "first", "second"
        .align 2
        .type records, %object
records: .word names, first, names, names + 6, second, names, names + 2, third, names
        .size records, . - records
"""


@pytest.mark.parametrize(
    "scaled",
    [
        "add r5, r6, r6, lsl #1; lsls r5, r5, #2",
        "lsls r5, r6, #1; adds r5, r5, r6; lsls r5, r5, #2",
        "lsls r5, r6, #4; sub r5, r5, r6, lsl #2",
    ],
)
def test_only_callbacks_are_targets(scaled: str) -> None:
    image = assemble(SEARCH.format(scaled=scaled), thumb=True, cpu="cortex-a8")
    program = extracted(image)
    assert program.unresolved == ()
    names = {function.name for function in program.functions.values()}
    assert names == {"main", "first", "second", "third"}
