"""Corrections of mistakes in the SLEIGH specification. Each row has its test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quoll.arm.addressing import is_block_transfer
from quoll.arm.architecture import computes_pc
from quoll.arm.insn import LR, PC, AccessKind, Condition, ControlFlow, Insn, MemoryAccess
from quoll.semantics.build import OpsBuilder
from quoll.semantics.ops import C, N, Op, OpCode, Q, Var, Z, const, general
from quoll.semantics.pcode import translate
from quoll.semantics.system import unknown_results

__all__ = ["CORRECTIONS", "Correction", "access_ops", "unconditional"]

ARM_ALWAYS = 0xE0
STATUS_SETTING = 1 << 20  # the S bit
LOGICAL = frozenset(["and", "bic", "eor", "mov", "mvn", "orn", "orr", "teq", "tst"])


@dataclass(frozen=True, slots=True)
class Correction:
    """``ops`` replaces the specification for instructions for which ``applies`` holds."""

    what: str
    applies: Callable[[Insn], bool]
    ops: Callable[[Insn], list[Op]]


def unconditional(insn: Insn) -> bytes:
    """The encoding of ``insn`` with the condition AL; IT conditions are in no encoding."""
    if insn.thumb or insn.cond is Condition.AL:
        return insn.raw
    return insn.raw[:3] + bytes([insn.raw[3] & 15 | ARM_ALWAYS])


def _returns_to_link(insn: Insn) -> bool:
    is_thumb_form = insn.thumb and insn.size == 4 and insn.flow is ControlFlow.EXCEPTION_RETURN
    return (is_thumb_form and insn.memory is None) or insn.text.startswith("eret")


def _to_link(insn: Insn) -> list[Op]:
    amount = insn.raw[2] if insn.thumb else 0
    build = OpsBuilder()
    target = build.value(OpCode.INT_SUB, general(LR), const(amount))
    build.emit(OpCode.GOTO, None, target, const(0, 1))
    return build.ops


def _by_way_of_register(insn: Insn) -> list[Op]:
    free = next(number for number in range(13) if number not in insn.reads)
    word = int.from_bytes(unconditional(insn), "little") & ~STATUS_SETTING
    word = word & ~(PC << 12) | free << 12
    ops = translate(word.to_bytes(4, "little"), False, insn.addr)
    if ops is None:
        return unknown_results(insn)
    build = OpsBuilder()
    target = build.fresh()
    build.append(ops)
    found = {general(free): target}
    build.ops = [
        Op(op.code, op.out and found.get(op.out, op.out), tuple(found.get(v, v) for v in op.ins))
        for op in build.ops
    ]
    state = const(0, 1)
    if insn.interworks:
        odd = build.value(OpCode.INT_AND, target, const(1))
        state = build.value(OpCode.SUBPIECE, odd, const(0), size=1)
    build.emit(OpCode.GOTO, None, target, state)
    return build.ops


def _narrow_or_pair_literal(insn: Insn) -> bool:
    """Halfwords, signed bytes and pairs relative to the pc."""
    based_on_pc = insn.memory is not None and insn.memory.base == PC
    return based_on_pc and insn.mnemonic in ("ldrd", "ldrh", "ldrsb", "ldrsh", "strd", "strh")


def _arm_unprivileged_halfword(insn: Insn) -> bool:
    unprivileged = insn.memory is not None and insn.memory.user
    return not insn.thumb and insn.mnemonic in ("ldrh", "ldrsb", "ldrsh", "strh") and unprivileged


def _thumb_ascending_store(insn: Insn) -> bool:
    """stmia.w sp!, which the specification takes for push; stm with its base in the list."""
    memory = insn.memory
    if memory is None or not insn.thumb or insn.mnemonic != "stm" or memory.displacement != 0:
        return False
    return insn.size == 4 or memory.base in insn.transfers


def _thumb_logical(insn: Insn) -> bool:
    """Shifted registers (A6.3.11) and modified immediates (A6.3.1) with a shifter carry."""
    if not (insn.thumb and insn.size == 4 and insn.sets_flags and insn.mnemonic in LOGICAL):
        return False
    first = int.from_bytes(insn.raw[:2], "little")
    return first & 0xFE00 == 0xEA00 or first & 0xFA00 == 0xF000


def _with_shifter_carry(insn: Insn) -> list[Op]:
    ops = translate(insn.raw, True, insn.addr)
    if ops is None or PC in insn.sources:  # UNPREDICTABLE with the pc (A8.8.9 and others)
        return unknown_results(insn)
    build = OpsBuilder()
    carry = _shifter_carry(build, insn)
    build.append([op for op in ops if op.out != C])
    if carry is not None:
        build.emit(OpCode.COPY, C, carry)
    return build.ops


def _shifter_carry(build: OpsBuilder, insn: Insn) -> Var | None:
    """The carry out of the shifter (A8.4.1, A6.3.2), None if it is C itself."""
    first, second = (int.from_bytes(insn.raw[n : n + 2], "little") for n in (0, 2))
    amount = second >> 10 & 0x1C | second >> 6 & 3
    if first >> 12 == 0xF:
        rotation = (first >> 10 & 1) << 4 | second >> 11 & 0xE | second >> 7 & 1
        if rotation < 8:
            return None
        value = 0x80 | second & 0x7F
        return const((value << 32 >> rotation & 0xFFFFFFFF) >> 31, 1)
    kind, register = second >> 4 & 3, general(second & 15)
    if kind == 0 and amount == 0:
        return None
    if kind == 0:
        bit = 32 - amount
    else:
        bit = amount - 1 if amount or kind == 3 else 31  # lsr and asr by 32; 0 is rrx for ror
    shifted = build.value(OpCode.INT_RIGHT, register, const(max(bit, 0)))
    masked = build.value(OpCode.INT_AND, shifted, const(1))
    return build.value(OpCode.SUBPIECE, masked, const(0), size=1)


def _thumb_shift_by_word(insn: Insn) -> bool:
    """lsr.w #32, encoded as 0 (A8.8.96)."""
    first, second = (int.from_bytes(insn.raw[n : n + 2], "little") for n in (0, 2))
    shift_of_mov = insn.thumb and insn.size == 4 and first & 0xFFEF == 0xEA4F
    return shift_of_mov and second & 0x70F0 == 0x0010


def _shifted_out(insn: Insn) -> list[Op]:
    if PC in insn.sources or PC in insn.writes:  # UNPREDICTABLE (A8.8.96)
        return unknown_results(insn)
    build = OpsBuilder()
    carry = _shifter_carry(build, insn)
    (destination,) = insn.writes
    build.emit(OpCode.COPY, general(destination), const(0))
    if insn.sets_flags and carry is not None:
        for flag, value in ((N, const(0, 1)), (Z, const(1, 1)), (C, carry)):
            build.emit(OpCode.COPY, flag, value)
    return build.ops


def _arm_exclusive_pair(insn: Insn) -> bool:
    return not insn.thumb and insn.mnemonic == "ldrexd"


def _stores_unknown_base(insn: Insn) -> bool:
    """stm with write-back whose base is in the list, not first (A8.8.199)."""
    memory = insn.memory
    listed = insn.mnemonic == "stm" and memory is not None and memory.writeback
    return listed and memory is not None and memory.base in insn.transfers[1:]


def _arm_sum_of_products(insn: Insn) -> bool:
    return not insn.thumb and insn.mnemonic in ("smuad", "smuadx")


def _sum_of_products(insn: Insn) -> list[Op]:
    """Products of the signed halves, crosswise for smuadx (A8.8.180)."""
    build = OpsBuilder()
    first, second = (build.value(OpCode.COPY, general(r)) for r in insn.sources)
    halves = [_signed_halves(build, word) for word in (first, second)]
    if insn.mnemonic == "smuadx":
        halves[1].reverse()
    low, high = (build.value(OpCode.INT_MULT, *pair) for pair in zip(*halves, strict=True))
    overflow = build.value(OpCode.INT_SCARRY, low, high, size=1)
    build.emit(OpCode.BOOL_OR, Q, overflow, Q)
    (destination,) = insn.writes
    build.emit(OpCode.INT_ADD, general(destination), low, high)
    return build.ops


def _signed_halves(build: OpsBuilder, word: Var) -> list[Var]:
    low = build.value(OpCode.SUBPIECE, word, const(0), size=2)
    return [build.value(OpCode.INT_SEXT, low), build.value(OpCode.INT_SRIGHT, word, const(16))]


def _arm_absolute_differences(insn: Insn) -> bool:
    return not insn.thumb and insn.mnemonic in ("usad8", "usada8")


def access_ops(insn: Insn) -> list[Op]:
    """Ops of a plain access: all transfers, then the base, then the registers loaded."""
    memory = insn.memory
    if memory is None or memory.base is None:
        raise ValueError(f"{insn.text} is no plain access")
    build = OpsBuilder()
    lowest, moved = build.address(insn, memory)
    loaded = []
    for number, register in enumerate(insn.transfers):
        place = build.value(OpCode.INT_ADD, lowest, const(number * memory.size))
        if memory.access is AccessKind.LOAD:
            loaded.append((register, _load(build, insn, memory, place)))
        else:
            _store(build, insn, memory, place, register)
    if memory.writeback:
        _write_back(build, insn, memory, memory.base, moved)
    target = None
    for register, value in loaded:
        if register == PC:
            target = value
        else:
            build.emit(OpCode.COPY, general(register), value)
    if target is not None:
        odd = build.value(OpCode.INT_AND, target, const(1))
        build.emit(OpCode.GOTO, None, target, build.value(OpCode.SUBPIECE, odd, const(0), size=1))
    return build.ops


def _load(build: OpsBuilder, insn: Insn, memory: MemoryAccess, place: Var) -> Var:
    value = build.value(OpCode.LOAD, place, size=memory.size)
    if memory.size == 4:
        return value
    signed = insn.mnemonic in ("ldrsb", "ldrsh")
    return build.value(OpCode.INT_SEXT if signed else OpCode.INT_ZEXT, value)


def _store(build: OpsBuilder, insn: Insn, memory: MemoryAccess, place: Var, register: int) -> None:
    unknown = register == memory.base and _stores_unknown_base(insn)
    value = build.value(OpCode.UNKNOWN) if unknown else build.register(register, insn)
    if memory.size < 4:
        value = build.value(OpCode.SUBPIECE, value, const(0), size=memory.size)
    build.emit(OpCode.STORE, None, place, value)


def _write_back(build: OpsBuilder, insn: Insn, memory: MemoryAccess, base: int, moved: Var) -> None:
    if is_block_transfer(insn):
        build.past_list(insn, memory, base)
    elif base != PC:
        build.emit(OpCode.COPY, general(base), moved)


CORRECTIONS: tuple[Correction, ...] = (
    Correction(
        "subs pc, lr, #n of Thumb and eret: flags from the subtraction, state from the address",
        _returns_to_link,
        _to_link,
    ),
    Correction(
        "data processing to the pc: spsr without S, flags with it, the state of bit 0 twice",
        computes_pc,
        _by_way_of_register,
    ),
    Correction(
        "literals of ldrh, ldrsb, ldrsh, ldrd: used as addresses, and the pair swapped (Thumb)",
        _narrow_or_pair_literal,
        access_ops,
    ),
    Correction(
        "ldrht, ldrsbt, ldrsht, strht of ARM: a word is stored, register forms are missing",
        _arm_unprivileged_halfword,
        access_ops,
    ),
    Correction(
        "stmia of Thumb: with sp taken for push, with its base in the list not written back",
        _thumb_ascending_store,
        access_ops,
    ),
    Correction(
        "ldrexd of ARM: the second address is computed after the first word has replaced the base",
        _arm_exclusive_pair,
        access_ops,
    ),
    Correction(
        "stm with write-back whose base is in the list, not first: it stores an UNKNOWN word",
        _stores_unknown_base,
        access_ops,
    ),
    Correction("lsr.w #32: the register is not shifted", _thumb_shift_by_word, _shifted_out),
    Correction(
        "logical instructions of Thumb-2 with S: C is left alone",
        _thumb_logical,
        _with_shifter_carry,
    ),
    Correction(
        "smuad, smuadx of ARM: the pc is added",
        _arm_sum_of_products,
        _sum_of_products,
    ),
    Correction(
        "usad8, usada8 of ARM: registers mixed up", _arm_absolute_differences, unknown_results
    ),
)
