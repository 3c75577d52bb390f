"""Programs that damaged files led to: each once gave a graph that its invariants refused."""

from __future__ import annotations

from quoll.extract import extract
from quoll.image import Image
from quoll.verify import verify_program
from tests.quoll.building import build

JUMP_DEAD_IN_ONE_OF_TWO_FUNCTIONS = """
    .global main, table
    .type main, %function
    .type table, %function
main:   push {r4, lr}
        mvn r0, #0
        b table
table:  cmp r0, #1
        bhi out
        tst r1, #1
        beq 1f
        mov r2, #1
1:      ldr pc, [pc, r0, lsl #2]
        nop
        .word zero, one
zero:   mov r0, #5
        bx lr
one:    mov r0, #6
        bx lr
out:    bx lr
"""

CALL_OF_THE_RETURN_ADDRESS = """
    .global main
    .type main, %function
main:   blx lr
"""


def test_a_jump_may_be_dead_in_one_function_and_alive_in_another() -> None:
    image = Image.load(build(JUMP_DEAD_IN_ONE_OF_TWO_FUNCTIONS, language="S"))
    main, table = image.symbol("main"), image.symbol("table")
    assert main is not None
    assert table is not None
    program = extract(image, [main.addr, table.addr])
    assert len(program.functions[main.addr].blocks) < len(program.functions[table.addr].blocks)
    assert [len(found.targets) for found in program.jump_tables] == [2]
    alone = extract(image, [main.addr])
    assert [len(found.targets) for found in alone.jump_tables] == [0]
    verify_program(alone)
    verify_program(program)


def test_a_call_of_the_return_address_returns() -> None:
    image = Image.load(build(CALL_OF_THE_RETURN_ADDRESS, language="S"))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr])
    assert program.functions[main.addr].returns
    verify_program(program)


PIECE_BELOW_ITS_CALLER = """
    .global main
piece:  pop {r4, pc}
    .type main, %function
main:   push {r4, lr}
        bl piece
        pop {r4, pc}
"""


def test_a_piece_below_its_caller_becomes_part_of_it() -> None:
    image = Image.load(build(PIECE_BELOW_ITS_CALLER, language="S"))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr])
    assert set(program.functions) == {main.addr}
    verify_program(program)


FUNCTION_ENTERED_IN_BOTH_STATES = """
    .syntax unified
    .thumb
    .global main, stop
    .type main, %function
    .type stop, %function
main:   movs r0, #1
        bx pc
stop:   movs r0, #2
again:  b again
"""


def test_a_function_entered_in_both_states_may_return() -> None:
    source = f"    .balign 4\n    nop\n{FUNCTION_ENTERED_IN_BOTH_STATES}"
    image = Image.load(build(source, language="S", thumb=True, cpu="cortex-a8"))
    main, stop = image.symbol("main"), image.symbol("stop")
    assert main is not None
    assert stop is not None
    program = extract(image, [main.addr, stop.addr])
    assert [u.addr for u in program.unresolved] == [stop.addr]
    assert program.functions[main.addr].returns
    verify_program(program)
