"""What an instruction computes, as ops on registers, flags and memory.

``lift`` joins three sources. Data processing, accesses and multiplications come from Ghidra's
specification (``pcode.py``); its mistakes are replaced as ``CORRECTIONS`` says. What involves
processor modes, coprocessors or no data at all is in ``system.py``. Conditions and direct
branches are made here from the decoded fields, for ARM and IT blocks alike, so that an
instruction is always: skip to the end unless the condition holds, then the effect.

All words are little-endian. An unaligned address is accessed as it is (ARMv6 with SCTLR.U = 1,
ARMv7): where the hardware would take an alignment fault, there is no result to be wrong about.
"""

from __future__ import annotations

from collections.abc import Hashable

from quoll.arm.build import Builder
from quoll.arm.corrections import CORRECTIONS, unconditional
from quoll.arm.decode import decode
from quoll.arm.forms import registers_named
from quoll.arm.insn import LR, PC, Flow, Insn
from quoll.arm.ops import BANKED, FLAGS, GE, Op, OpCode, Q, Space, Var, const, general
from quoll.arm.pcode import translate
from quoll.arm.simplify import simplify
from quoll.arm.system import is_system, system_ops, unknown_results

__all__ = ["Op", "OpCode", "Space", "Var", "identity", "lift", "lift_afresh"]

CACHED = 1 << 17
ADDRESSED = (Flow.JUMP, Flow.CALL, Flow.INDIRECT_CALL)  # use their address without reading pc


def lift(insn: Insn) -> tuple[Op, ...]:
    """The ops of ``insn``; their order is the order of its accesses.

    Falling off the end continues at ``insn.next`` in the same state. Raises ``ControlFlowError``
    when there are no semantics for the instruction.
    """
    key = identity(insn)
    ops = _cache.get(key)
    if ops is None:
        if len(_cache) >= CACHED:
            _cache.clear()
        ops = _cache[key] = _by_form(insn)
    return ops


def _by_form(insn: Insn) -> tuple[Op, ...]:
    """The ops of an instruction that differs from ``insn`` in registers only, with its own."""
    plain = not insn.thumb and insn.flow is Flow.NEXT and PC not in insn.reads
    form = registers_named(insn.encoding) if plain else None
    if form is None or form[0] == insn.encoding:
        return lift_afresh(insn)
    ops = lift(decode(form[0].to_bytes(4, "little"), 0, False))
    names = {general(name): general(register) for name, register in form[1].items()}
    return tuple(
        Op(op.code, op.out and names.get(op.out, op.out), tuple(names.get(v, v) for v in op.ins))
        for op in ops
    )


def identity(insn: Insn) -> Hashable:
    """What the ops of ``insn`` depend on: equal identities have equal ops."""
    sees_address = PC in insn.reads or insn.flow in ADDRESSED
    addr = insn.addr if sees_address else None
    return (insn.raw, insn.thumb, insn.cond, insn.sets_flags, addr)


_cache: dict[Hashable, tuple[Op, ...]] = {}


def lift_afresh(insn: Insn) -> tuple[Op, ...]:
    """``lift`` without its memory."""
    build = Builder()
    guard = build.guard(insn.cond)
    build.append(_effect(insn))
    build.close(guard)
    return simplify(build.ops)


def _effect(insn: Insn) -> list[Op]:
    """The ops of ``insn`` when its condition holds."""
    if insn.target is not None and insn.mnemonic in ("b", "bl", "blx"):
        return _direct(insn, insn.target)
    if is_system(insn):
        return system_ops(insn)
    ops = _specified(insn)
    if insn.flow is Flow.EXCEPTION_RETURN:
        return _exception_return(ops)
    return ops if insn.sets_flags else [op for op in ops if op.out not in FLAGS]


def _specified(insn: Insn) -> list[Op]:
    """The ops of the specification, corrected."""
    for correction in CORRECTIONS:
        if correction.applies(insn):
            return correction.ops(insn)
    ops = translate(unconditional(insn), insn.thumb, insn.addr)
    return unknown_results(insn) if ops is None else ops


def _direct(insn: Insn, target: int) -> list[Op]:
    build = Builder()
    if insn.flow is Flow.CALL:
        build.emit(OpCode.COPY, general(LR), const(insn.next | insn.thumb))
    build.emit(OpCode.GOTO, None, const(target), const(insn.target_thumb, 1))
    return build.ops


def _exception_return(ops: list[Op]) -> list[Op]:
    """B9.3.20: as without the restore, but status and mode come from the SPSR, unknown."""
    build = Builder()
    build.append([op for op in ops if op.out not in FLAGS and op.code is not OpCode.GOTO])
    (leave,) = [op for op in ops if op.code is OpCode.GOTO]
    build.unknown(*FLAGS, Q, *GE)
    mode = build.value(OpCode.UNKNOWN)
    for number in BANKED:
        build.emit(OpCode.BANK, general(number), general(number), mode)
    state = build.value(OpCode.UNKNOWN, size=1)
    build.emit(OpCode.GOTO, None, leave.ins[0], state)
    return build.ops
