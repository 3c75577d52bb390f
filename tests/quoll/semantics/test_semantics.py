"""Ops against Unicorn, one instruction at a time, on random states."""

import random
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.operand_overlap import THUMB as THUMB_HIGH
from campaigns.operand_overlap import overlapping, words
from quoll.arm.decode import decode
from quoll.arm.insn import Condition, ControlFlow, Insn
from quoll.errors import ControlFlowError
from quoll.semantics.build import OpsBuilder
from quoll.semantics.corrections import CORRECTIONS, access_ops
from quoll.semantics.lift import lift
from quoll.semantics.ops import OpCode, general
from quoll.semantics.simplify_ops import simplify
from tests.testing.arm.corpus import Decoded, form, sample
from tests.testing.arm.differential import (
    Comparison,
    State,
    Verdict,
    comparable,
    interpret,
    interpret_ops,
    placed,
    random_state,
)
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases

SIZES = ("", "b", "d", "h", "sb", "sh")
PLAIN = frozenset(["ldm", "stm", *(f"{stem}{size}" for stem in ("ldr", "str") for size in SIZES)])

COMPARE = Comparison()
ADDR = 0x10_0000


def arm(word: int) -> Insn:
    return decode(word.to_bytes(4, "little"), ADDR, False)


def thumb(*halves: int, it: tuple[Condition, ...] = ()) -> Insn:
    return decode(b"".join(h.to_bytes(2, "little") for h in halves), ADDR, True, it)


def at_addr(item: Decoded) -> tuple[Insn, bool]:
    return placed(item.insn, item.it, ADDR)


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
def test_forms_of_library_code() -> None:
    """One instruction of every form in the sample, on two states: none may be wrong."""
    forms = {(*form(item.insn), item.it): item for item in sample() if comparable(item.insn)}
    assert len(forms) > 700
    choice = random.Random(2)
    wrong = []
    for item in forms.values():
        insn, it = at_addr(item)
        for _ in range(2):
            verdict, why = COMPARE(insn, random_state(choice, insn), it)
            if verdict is Verdict.WRONG:
                wrong.append((insn.raw.hex(), insn.text, why))
    assert wrong == []


# Words of every correction, and of instructions that the libraries lack
SYSTEM_AND_RARE = [
    arm(word)
    for word in (
        0xE1DF00B4,  # ldrh r0, [pc, #4]
        0xE14F44F0,  # strd r4, [pc, #-64]
        0xE06E38B1,  # strht r3, [lr], #-129
        0xE0B430B2,  # ldrht r3, [r4], r2
        0xE78B4516,  # usada8 r11, r6, r5, r4
        0xE788F117,  # usad8 r8, r7, r1
        0xE08FF183,  # add pc, pc, r3, lsl #3
        0xE1B0F00E,  # movs pc, lr
        0xE25EF004,  # subs pc, lr, #4
        0xE8FD800F,  # ldm sp!, {r0-r3, pc}^
        0xE8DD7FFF,  # ldm sp, {r0-r14}^
        0xE8CD7FFF,  # stm sp, {r0-r14}^
        0xE128F003,  # msr cpsr_f, r3
        0xE12CF003,  # msr cpsr_fs, r3
        0xE328F20F,  # msr cpsr_f, #0xf0000000
        0xE10F0000,  # mrs r0, cpsr
        0xF10C0080,  # cpsid i
        0xE1030092,  # swp r0, r2, [r3]
        0xE1430092,  # swpb r0, r2, [r3]
        0xE1930F9F,  # ldrex r0, [r3]
        0xE0454392,  # umaal r4, r5, r2, r3
        0xE7C61190,  # bfi r1, r0, #3, #4
        0xE6B51072,  # sxtah r1, r5, r2
        0xE6FF1F32,  # rbit r1, r2
        0xE6BF1FB2,  # rev16 r1, r2
        0xE6112F93,  # sadd8 r2, r1, r3
        0xE6512F93,  # uadd8 r2, r1, r3
        0xE6812FB3,  # sel r2, r1, r3
        0xE1042053,  # qadd: r2 unknown
        0xE731F312,  # udiv r1, r2, r3
        0xE711F312,  # sdiv r1, r2, r3
        0xE1B22F9F,  # ldrexd r2, r3, [r2]
        0xE8A2001E,  # stmia r2!, {r1-r4}
        0xE701F312,  # smuad r1, r2, r3
        0xE701F132,  # smuadx r1, r2, r1
        0xE6BF3073,  # sxth r3, r3
        0xE6AF3473,  # sxtb r3, r3, ror #8
        0xE6EF2C74,  # uxtb r2, r4, ror #24
        0xE6A21C73,  # sxtab r1, r2, r3, ror #24
        0xE6F21473,  # uxtah r1, r2, r3, ror #8
        0xE6CF1875,  # uxtb16 r1, r5, ror #16
        0xE6821473,  # sxtab16 r1, r2, r3, ror #8
    )
] + [
    thumb(*halves)
    for halves in (
        (0xF3DE, 0x8F04),  # subs pc, lr, #4
        (0xE9DF, 0x4602),  # ldrd r4, r6, [pc, #8]
        (0xF9BF, 0x3008),  # ldrsh r3, [pc, #8]
        (0xE8AD, 0x100F),  # stmia.w sp!, {r0-r3, ip}
        (0xC006,),  # stmia r0!, {r1, r2}
        (0xC007,),  # stmia r0!, {r0-r2}
        (0xEA11, 0x2123),  # ands.w r1, r1, r3, asr #32
        (0xEA12, 0x12CC),  # ands.w r2, r2, ip, lsl #7
        (0xEA4F, 0x0C12),  # lsr.w ip, r2, #32
        (0xEA5F, 0x0C12),  # lsrs.w ip, r2, #32
        (0xEA7F, 0x4C64),  # mvns.w ip, r4, asr #21 and rrx
        (0xEA7F, 0x0C34),  # mvns.w ip, r4, rrx
        (0xF45F, 0x78C5),  # movs.w r8, #0x18a
        (0xF030, 0x4000),  # bics r0, r0, #0x80000000
        (0xE8DF, 0xF013),  # tbh [pc, r3, lsl #1]
    )
]


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
@pytest.mark.parametrize("insn", SYSTEM_AND_RARE, ids=lambda insn: f"{insn.raw.hex()} {insn.text}")
def test_rare_instructions(insn: Insn) -> None:
    choice = random.Random(3)
    for _ in range(30):
        verdict, why = COMPARE(insn, random_state(choice, insn))
        assert verdict is not Verdict.WRONG, why


def test_every_correction_is_tested() -> None:
    for correction in CORRECTIONS:
        assert any(correction.applies(insn) for insn in SYSTEM_AND_RARE), correction.what


SHIFTED = (0, 1, 2, 3, 4, 8, 10, 11, 13, 14)  # Thumb-2's operations on shifted registers
MOVES, COMPARES = (13, 15), (8, 9, 10, 11)  # ARM's


def shifted_operands() -> Iterator[Insn]:
    """Every operation on r1 and r2 with every kind of shift, by amounts next to the limits."""
    for kind, amount, sets in product(range(4), (0, 1, 2, 15, 16, 31), (0, 1)):
        last = (amount >> 2) << 12 | 3 << 8 | (amount & 3) << 6 | kind << 4 | 2
        for operation, first in product(SHIFTED, (1, 15)):
            if first == 1 or operation in (2, 3):  # Rn = 15 turns orr and orn into mov and mvn
                yield thumb(0xEA00 | operation << 5 | sets << 4 | first, last)
        for operation in range(16):
            if operation in COMPARES and not sets:
                continue
            first, destination = 1 - (operation in MOVES), 0 if operation in COMPARES else 3
            word = 0xE << 28 | operation << 21 | sets << 20 | first << 16 | destination << 12
            yield arm(word | amount << 7 | kind << 5 | 2)
            yield arm(word | 4 << 8 | kind << 5 | 0x10 | 2)
    for kind, amount in product(range(3), range(32)):
        yield thumb(kind << 11 | amount << 6 | 0x11)


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
def test_shifts_at_their_limits() -> None:
    """Amounts of 0 stand for 32 or rrx: random encodings seldom contain them."""
    insns = list(shifted_operands())
    assert len(insns) > 2000
    choice = random.Random(5)
    wrong = []
    for insn in insns:
        verdict, why = COMPARE(insn, random_state(choice, insn))
        if verdict is Verdict.WRONG:
            wrong.append((insn.raw.hex(), insn.text, why))
    assert wrong == []


@pytest.mark.slow("executes thousands of instructions in Unicorn or the interpreter")
@pytest.mark.parametrize("thumb", [False, True], ids=["ARM", "Thumb"])
def test_operands_overlap(thumb: bool) -> None:
    """Rule 43: a sample of ``campaigns.operand_overlap``."""
    choice = random.Random(9)
    exclusive = [0xE19 << 4 | 9, 0xE1B << 4 | 9, 0xE18 << 4 | 9]  # ldrex, ldrexd, strex
    forms = [0xE8C << 4, 0xE8D << 4] if thumb else exclusive
    drawn = THUMB_HIGH if thumb else range(0xE000, 0xF000)
    forms += (
        [high << 4 | choice.getrandbits(4) for high in choice.sample(drawn, 40)]
        if thumb
        else (choice.sample(drawn, 60))
    )
    insns = list(overlapping(words(choice, forms, thumb=thumb), thumb=thumb))
    assert len(insns) > 300
    wrong = []
    for insn in insns:
        verdict, why = COMPARE(insn, random_state(choice, insn))
        if verdict is Verdict.WRONG:
            wrong.append((insn.raw.hex(), insn.text, why))
    assert wrong == []


@pytest.mark.parametrize("cond", list(Condition)[:-1])
def test_conditions(cond: Condition) -> None:
    """Every condition on all sixteen settings of the flags, in ARM and in an IT block."""
    branch = arm(cond << 28 | 0x0A000010)
    add = thumb(0x1888, it=(cond,))
    for flags in range(16):
        state = State(list(range(15)), [flags >> n & 1 for n in range(4)] + [0] * 5, 0x10)
        assert COMPARE(branch, state)[0] is Verdict.EQUAL
        assert COMPARE(add, state, True)[0] is Verdict.EQUAL


def test_lifting_keeps_no_context() -> None:
    """Ops do not depend on earlier lifting, also with IT blocks and interworking."""
    words = [thumb(0xBF0C), thumb(0x1888), thumb(0x4770), thumb(0xF000, 0xE804)]
    words += [arm(0xFA000000), arm(0xE12FFF1E), arm(0xE0810002), thumb(0x1888, it=(Condition.EQ,))]
    first = [lift(insn) for insn in words]
    assert len(set(first)) == len(words) - 1  # bx lr is the same in both
    later = [decode(insn.raw, ADDR, insn.thumb) for insn in reversed(words[:-1])]
    assert [lift(insn) for insn in later] == first[-2::-1]


def test_user_bank_spares_the_current_stack() -> None:
    written = {op.out for op in lift(arm(0xE8DD7FFF))}
    assert general(13) not in written
    assert general(14) not in written


@pytest.mark.parametrize(
    ("insn", "displacement", "end"),
    [(arm(0xF8BD0A00), 0, 8), (thumb(0xE9BD, 0xC000), 0, 8), (arm(0xF93D0A00), -8, -8)],
)
def test_return_from_exception(insn: Insn, displacement: int, end: int) -> None:
    """rfe: the address below the status word; flags, state and base as B9.3.13 has them."""
    machine = ConcreteMachine(ByteMemory(), lambda op: 0x1234)
    machine.registers[13] = 0x2000
    machine.memory.store(0x2000 + displacement, 4, 0x8000)
    machine.memory.store(0x2004 + displacement, 4, 0x9000_0030)
    machine.step(insn)
    assert (machine.registers[15], machine.thumb) == (0x8000, True)
    assert machine.registers[16:20] == [1, 0, 0, 1]
    assert any(op.code is OpCode.INT_ADD or op.code is OpCode.INT_SUB for op in lift(insn))
    assert machine.registers[13] == 0x1234  # of another bank, or 0x2000 + end
    known = [op for op in lift(insn) if op.out == general(13) and op.code is not OpCode.BANK]
    assert [op.ins[1].offset for op in known] == [abs(end)]


def test_store_return_state() -> None:
    """srsdb sp!, #19: lr and SPSR go below the stack pointer of mode 19."""
    machine = ConcreteMachine(ByteMemory(), lambda op: 0x3000 if op.code is OpCode.BANK else 0x55)
    machine.registers[14] = 0x77
    machine.step(arm(0xF96D0513))
    assert machine.memory.load(0x2FF8, 8) == 0x55_0000_0077
    assert machine.registers[13] == 0x55


def test_unallocated_encodings_trap() -> None:
    insn = arm(0xE6F01FF2)
    assert insn.flow is ControlFlow.UNDEFINED
    assert [op.code for op in lift(insn)] == [OpCode.TRAP]


def test_mode_change_is_explicit() -> None:
    banked = [op for op in lift(arm(0xF1020013)) if op.code is OpCode.BANK]  # cps #19
    assert {op.out for op in banked} == {general(n) for n in range(8, 15)}
    assert {op.ins[1].offset for op in banked} == {19}
    assert lift(arm(0xF10C0080)) == ()  # cpsid i


def test_registers_of_other_modes() -> None:
    """msr r9_usr, r7 may write any register that can be banked."""
    assert {op.out for op in lift(arm(0xE121F207))} == {general(n) for n in range(8, 15)}
    assert not arm(0xE121F207).sets_flags


def test_big_endian_is_refused() -> None:
    with pytest.raises(ControlFlowError, match="big-endian"):
        lift(arm(0xF1010200))


def test_vfp_accesses_memory_exactly() -> None:
    codes = [op.code for op in lift(arm(0xED2D8B02))]  # vpush {d8}
    assert codes.count(OpCode.STORE) == 2
    assert codes.count(OpCode.UNKNOWN) == 2


def is_plain_access(insn: Insn) -> bool:
    """Whether ``insn`` moves general registers of the current mode and does nothing else."""
    if insn.memory is None or insn.mnemonic not in PLAIN:
        return False
    return insn.memory.count == 1 or not insn.memory.user


@pytest.mark.slow("many random instructions")
@settings(max_examples=cases(12))
@given(seed=st.integers(0, 2**32))
def test_two_opinions_on_accesses(seed: int) -> None:
    """Plain accesses lifted from the decoded fields agree with the specification."""
    choice = random.Random(seed)
    item = choice.choice([d for d in sample() if is_plain_access(d.insn)])
    insn, _ = at_addr(item)
    state = random_state(choice, insn)
    build = OpsBuilder()
    guard = build.guard(insn.cond)
    build.append(access_ops(insn))
    build.close(guard)
    expected = interpret(insn, state, lambda op: 0)
    found = interpret_ops(insn, tuple(build.ops), state, lambda op: 0)
    assert found == expected


@pytest.mark.slow("many random instructions")
@settings(max_examples=cases(30))
@given(seed=st.integers(0, 2**32))
def test_simplification_changes_nothing(seed: int) -> None:
    """Simplifying simplified ops, with dead and folded ones put back, has the same effect."""
    choice = random.Random(seed)
    item = choice.choice([d for d in sample() if comparable(d.insn)])
    insn, _ = at_addr(item)
    ops = lift(insn)
    state = random_state(choice, insn)
    build = OpsBuilder()
    padding = build.value(OpCode.INT_ADD, general(1), general(2))
    build.value(OpCode.INT_XOR, padding, padding)
    build.append(list(ops))
    before = interpret_ops(insn, tuple(build.ops), state, lambda op: 5)
    after = interpret_ops(insn, simplify(build.ops), state, lambda op: 5)
    assert after == before == interpret(insn, state, lambda op: 5)
