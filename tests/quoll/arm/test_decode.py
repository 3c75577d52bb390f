"""Decoding: one row per encoding class, and properties over all byte strings."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quoll.arm.decode import decode, it_conditions
from quoll.arm.insn import AccessKind, Condition, ControlFlow, Insn, ShiftKind
from quoll.errors import InputError
from tests.testing.harness.cases import cases


def arm(word: int, addr: int = 0x8000) -> Insn:
    return decode(word.to_bytes(4, "little"), addr, False)


def thumb(*halves: int, addr: int = 0x8000, it: tuple[Condition, ...] = ()) -> Insn:
    return decode(b"".join(h.to_bytes(2, "little") for h in halves), addr, True, it)


def regs(insn: Insn) -> tuple[set[int], set[int]]:
    return set(insn.reads), set(insn.writes)


# (word, mnemonic, reads, writes, sources, flow, shift, sets flags, reads flags)
ARM_ROWS = [
    (
        0xE1A01083,
        "mov",
        {3},
        {1},
        (3,),
        ControlFlow.NEXT,
        ShiftKind.IMMEDIATE,
        False,
        False,
    ),  # lsl #1
    (
        0xE1B01413,
        "mov",
        {3, 4},
        {1},
        (3, 4),
        ControlFlow.NEXT,
        ShiftKind.REGISTER,
        True,
        False,
    ),  # lsls r4
    (0xE1A01062, "mov", {2}, {1}, (2,), ControlFlow.NEXT, ShiftKind.IMMEDIATE, False, True),  # rrx
    (
        0xE0921433,
        "add",
        {2, 3, 4},
        {1},
        (2, 3, 4),
        ControlFlow.NEXT,
        ShiftKind.REGISTER,
        True,
        False,
    ),
    (
        0xE1B0F00E,
        "mov",
        {14},
        {15},
        (14,),
        ControlFlow.EXCEPTION_RETURN,
        ShiftKind.NONE,
        True,
        False,
    ),
    (
        0xE25EF004,
        "sub",
        {14},
        {15},
        (14,),
        ControlFlow.EXCEPTION_RETURN,
        ShiftKind.NONE,
        True,
        False,
    ),
    (
        0xE08FF103,
        "add",
        {15, 3},
        {15},
        (15, 3),
        ControlFlow.INDIRECT,
        ShiftKind.IMMEDIATE,
        False,
        False,
    ),
    (0xE0A01002, "adc", {0, 2}, {1}, (0, 2), ControlFlow.NEXT, ShiftKind.NONE, False, True),
    (0xE0210392, "mla", {2, 3, 0}, {1}, (2, 3, 0), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (
        0xE0E10392,
        "smlal",
        {2, 3, 0, 1},
        {0, 1},
        (2, 3, 0, 1),
        ControlFlow.NEXT,
        ShiftKind.NONE,
        False,
        False,
    ),
    (0xE7C61190, "bfi", {0, 1}, {1}, (0, 1), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xE3401234, "movt", {1}, {1}, (1,), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xE12FFF1E, "bx", {14}, {15}, (14,), ControlFlow.INDIRECT, ShiftKind.NONE, False, False),
    (
        0xE12FFF33,
        "blx",
        {3},
        {14, 15},
        (3,),
        ControlFlow.INDIRECT_CALL,
        ShiftKind.NONE,
        False,
        False,
    ),
    (0xEE110F10, "mrc", set(), {0}, (), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xEE11FF10, "mrc", set(), set(), (), ControlFlow.NEXT, ShiftKind.NONE, True, False),
    (0xEE070F15, "mcr", {0}, set(), (0,), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xEC510F02, "mrrc", set(), {0, 1}, (), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xE10F0000, "mrs", set(), {0}, (), ControlFlow.NEXT, ShiftKind.NONE, False, True),
    (0xE14F0000, "mrs", set(), {0}, (), ControlFlow.NEXT, ShiftKind.NONE, False, False),  # spsr
    (0xE121F000, "msr", {0}, set(), (0,), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xE128F000, "msr", {0}, set(), (0,), ControlFlow.NEXT, ShiftKind.NONE, True, False),
    (0xE16FF000, "msr", {0}, set(), (0,), ControlFlow.NEXT, ShiftKind.NONE, False, False),  # spsr
    (
        0xE160006E,
        "sub",
        {14},
        {15},
        (14,),
        ControlFlow.EXCEPTION_RETURN,
        ShiftKind.NONE,
        True,
        False,
    ),
    (0xEF000003, "svc", set(), set(), (), ControlFlow.TRAP, ShiftKind.NONE, False, False),
    (0xE7F000F0, "udf", set(), set(), (), ControlFlow.TRAP, ShiftKind.NONE, False, False),
    (0xE6AF2071, "sxtb", {1}, {2}, (1,), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xE6512F93, "uadd8", {1, 3}, {2}, (1, 3), ControlFlow.NEXT, ShiftKind.NONE, True, False),
    (0xE6812FB3, "sel", {1, 3}, {2}, (1, 3), ControlFlow.NEXT, ShiftKind.NONE, False, True),
    (0xE1510002, "cmp", {1, 2}, set(), (1, 2), ControlFlow.NEXT, ShiftKind.NONE, True, False),
    (0xEE100A90, "vmov", set(), {0}, (), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xEE000A90, "vmov", {0}, set(), (0,), ControlFlow.NEXT, ShiftKind.NONE, False, False),
    (0xEEF1FA10, "vmrs", set(), set(), (), ControlFlow.NEXT, ShiftKind.NONE, True, False),
]


@pytest.mark.parametrize("row", ARM_ROWS, ids=lambda row: f"{row[0]:08x} {row[1]}")
def test_roles(row: tuple[object, ...]) -> None:
    word, mnemonic, reads, writes, sources, flow, shift, sets, uses = row
    assert isinstance(word, int)
    insn = arm(word)
    assert (insn.mnemonic, *regs(insn)) == (mnemonic, reads, writes)
    assert (insn.sources, insn.flow, insn.shift) == (sources, flow, shift)
    assert (insn.sets_flags, insn.reads_flags) == (sets, uses)


# (word, mnemonic, access, size, count, base, index, displacement, pre, writeback, transfers)
ARM_MEMORY = [
    (0xE4110004, "ldr", AccessKind.LOAD, 4, 1, 1, None, -4, False, True, (0,)),
    (0xE6110102, "ldr", AccessKind.LOAD, 4, 1, 1, 2, 0, False, True, (0,)),
    (0xE01100B2, "ldrh", AccessKind.LOAD, 2, 1, 1, 2, 0, False, True, (0,)),
    (0xE0C420D8, "ldrd", AccessKind.LOAD, 4, 2, 4, None, 8, False, True, (2, 3)),
    (0xE15210D9, "ldrsb", AccessKind.LOAD, 1, 1, 2, None, -9, True, False, (1,)),
    (0xE4B10004, "ldr", AccessKind.LOAD, 4, 1, 1, None, 4, False, True, (0,)),  # ldrt
    (0xE1B12F9F, "ldrexd", AccessKind.LOAD, 4, 2, 1, None, 0, True, False, (2, 3)),
    (0xE1A14F92, "strexd", AccessKind.STORE, 4, 2, 1, None, 0, True, False, (2, 3)),
    (0xE1420091, "swpb", AccessKind.SWAP, 1, 1, 2, None, 0, True, False, (0, 1)),
    (0xE49D4004, "ldr", AccessKind.LOAD, 4, 1, 13, None, 4, False, True, (4,)),  # pop {r4}
    (0xE52D4004, "str", AccessKind.STORE, 4, 1, 13, None, -4, True, True, (4,)),  # push {r4}
    (0xE92D0010, "stm", AccessKind.STORE, 4, 1, 13, None, -4, True, True, (4,)),
    (0xE9B1000C, "ldm", AccessKind.LOAD, 4, 2, 1, None, 4, True, True, (2, 3)),
    (0xE811000C, "ldm", AccessKind.LOAD, 4, 2, 1, None, -4, True, False, (2, 3)),
    (0xF5DFF008, "pld", AccessKind.PRELOAD, 1, 1, 15, None, 8, True, False, ()),
    (0xECB21502, "ldc", AccessKind.LOAD, 4, 16, 2, None, 8, False, True, ()),
    (0xF96D0513, "srs", AccessKind.STORE, 4, 2, None, None, -8, True, True, ()),
    (0xF8BD0A00, "rfe", AccessKind.LOAD, 4, 2, 13, None, 0, True, True, (15,)),
    (0xEDD10A02, "vldr", AccessKind.LOAD, 4, 1, 1, None, 8, True, False, ()),
    (0xECB00B08, "vldm", AccessKind.LOAD, 4, 8, 0, None, 0, True, True, ()),
    (0xED2D8B02, "vstm", AccessKind.STORE, 4, 2, 13, None, -8, True, True, ()),
    (0xF4200A0D, "vld1", AccessKind.LOAD, 4, 4, 0, None, 16, False, True, ()),
]


@pytest.mark.parametrize("row", ARM_MEMORY, ids=lambda row: f"{row[0]:08x} {row[1]}")
def test_memory(row: tuple[object, ...]) -> None:
    assert isinstance(row[0], int)
    insn = arm(row[0])
    memory = insn.memory
    assert memory is not None
    place = (memory.access, memory.size, memory.count, memory.base, memory.index)
    rest = (memory.displacement, memory.pre_indexed, memory.writeback, insn.transfers)
    assert (insn.mnemonic, *place, *rest) == row[1:]
    if memory.writeback and memory.base is not None:
        assert memory.base in insn.writes


def test_user_bank() -> None:
    store = arm(0xE8CD7FFF)  # stmia sp, {r0-r14}^
    assert store.memory is not None
    assert store.memory.user
    assert store.flow is ControlFlow.NEXT
    assert store.reads == frozenset(range(14))  # the base, and not the current r14
    load = arm(0xE8DD7FFF)
    assert load.writes == frozenset(range(13))
    back = arm(0xE8FD800F)  # ldm sp!, {r0-r3, pc}^
    assert back.memory is not None
    assert not back.memory.user
    assert back.flow is ControlFlow.EXCEPTION_RETURN


def test_scaled_index() -> None:
    memory = arm(0xE6110102).memory  # ldr r0, [r1], -r2, lsl #2
    assert memory is not None
    assert (memory.subtract, memory.scale_shift, memory.lsl) == (True, 2, True)
    memory = arm(0xE7910062).memory  # ldr r0, [r1, r2, rrx]
    assert memory is not None
    assert (memory.shift, memory.lsl, memory.scale_shift) == (ShiftKind.IMMEDIATE, False, 0)


def test_direct_targets() -> None:
    assert arm(0xEAFFFFFE).target == 0x8000
    call = arm(0xFB000000, 0x8000)  # blx, H = 1
    assert (call.target, call.target_thumb, call.flow) == (0x800A, True, ControlFlow.CALL)
    assert thumb(0xE7FE).target == 0x8000
    assert thumb(0xD002).cond is Condition.EQ
    away = thumb(0xF000, 0xE804, addr=0x8002)  # blx: relative to the aligned pc
    assert (away.target, away.target_thumb) == (0x800C, False)
    assert thumb(0xB110).target == 0x8008  # cbz
    assert arm(0xEAFFFFFD, 0).target == 0xFFFFFFFC


def test_thumb_forms() -> None:
    assert regs(thumb(0x4440)) == ({0, 8}, {0})  # add r0, r8
    assert thumb(0x4088).sources == (0, 1)  # lsls r0, r1
    assert thumb(0x4088).shift is ShiftKind.REGISTER
    assert thumb(0xBD10).flow is ControlFlow.INDIRECT
    assert thumb(0xBD10).transfers == (4, 15)
    assert thumb(0xF3DE, 0x8F04).flow is ControlFlow.EXCEPTION_RETURN  # subs pc, lr, #4
    table = thumb(0xE8DF, 0xF010)  # tbh [pc, r0, lsl #1]
    assert table.memory is not None
    assert (table.flow, table.memory.size, table.memory.scale_shift) == (ControlFlow.INDIRECT, 2, 1)
    store = thumb(0xE82D, 0xC013)  # srsdb sp!, #19
    assert store.memory is not None
    assert store.memory.displacement == -8
    back = thumb(0xE9BD, 0xC000)  # rfeia sp!
    assert back.memory is not None
    assert back.memory.displacement == 0


def test_it_block() -> None:
    block = it_conditions(thumb(0xBF0C))  # ite eq
    assert block == (Condition.EQ, Condition.NE)
    assert it_conditions(thumb(0xBFA5)) == (Condition.GE, Condition.GE, Condition.LT, Condition.GE)
    assert it_conditions(thumb(0xBF00)) == ()
    inside = thumb(0x1888, it=block)
    assert (inside.cond, inside.sets_flags) == (Condition.EQ, False)
    outside = thumb(0x1888)
    assert (outside.cond, outside.sets_flags) == (Condition.AL, True)
    assert thumb(0xBF0C).cond is Condition.AL


def test_truncated() -> None:
    for code, is_thumb in [
        (b"", True),
        (b"\x00", True),
        (b"\x00\xf0\x00", True),
        (b"\0\0\0", False),
    ]:
        with pytest.raises(InputError, match="ends inside"):
            decode(code, 0x8000, is_thumb)


@pytest.mark.slow("many random instructions")
@settings(max_examples=cases(400), deadline=None)
@given(
    code=st.binary(min_size=4, max_size=4),
    addr=st.integers(0, 0xFFFFFFFF).map(lambda a: a & ~3),
    is_thumb=st.booleans(),
    it=st.sampled_from([(), (Condition.EQ,), (Condition.AL, Condition.AL)]),
)
@example(code=b"\x00\x00\x00\xf0", addr=0, is_thumb=False, it=())
def test_any_bytes(code: bytes, addr: int, is_thumb: bool, it: tuple[Condition, ...]) -> None:
    """Every encoding decodes to consistent fields, after any other encodings."""
    insn = decode(code, addr, is_thumb, it if is_thumb else ())
    assert insn.raw == code[: insn.size]
    assert insn.size in ((2, 4) if is_thumb else (4,))
    assert set(insn.sources) == insn.reads
    assert (insn.target is not None) == (insn.flow in (ControlFlow.JUMP, ControlFlow.CALL))
    if insn.target is not None:
        assert insn.target % (2 if insn.target_thumb else 4) == 0 or not insn.target_thumb
    if insn.memory is not None and insn.memory.access is AccessKind.LOAD and not insn.memory.user:
        assert set(insn.transfers) <= insn.writes
    if 15 in insn.writes:
        assert insn.flow in (
            ControlFlow.INDIRECT,
            ControlFlow.INDIRECT_CALL,
            ControlFlow.EXCEPTION_RETURN,
        )


def test_speed() -> None:
    """20,000 instructions, a quarter of them distinct, well under a second."""
    words = [0xE0800001 + (n % 5000 << 12 & 0xF000) + (n % 5000 >> 4) for n in range(20000)]
    start = time.process_time()
    for n, word in enumerate(words):
        arm(word, 4 * n)
    assert time.process_time() - start < 2.0
