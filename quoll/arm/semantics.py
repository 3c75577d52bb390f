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

from functools import lru_cache

from quoll.arm.build import Builder
from quoll.arm.corrections import CORRECTIONS
from quoll.arm.insn import LR, PC, Cond, Flow, Insn
from quoll.arm.ops import BANKED, FLAGS, Op, OpCode, Space, Var, const, general
from quoll.arm.pcode import translate
from quoll.arm.simplify import simplify
from quoll.arm.system import is_system, system_ops

__all__ = ["Op", "OpCode", "Space", "Var", "lift"]

CACHED = 1 << 17
ANYWHERE = 0x1000  # where an instruction that does not see its address is translated
ARM_ALWAYS = 0xE0


def lift(insn: Insn) -> tuple[Op, ...]:
    """The ops of ``insn``; their order is the order of its accesses.

    Falling off the end continues at ``insn.next`` in the same state. Raises ``ControlFlowError``
    when there are no semantics for the instruction.
    """
    sees_address = PC in insn.reads or insn.flow in (Flow.JUMP, Flow.CALL, Flow.INDIRECT_CALL)
    return _lifted(_Key(insn, insn.addr if sees_address else None))


class _Key:
    """An instruction as far as its ops depend on it; equality is that of the encoding."""

    __slots__ = ("_identity", "insn")

    def __init__(self, insn: Insn, addr: int | None) -> None:
        self.insn = insn
        self._identity = (insn.raw, insn.thumb, insn.cond, insn.sets_flags, addr)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._identity == other._identity


@lru_cache(maxsize=CACHED)
def _lifted(key: _Key) -> tuple[Op, ...]:
    insn = key.insn
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
    for correction in CORRECTIONS:
        if correction.applies(insn):
            return correction.ops(insn)
    ops = translate(_unconditional(insn), insn.thumb, insn.addr)
    if insn.flow is Flow.EXCEPTION_RETURN:
        return _exception_return(ops)
    return ops if insn.sets_flags else [op for op in ops if op.out not in FLAGS]


def _unconditional(insn: Insn) -> bytes:
    if insn.thumb or insn.cond is Cond.AL:
        return insn.raw
    return insn.raw[:3] + bytes([insn.raw[3] & 15 | ARM_ALWAYS])


def _direct(insn: Insn, target: int) -> list[Op]:
    build = Builder()
    if insn.flow is Flow.CALL:
        build.emit(OpCode.COPY, general(LR), const(insn.next | insn.thumb))
    build.emit(OpCode.GOTO, None, const(target), const(insn.target_thumb, 1))
    return build.ops


def _exception_return(ops: list[Op]) -> list[Op]:
    """B9.3.20: as without the restore, but flags, mode and state come from the SPSR, unknown."""
    build = Builder()
    build.append([op for op in ops if op.out not in FLAGS and op.code is not OpCode.GOTO])
    (leave,) = [op for op in ops if op.code is OpCode.GOTO]
    offset = len(build.ops)
    build.unknown_flags()
    mode = build.value(OpCode.UNKNOWN)
    for number in BANKED:
        build.emit(OpCode.BANK, general(number), general(number), mode)
    state = build.value(OpCode.UNKNOWN, size=1)
    assert offset == len(ops) - 1  # the temporaries of ``ops`` keep their numbers
    build.emit(OpCode.GOTO, None, leave.ins[0], state)
    return build.ops
