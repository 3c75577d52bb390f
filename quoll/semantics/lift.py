"""Instruction semantics: ops on registers, flags and memory.

``lift`` joins three sources. Data processing, accesses and multiplications come from Ghidra's
specification (``pcode.py``); its mistakes are replaced as ``CORRECTIONS`` says. Instructions on
processor modes, coprocessors or no data at all are in ``system.py``. Conditions and direct
branches are made here from the decoded fields, for ARM and IT blocks alike, so that an
instruction is always: skip to the end unless the condition holds, then the effect.

All words are little-endian. An unaligned address is accessed unaligned (ARMv6 with SCTLR.U = 1,
ARMv7): where the hardware would take an alignment fault, the access has no result.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from quoll.arm.decode import decode
from quoll.arm.forms import number_named, registers_named
from quoll.arm.insn import LR, PC, SP, ControlFlow, Insn, Remainder
from quoll.arm.unpredictable import unpredictable_form
from quoll.semantics.build import OpsBuilder
from quoll.semantics.corrections import CORRECTIONS, unconditional
from quoll.semantics.ops import BANKED, FLAGS, GE, Op, OpCode, Q, Space, Var, const, general
from quoll.semantics.pcode import translate
from quoll.semantics.simplify_ops import simplify
from quoll.semantics.system import is_system, system_ops, unknown_results

__all__ = [
    "Lifted",
    "Op",
    "OpCode",
    "OpsForm",
    "Space",
    "Var",
    "identity",
    "lift",
    "lift_afresh",
    "lifted",
    "what_decides",
]

CACHED = 1 << 17
ADDRESSED = (
    ControlFlow.JUMP,
    ControlFlow.CALL,
    ControlFlow.INDIRECT_CALL,
)  # use their address without reading pc
TABLE_BRANCHES = ("tbb", "tbh")  # A8.8.236: their targets are relative to themselves
DIRECT = ("b", "bl", "blx")
LITERAL = 0xE59F0000  # ldr r0, [pc]
TARGET, NEXT = 0x5A5A5A58, 0x3C3C3C3C  # placeholders: branch target, address after the branch


class OpsForm:
    """The ops of instructions that differ only in registers and numbers; equal if identical."""

    __slots__ = ("ops",)

    def __init__(self, ops: tuple[Op, ...]) -> None:
        self.ops = ops


class Lifted(NamedTuple):
    """The ops of an instruction: the ops of its form, with some variables renamed."""

    form: OpsForm
    names: Mapping[Var, Var]


def lift(insn: Insn) -> tuple[Op, ...]:
    """The ops of ``insn``, in the order of its accesses.

    At the end, execution continues at ``insn.next`` in the same state. Raises ``ControlFlowError``
    for an instruction without semantics.
    """
    form, names = lifted(insn)
    if not names:
        return form.ops
    return tuple(
        Op(op.code, op.out and names.get(op.out, op.out), tuple(names.get(v, v) for v in op.ins))
        for op in form.ops
    )


def lifted(insn: Insn) -> Lifted:
    """As ``lift``, for callers that process the ops of a form once."""
    key = identity(insn)
    found = _cache.get(key)
    if found is None:
        if len(_cache) >= CACHED:
            _cache.clear()
        found = _cache[key] = _of_form(insn)
    return found


def _of_form(insn: Insn) -> Lifted:
    """The lifted form of ``insn``, if it has a representative with other registers and numbers."""
    if insn.remainder is not None:
        return Lifted(OpsForm(_remainder(insn, insn.remainder)), {})
    if insn.target is not None and insn.mnemonic in DIRECT:
        return _direct_form(insn, insn.target)
    word = insn.encoding
    plain = not insn.thumb and insn.flow is ControlFlow.NEXT
    if plain and PC in insn.reads:
        found = _literal_form(insn)
        return found or Lifted(OpsForm(lift_afresh(insn)), {})
    named = registers_named(word) if plain else None
    if named is None:
        return Lifted(OpsForm(lift_afresh(insn)), {})
    word, names = named[0], {general(name): general(r) for name, r in named[1].items()}
    number = number_named(word)
    if number is not None:
        word, one, value = number
        names |= {const(one): const(value), const(~one): const(~value), const(-one): const(-value)}
    if word == insn.encoding:
        return Lifted(OpsForm(lift_afresh(insn)), {})
    return Lifted(lifted(decode(word.to_bytes(4, "little"), 0, False)).form, names)


def _direct_form(insn: Insn, target: int) -> Lifted:
    """A direct branch, with its own target."""
    key = DIRECT, insn.flow, insn.thumb, insn.cond, insn.target_thumb
    form = _forms.get(key)
    if form is None:
        form = _forms[key] = OpsForm(
            _with_condition(insn, _direct(insn, const(TARGET), const(NEXT)))
        )
    return Lifted(form, {const(TARGET): const(target), const(NEXT): const(insn.next | insn.thumb)})


def _literal_form(insn: Insn) -> Lifted | None:
    """A load of a literal near the code."""
    rd, up = insn.encoding >> 12 & 15, insn.encoding >> 23 & 1
    if insn.encoding & 0x0F7F0000 != LITERAL & 0x0F7F0000 or rd >= SP:
        return None
    offset = insn.encoding & 0xFFF
    place = insn.addr + 8 + (offset if up else -offset)
    key = LITERAL, insn.cond
    form = _forms.get(key)
    if form is None:
        word = LITERAL & ~(15 << 28) | insn.cond << 28
        like = decode(word.to_bytes(4, "little"), TARGET - 8, False)
        form = _forms[key] = OpsForm(lift_afresh(like))
    return Lifted(form, {general(0): general(rd), const(TARGET): const(place)})


def identity(insn: Insn) -> Hashable:
    """The key of ``insn``'s ops: equal keys have equal ops (rule 42)."""
    relative = insn.flow in ADDRESSED or insn.mnemonic in TABLE_BRANCHES
    sees_address = PC in insn.reads or relative
    return (*what_decides(insn), insn.addr if sees_address else None)


def what_decides(insn: Insn) -> tuple[object, ...]:
    """The fields of ``insn`` that determine its ops, besides its address and its target."""
    fields = insn.raw, insn.thumb, insn.mnemonic, insn.cond, insn.sets_flags, insn.interworks
    return *fields, insn.remainder


_cache: dict[Hashable, Lifted] = {}
_forms: dict[Hashable, OpsForm] = {}  # forms that depend on the address


def _remainder(insn: Insn, remainder: Remainder) -> tuple[Op, ...]:
    """The ops of an instruction that leaves a remainder; flags are as it sets them otherwise."""
    code = OpCode.INT_SREM if remainder.signed else OpCode.INT_REM
    (target,) = insn.writes
    build = OpsBuilder()
    rest = build.value(code, general(remainder.dividend), const(remainder.divisor))
    if insn.sets_flags:
        build.append(list(lift_afresh(insn._replace(remainder=None))))
    build.emit(OpCode.COPY, general(target), rest)
    return simplify(build.ops)


def lift_afresh(insn: Insn) -> tuple[Op, ...]:
    """``lift`` without the cache."""
    return _with_condition(insn, _effect(insn))


def _with_condition(insn: Insn, effect: list[Op]) -> tuple[Op, ...]:
    build = OpsBuilder()
    guard = build.guard(insn.cond)
    build.append(effect)
    build.close(guard)
    return simplify(build.ops)


def _effect(insn: Insn) -> list[Op]:
    """The ops of ``insn`` when its condition holds.

    An UNPREDICTABLE form may do anything; the analysis of a path refuses it (rule 47).
    """
    if unpredictable_form(insn) is not None:
        return [Op(OpCode.TRAP, None, ())]
    if insn.target is not None and insn.mnemonic in DIRECT:
        return _direct(insn, const(insn.target), const(insn.next | insn.thumb))
    if is_system(insn):
        return system_ops(insn)
    ops = _specified(insn)
    if insn.flow is ControlFlow.EXCEPTION_RETURN:
        return _exception_return(ops)
    return ops if insn.sets_flags else [op for op in ops if op.out not in FLAGS]


def _specified(insn: Insn) -> list[Op]:
    """The ops of the specification, corrected."""
    for correction in CORRECTIONS:
        if correction.applies(insn):
            return correction.ops(insn)
    ops = translate(unconditional(insn), insn.thumb, insn.addr)
    if ops is None or (PC in insn.writes and all(op.code is not OpCode.GOTO for op in ops)):
        return unknown_results(insn)  # it transfers control to an unknown address
    return ops


def _direct(insn: Insn, target: Var, after: Var) -> list[Op]:
    build = OpsBuilder()
    if insn.flow is ControlFlow.CALL:
        build.emit(OpCode.COPY, general(LR), after)
    build.emit(OpCode.GOTO, None, target, const(insn.target_thumb, 1))
    return build.ops


def _exception_return(ops: list[Op]) -> list[Op]:
    """B9.3.20: as without the restore, but status and mode come from the SPSR, unknown."""
    build = OpsBuilder()
    build.append([op for op in ops if op.out not in FLAGS and op.code is not OpCode.GOTO])
    (leave,) = [op for op in ops if op.code is OpCode.GOTO]
    build.unknown(*FLAGS, Q, *GE)
    mode = build.value(OpCode.UNKNOWN)
    for number in BANKED:
        build.emit(OpCode.BANK, general(number), general(number), mode)
    state = build.value(OpCode.UNKNOWN, size=1)
    build.emit(OpCode.GOTO, None, leave.ins[0], state)
    return build.ops
