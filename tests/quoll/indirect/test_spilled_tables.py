"""Jumps through a table whose address lies on the stack during a call: resolved, and listed."""

from __future__ import annotations

from quoll.cfg.cfg import Program
from tests.testing.quoll.sketch import assemble, extracted

SPILLED = """
main:   push {{r4, lr}}
        sub sp, #16
        ldr r1, =table
        str r1, [sp, #4]
        movs r4, r0
        {between}
        subs r4, #3
        cmp r4, #2
        bhi out
        lsls r4, r4, #2
        ldr r1, [sp, #4]
        ldr r1, [r1, r4]
        mov pc, r1
one:    movs r0, #1
two:    movs r0, #2
three:  adds r0, #3
out:    add sp, #16
        pop {{r4, pc}}
        .type helper, %function
        .thumb_func
helper: bx lr
        .section .rodata
        .align 2
table:  .word one, two, three
"""


def program(between: str) -> Program:
    image = assemble(SPILLED.format(between=between), "-Wl,-Tdata=0x20000", thumb=True)
    return extracted(image)


def spilled(found: Program) -> list[str]:
    return [text for text in map(str, found.assumptions) if "nothing changes on the stack" in text]


def test_a_call_is_assumed_to_leave_the_address_of_a_table() -> None:
    found = program("bl helper")
    assert found.unresolved == ()
    assert [len(table.targets) for table in found.jump_tables if len(table.targets) > 1] == [3]
    (text,) = spilled(found)
    assert text.startswith("spilled table: mov pc, r1 at ")
    assert "<table>" in text


def test_nothing_is_assumed_where_nothing_comes_between() -> None:
    found = program("nop")
    assert found.unresolved == ()
    assert spilled(found) == []


def test_an_array_without_a_known_end_is_assumed_not_to_reach_it() -> None:
    found = program("add r2, sp, #8\nstr r0, [r2, r3]")
    assert found.unresolved == ()
    assert len(spilled(found)) == 1


def test_an_array_of_known_ends_may_hit_it() -> None:
    found = program("movs r2, #7\nands r3, r2\nadd r2, sp, #0\nstrb r0, [r2, r3]")
    assert len(found.unresolved) == 1


def test_a_store_to_the_word_itself_is_seen() -> None:
    found = program("str r2, [sp, #4]\nbl helper")
    assert len(found.unresolved) == 1
