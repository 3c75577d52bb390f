"""Ops of plain loads and stores, made from the decoded access (``Insn.memory``).

Used where the SLEIGH specification has no or wrong semantics for an addressing form, and, in the
tests, as a second opinion on all the others.
"""

from __future__ import annotations

from quoll.arm.addressing import is_block_transfer
from quoll.arm.build import Builder
from quoll.arm.insn import PC, Access, Insn, MemoryAccess
from quoll.arm.ops import Op, OpCode, Var, const, general

__all__ = ["access_ops", "is_plain_access"]

SIZES = ("", "b", "d", "h", "sb", "sh")
PLAIN = frozenset(["ldm", "stm", *(f"{stem}{size}" for stem in ("ldr", "str") for size in SIZES)])


def is_plain_access(insn: Insn) -> bool:
    """Whether ``insn`` moves general registers of the current mode and does nothing else."""
    if insn.memory is None or insn.mnemonic not in PLAIN:
        return False
    return insn.memory.count == 1 or not insn.memory.user


def access_ops(insn: Insn) -> list[Op]:
    """Ops of a plain access: all transfers, then the base, then the registers loaded."""
    memory = insn.memory
    if memory is None or memory.base is None:
        raise ValueError(f"{insn.text} is no plain access")
    build = Builder()
    lowest, moved = build.address(insn, memory)
    loaded = []
    for number, register in enumerate(insn.transfers):
        place = build.value(OpCode.INT_ADD, lowest, const(number * memory.size))
        if memory.access is Access.LOAD:
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


def _load(build: Builder, insn: Insn, memory: MemoryAccess, place: Var) -> Var:
    value = build.value(OpCode.LOAD, place, size=memory.size)
    if memory.size == 4:
        return value
    signed = insn.mnemonic in ("ldrsb", "ldrsh")
    return build.value(OpCode.INT_SEXT if signed else OpCode.INT_ZEXT, value)


def _store(build: Builder, insn: Insn, memory: MemoryAccess, place: Var, register: int) -> None:
    value = build.register(register, insn)
    if memory.size < 4:
        value = build.value(OpCode.SUBPIECE, value, const(0), size=memory.size)
    build.emit(OpCode.STORE, None, place, value)


def _write_back(build: Builder, insn: Insn, memory: MemoryAccess, base: int, moved: Var) -> None:
    if is_block_transfer(insn):
        build.past_list(insn, memory, base)
    elif base != PC:
        build.emit(OpCode.COPY, general(base), moved)
