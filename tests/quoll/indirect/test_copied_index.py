"""Jump tables whose index is a copy or a multiple of the word that a branch limits."""

from __future__ import annotations

import pytest

from tests.testing.quoll.sketch import assemble, extracted

# r6 is 0 to 7, by a mask that is loaded outside of the loop; r9 and r10 are the table and 8
PROGRAM = """
        push {{r4, r5, r6, r7, lr}}
        sub sp, #16
        ldr r4, =table
        mov r9, r4
        movs r4, #7
        mov r8, r4
again:  mov r6, r8
        ands r6, r0
        {between}
        cmp r5, #2
        bhi out
        mov r5, r9
        ldr r4, [r5, r4]
        mov pc, r4
zero:   adds r0, #4
        b again
one:    adds r0, #1
        b again
two:    adds r0, #2
        b again
three:  adds r0, #3
        b again
out:    add sp, #16
        pop {{r4, r5, r6, r7, pc}}
        .section .rodata
        .align 2
table:  .word one, two, three, {further}
"""
NO_CODE = ["0x7ffffff0"] * 5  # entries that are never read
FURTHER = ["zero", "two", "out", "again", "zero"]


def targets(between: str, further: list[str]) -> set[str]:
    """The labels that the jump leads to; none if it is refused."""
    text = "main:" + PROGRAM.format(between=between, further=", ".join(further))
    image = assemble(text, "-Wl,-Tdata=0x20000", thumb=True)
    found = extracted(image)
    if found.unresolved:
        return set()
    known = [image.symbol_at(t & ~1) for jump in found.jump_tables for t in jump.targets]
    return {named[0].name for named in known if named is not None and named[1] == 0}


@pytest.mark.parametrize(
    "between",
    [
        "mov r5, r6\n lsls r4, r6, #2",
        "mov r11, r6\n lsls r4, r6, #2\n mov r5, r11",
        "lsls r4, r6, #2\n mov r11, r6\n movs r6, #0\n mov r5, r11",
        "str r6, [sp, #4]\n lsls r4, r6, #2\n ldr r5, [sp, #4]",
        "lsls r4, r6, #2\n str r4, [sp, #4]\n movs r4, #0\n mov r5, r6\n ldr r4, [sp, #4]",
        "lsls r4, r6, #1\n adds r4, r4, r4\n mov r5, r6",
        "lsls r4, r6, #2\n cmp r1, #0\n beq out\n mov r5, r6",
    ],
)
def test_a_limit_of_a_copy_is_one_of_the_index(between: str) -> None:
    assert targets(between, NO_CODE) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("between", "index"),
    [
        ("mov r5, r6\n adds r6, #1\n lsls r4, r6, #2", range(1, 4)),
        ("lsls r4, r6, #2\n mov r5, r6\n subs r5, #1", range(1, 4)),
        ("lsls r4, r6, #2\n mov r5, r6\n ands r5, r1", range(8)),
        ("lsls r4, r6, #2\n mov r5, r6\n lsrs r5, r5, #1", range(6)),
        ("str r6, [sp, #4]\n lsls r4, r6, #2\n str r1, [sp, #4]\n ldr r5, [sp, #4]", range(8)),
        (
            "str r6, [sp, #4]\n lsls r4, r6, #2\n add r7, sp, #4\n strb r1, [r7]\n"
            " ldr r5, [sp, #4]",
            range(8),
        ),
        (
            "lsls r4, r6, #2\n mov r5, r6\n cmp r1, #0\n beq 1f\n movs r5, #1\n1: nop",
            range(8),
        ),
        ("lsls r4, r6, #2\n mov r5, r6\n cmp r1, #0\n bne 1f\n lsrs r5, r5, #2\n1: nop", range(8)),
        ("mov r11, r6\n mov r5, r11\n adds r6, r6, r5\n lsls r4, r6, #1", range(3)),
    ],
)
def test_a_limit_of_another_word_is_none_of_the_index(between: str, index: range) -> None:
    """All words that the index selects are targets, or the jump is refused."""
    table = ["one", "two", "three", *FURTHER]
    found = targets(between, FURTHER)
    assert not found or found >= {table[i] for i in index}


def test_a_table_behind_a_jump_whose_base_is_lr_is_no_code() -> None:
    """GCC takes lr as the base of a table in functions that save it."""
    text = (
        "main: push {r4, lr}\n cmp r0, #2\n bhi.w out\n adr.w lr, table\n"
        " ldr pc, [lr, r0, lsl #2]\ntable: .word one + 1, two + 1, three + 1\n"
        "one: adds r0, #1\ntwo: adds r0, #2\nthree: adds r0, #3\n"
        "out: pop {r4, pc}\n"
    )
    found = extracted(assemble(text, thumb=True, cpu="cortex-a8"))
    assert found.unresolved == ()
    assert [len(jump.targets) for jump in found.jump_tables] == [3]
    (function,) = found.functions.values()
    assert not any(block.calls for block in function.blocks)


@pytest.mark.parametrize("place", ["table", "table + 4"])
def test_a_call_through_a_table_returns_behind_it(place: str) -> None:
    text = (
        f"main: push {{r4, lr}}\n cmp r0, #1\n bhi out\n ldr r3, ={place}\n mov lr, pc\n"
        " ldr pc, [r3, r0, lsl #2]\nout: pop {r4, pc}\ntable: .word one, two, one\n"
        "one: bx lr\ntwo: mov r0, #2\n bx lr\n"
    )
    found = extracted(assemble(text))
    assert found.unresolved == ()
    main = next(f for f in found.functions.values() if f.name == "main")
    assert {len(block.calls) for block in main.blocks} == {0, 2}
    assert main.returns
