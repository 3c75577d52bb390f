"""Programs that libraries led to: shapes of code that once lost or gained an edge."""

from __future__ import annotations

from dataclasses import replace

from quoll.cfg.cfg import Edge, EdgeKind
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.indirect.returns import FunctionConfirmation, ReturnConfirmer
from tests.testing.quoll.building import build
from tests.testing.quoll.invariants import verify_program

CALL_THROUGH_A_POINTER_ON_THE_WAY_TO_THE_END = """
    .global main, fail
    .type main, %function
    .type fail, %function
main:   cmp r0, #0
        bne 1f
        bx lr
1:      push {r4, lr}
        bl fail
        .word 0xffffffff
fail:   push {r4, lr}
        bl note
        ldr r3, [r0]
        blx r3
2:      b 2b
note:   bx lr
"""


def test_a_call_through_a_pointer_does_not_return_for_its_function() -> None:
    image = Image.load(build(CALL_THROUGH_A_POINTER_ON_THE_WAY_TO_THE_END, language="S"))
    main, fail = image.symbol("main"), image.symbol("fail")
    assert main is not None
    assert fail is not None
    program = extract(image, [main.addr])
    assert not program.functions[fail.addr].returns
    assert [u.addr for u in program.unresolved] == [fail.addr + 12]
    verify_program(program)


CALL_THROUGH_A_REGISTER_BY_A_JUMP_OF_ONES_OWN = """
    .global main
    .type main, %function
main:   push {r4, lr}
        ldr r3, [r0]
        bl via
        movs r0, #1
        ldr r3, [r4]
        bl via
        movs r0, #2
        pop {r4}
        pop {r1}
        bx r1
via:    bx r3
    .size main, . - main
"""


def test_thumb_code_calls_through_a_register_by_a_call_of_a_jump() -> None:
    source = f".syntax unified\n.thumb\n{CALL_THROUGH_A_REGISTER_BY_A_JUMP_OF_ONES_OWN}"
    image = Image.load(build(source, language="S", thumb=True, cpu="arm7tdmi"))
    main, via = image.symbol("main"), image.symbol("via")
    assert main is not None
    assert via is not None
    program = extract(image, [main.addr])
    assert set(program.functions) == {main.addr, via.addr}
    assert [u.addr for u in program.unresolved] == [via.addr]
    reached = {i.addr for block in program.functions[main.addr].blocks for i in block.insns}
    assert len(reached) == 10
    verify_program(program)


OFFSETS_WITH_A_GAP = """
    .global main
    .type main, %function
    .type table_jump, %function
main:   push {r4, lr}
        cmp r0, #2
        bhi out
        bl table_jump
offsets:
        .byte (zero - offsets) / 2, (one - offsets) / 2, (two - offsets) / 2, 0
zero:   b out
one:    b out
        udf #1
two:    b out
out:    pop {r4}
        pop {r1}
        bx r1
        .size main, . - main
table_jump:
        push {r1}
        mov r1, lr
        lsrs r1, r1, #1
        lsls r1, r1, #1
        ldrb r1, [r1, r0]
        lsls r1, r1, #1
        add lr, lr, r1
        pop {r1}
        bx lr
        .size table_jump, . - table_jump
"""


def test_entries_of_a_table_are_read_one_by_one() -> None:
    source = f".syntax unified\n.thumb\n{OFFSETS_WITH_A_GAP}"
    image = Image.load(build(source, language="S", thumb=True, cpu="arm7tdmi"))
    names = ("main", "zero", "one", "two", "offsets")
    main, zero, one, two, offsets = (image.symbol(name) for name in names)
    assert main is not None
    assert zero is not None
    assert one is not None
    assert two is not None
    assert offsets is not None
    program = extract(image, [main.addr])
    assert program.unresolved == ()
    assert [table.targets for table in program.jump_tables] == [(zero.addr, one.addr, two.addr)]
    assert program.jump_tables[0].table == offsets.addr
    verify_program(program)


CALL_OF_A_CONSTANT_THROUGH_A_REGISTER = """
    .global main
    .type main, %function
    .type other, %function
    .type leaf, %function
main:   push {r4, lr}
        ldr r3, =other
        bl via
        movs r0, #1
        pop {r4}
        pop {r1}
        bx r1
        .pool
via:    bx r3
        .size main, . - main
other:  push {r4, lr}
        bl leaf
        bl leaf
        pop {r4}
        pop {r1}
        bx r1
leaf:   bx lr
"""


def test_a_return_address_on_the_stack_survives_calls() -> None:
    source = f".syntax unified\n.thumb\n{CALL_OF_A_CONSTANT_THROUGH_A_REGISTER}"
    image = Image.load(build(source, language="S", thumb=True, cpu="arm7tdmi"))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr])
    assert program.unresolved == ()
    assert program.functions[main.addr].returns
    reached = {i.text for block in program.functions[main.addr].blocks for i in block.insns}
    assert "movs r0, #1" in reached
    verify_program(program)


CALLS_OF_A_CONSTANT_THROUGH_A_REGISTER = """
    .syntax unified
    .thumb
    .global main
    .type main, %function
    .type other, %function
    .type leaf, %function
main:   push {r4, lr}
        ldr r4, =other
        bl via
        bl via
        bl via
        pop {r4}
        pop {r1}
        bx r1
via:    bx r4
        .pool
        .size main, . - main
other:  push {r4, lr}
        bl leaf
        pop {r4}
        pop {r1}
        bx r1
leaf:   bx lr
"""


def test_a_constant_is_called_from_many_places_through_one_jump() -> None:
    """lr comes from the calls of the jump, unless control also gets there from elsewhere."""
    source = CALLS_OF_A_CONSTANT_THROUGH_A_REGISTER
    image = Image.load(build(source, language="S", thumb=True, cpu="arm7tdmi"))
    main, via = image.symbol("main"), image.symbol("via")
    assert main is not None
    assert via is not None
    program = extract(image, [main.addr])
    assert program.unresolved == ()
    verify_program(program)
    cfg = program.functions[main.addr]
    [jump] = [block for block in cfg.blocks if block.addr == via.addr]
    calls = [block for block in cfg.blocks if block.last.target == via.addr]
    assert len(calls) == 3
    assert jump.comes_back == tuple(block.last.next | 1 for block in calls)
    for kind, at in ((EdgeKind.ACROSS, calls[0].index), (EdgeKind.FALLTHROUGH, 0)):
        more = replace(cfg, edges=(*cfg.edges, Edge(at, jump.index, kind)))
        said = ReturnConfirmer(image)(more, frozenset())
        assert isinstance(said, FunctionConfirmation)
        assert said.endings[jump.index].link is None


COPY_THAT_JUMPS_INTO_ITS_STORES = """
    .global main
    .type main, %function
main:   push {r4, lr}
1:      ands ip, r2, #12
        rsb ip, ip, #16
        addne pc, pc, ip
        b 3f
        nop
        ldr r3, [r1], #4
        ldr r4, [r1], #4
        ldr lr, [r1], #4
        add pc, pc, ip
        nop
        nop
2:      str r3, [r0], #4
        str r4, [r0], #4
        str lr, [r0], #4
        subs r2, r2, #16
        bcs 1b
3:      pop {r4, pc}
    .size main, . - main
"""


def test_a_jump_by_an_index_from_before_a_join() -> None:
    """As in copies written by hand: the second jump's index is as old as the first one's."""
    image = Image.load(build(COPY_THAT_JUMPS_INTO_ITS_STORES, language="S"))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr])
    assert not program.unresolved
    cfg = program.functions[main.addr]
    jumped = {cfg.blocks[e.dst].addr - main.addr for e in cfg.edges if e.kind is EdgeKind.INDIRECT}
    assert jumped >= {24, 28, 32, 48, 52, 56}
    verify_program(program)


JUMP_THAT_NO_CALLER_EXPLAINS = """
    .global main
    .type main, %function
main:   push {r4, lr}
        bl 1f
        mov r4, r0
        bl 1f
        bl 1f
        pop {r4, pc}
1:      cmp r0, r1
        bxeq lr
        push {r4, lr}
        and ip, r0, #31
        add r4, pc, #0
        add pc, r4, ip
        nop
        nop
        pop {r4, pc}
"""


def test_a_routine_without_symbol_is_a_function_if_its_jump_hangs_on_itself() -> None:
    """As in a stripped boot loader: the copy's returns are not looked for in its callers."""
    image = Image.load(build(JUMP_THAT_NO_CALLER_EXPLAINS, language="S", cpu="cortex-a8"))
    main = image.symbol("main")
    assert main is not None
    program = extract(image, [main.addr])
    routine = main.addr + 24
    assert set(program.functions) == {main.addr, routine}
    assert [u.addr for u in program.unresolved] == [routine + 20]
    assert program.functions[routine].returns
