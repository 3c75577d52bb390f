"""Programs that damaged files led to: each once gave a graph that its invariants refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

from quoll.extraction.extract import extract
from quoll.image.image import Image
from tests.testing.quoll.building import address, build
from tests.testing.quoll.invariants import verify_program

JUMP_DEAD_IN_ONE_OF_TWO_FUNCTIONS = """
    .global main, table
    .type main, %function
    .type table, %function
main:   push {r4, lr}
        mvn r0, #0
        b table
table:  cmp r0, #1
        bhi out
1:      subs r1, r1, #1
        bne 1b
        ldr pc, [pc, r0, lsl #2]
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

# Thumb code and a table with flipped bits; the callee leads into a return of its caller.
RETURN_THAT_VALUES_REFUTE = bytes.fromhex(
    "70b50126002534462146304600f01ef8011c0544f8d10136092ef4d14d2d284600d070bd00f00cf8"
    "40007047034628b100205a1e01301340fbd17047704700bf49f2cc03c0f2000318e0fde710b50728"
    "20d8dfe800f010151a212a301f0401f0030248f2bc03c0f200030846bde8104053f822301847bde8"
    "10400846fff7d4bf0846fff7d37f013010bd49f2cc03c0f200031960084610bd49f2cc03c0f20003"
    "4a0081f005001a6010bd49f2cc03c0f20003186830bd0846fff7c2ff298000002d80000029800000"
    "2d800000"
)


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


CALL_DEAD_IN_ONE_OF_TWO_FUNCTIONS = """
    .syntax unified
    .thumb
    .global main, choose
    .type main, %function
    .type choose, %function
    .type callee, %function
main:   push {r4, lr}
        movs r3, #0
        cmp r3, #0
        bne 1f
        pop {r4, pc}
1:      b via
        .size main, . - main
choose: push {r4, lr}
        ldr r3, =callee
        bl via
        pop {r4, pc}
        .pool
via:    bx r3
        .size choose, . - choose
callee: bx lr
"""


def test_a_call_may_be_dead_in_one_function_and_alive_in_another() -> None:
    source = CALL_DEAD_IN_ONE_OF_TWO_FUNCTIONS
    image = Image.load(build(source, language="S", thumb=True, cpu="arm7tdmi"))
    names = ("main", "choose", "callee", "via")
    main, choose, callee, via = (s.addr for name in names if (s := image.symbol(name)))
    program = extract(image, [main, choose])
    assert program.unresolved == ()
    ends = {entry: program.functions[entry].blocks[-1] for entry in (main, choose)}
    assert {block.addr for block in ends.values()} == {via}
    assert (ends[main].calls, ends[choose].calls) == ((), (callee,))
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


def test_a_function_entered_in_both_states_may_return(tmp_path: Path) -> None:
    """With symbols the call is refused that contradicts them; without, where the states meet."""
    source = f"    .balign 4\n    nop\n{FUNCTION_ENTERED_IN_BOTH_STATES}"
    elf = build(source, language="S", thumb=True, cpu="cortex-a8")
    image = Image.load(elf)
    main, stop = image.symbol("main"), image.symbol("stop")
    assert main is not None
    assert stop is not None
    (refused,) = extract(image, [main.addr, stop.addr]).unresolved
    assert "as ARM code, but its mapping symbol $t says that it is Thumb code" in refused.reason
    stripped = tmp_path / "stripped.elf"
    subprocess.run(["arm-none-eabi-strip", "-o", stripped, elf], check=True)
    program = extract(Image.load(stripped), [main.addr | 1, stop.addr | 1])
    assert [u.addr for u in program.unresolved] == [stop.addr]
    assert program.functions[main.addr].returns
    verify_program(program)


def test_growing_ends_where_values_refute_a_return_that_nearby_code_does_not_explain(
    tmp_path: Path,
) -> None:
    """The claim came back each time, and was refuted each time."""
    code = ",".join(map(str, RETURN_THAT_VALUES_REFUTE[:-16]))
    table = ",".join(map(str, RETURN_THAT_VALUES_REFUTE[-16:]))
    source = f".global main\n.thumb_func\nmain: .byte {code}\n.section .rodata\n.byte {table}\n"
    path = build(source + ".bss\n.word 0\n", language="S", thumb=True, cpu="cortex-a8")
    stripped = tmp_path / "stripped.elf"
    subprocess.run(["arm-none-eabi-strip", "-s", path, "-o", stripped], check=True, timeout=60)
    image = Image.load(stripped)
    program = extract(image, [image.entry])
    verify_program(program)
    assert program.unresolved


PART_THAT_IS_CALLED_THROUGH_A_REGISTER = """
    .thumb
    .thumb_func
    .type main, %function
    .global main
main:
    .inst.n 0xb570
    .short 0x2601, 0x2500, 0x4634, 0x4621, 0x4630, 0xf000, 0xf81e, 0x3c01
    .short 0x4405, 0xd1f8, 0x3601, 0x2e09, 0xd1f4, 0x2d4d, 0x4628, 0xd000
    .short 0xbd70, 0xf000, 0xf80c, 0x0040, 0x47f0, 0x4703, 0xb128, 0x2000
    .short 0x1e5a, 0x3001, 0x4013, 0xd1fb, 0x4770, 0x4770, 0x9f00, 0xf249
    .short 0x03c4, 0xf2c0, 0x0302, 0x6018, 0xe7fd, 0xb510, 0x2807, 0xd820
    .short 0xe8df, 0xf000, 0x1510, 0x211a, 0x302a, 0x041f, 0xf081, 0x0203
    .short 0xf248, 0x03bc, 0xf2c0, 0x0300, 0x4608, 0xe8bd, 0x4010, 0xf853
    .short 0x3022, 0x4718, 0xe8bd, 0x4010, 0x4608, 0xf7ff, 0xbfd4, 0x4649
    .short 0xf7ff, 0xffd3, 0x3003, 0xbd10, 0xf248, 0x03cc, 0xf2c0, 0x0380
    .short 0x6019, 0x4608, 0xbd12, 0xf249, 0x03cc, 0xf2c0, 0x2300, 0x004a
    .short 0xf081, 0x0005, 0x601a, 0xbd10, 0xf249, 0x03cc, 0xf2c0, 0x0300
    .short 0x6818, 0xbd10, 0x4608, 0xf7ff, 0xffc2, 0x8029, 0x0000, 0x806d
    .short 0x0080
"""


def test_a_part_of_its_callers_that_is_called_through_a_register_is_asked_itself() -> None:
    """Its callees were neither found nor refused, as no query was made after it became a part."""
    source = PART_THAT_IS_CALLED_THROUGH_A_REGISTER
    image = Image.load(build(source, language="S", thumb=True, cpu="cortex-a8"))
    program = extract(image, [address(image, "main")])
    (call,) = (b for b in program.functions[0x8010].blocks if b.last.addr == 0x802A)
    assert call.calls == (0x8010,)
    verify_program(program)
