"""Ops of instructions whose effect the SLEIGH specification leaves out or gets wrong.

The specification describes user-level integer code. It has no processor modes: it treats a write to
the CPSR, a user-bank list or an exception return like the similar user-level instruction. An
analysis of addresses and loops does not use coprocessor, VFP and NEON results, so they are unknown
here (their accesses, and the registers they write, are exact).

Each function returns the ops of the instruction when its condition holds. The rules for banked
registers are in B1.3.2 and B1.3.3 of the ARM Architecture Reference Manual (ARM DDI 0406C).
"""

from __future__ import annotations

from collections.abc import Callable

from quoll.arm.addressing import is_block_transfer
from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import LR, PC, SP, AccessKind, Insn, MemoryAccess
from quoll.arm.status import StatusField, state_change, status_written, writes_saved_status
from quoll.arm.system_registers import changes_translation, discards_any_line, discards_line
from quoll.errors import ControlFlowError
from quoll.semantics.build import OpsBuilder
from quoll.semantics.ops import BANKED, FLAGS, GE, Op, OpCode, Q, Var, const, general

__all__ = ["COPROCESSOR", "is_system", "is_unknown", "system_ops", "unknown_results"]

STATUS_BITS = ((FLAGS[0], 31), (FLAGS[1], 30), (FLAGS[2], 29), (FLAGS[3], 28), (Q, 27))
GE_BITS = tuple((GE[n], 16 + n) for n in range(4))
EVERY_FIELD = ~StatusField.NONE
STATE_BIT = 5  # CPSR.T
UNSHARED = range(8)  # r0 to r7 are the same in every mode
COPROCESSOR = frozenset(["cdp", "ldc", "mcr", "mcrr", "mrc", "mrrc", "stc"])


def is_system(insn: Insn) -> bool:
    """Whether ``system_ops`` lifts ``insn``."""
    if insn.memory is not None and insn.memory.user and insn.mnemonic in ("ldm", "stm"):
        return True
    return insn.mnemonic in _LIFTERS or is_unknown(insn)


def is_unknown(insn: Insn) -> bool:
    """Whether the results are unknown: coprocessor, VFP, NEON."""
    return insn.mnemonic in COPROCESSOR or insn.mnemonic[0] in "fv"


def system_ops(insn: Insn) -> list[Op]:
    """Ops of an instruction for which ``is_system`` holds."""
    build = OpsBuilder()
    if insn.memory is not None and insn.memory.user:
        _user_bank(build, insn, insn.memory)
    elif is_unknown(insn):
        _unknown(build, insn)
        _maintain(build, insn)
    else:
        _LIFTERS[insn.mnemonic](build, insn)
    return build.ops


def unknown_results(insn: Insn) -> list[Op]:
    """``insn`` with unknown results and exact data accesses."""
    build = OpsBuilder()
    _unknown(build, insn)
    return build.ops


def _unknown(build: OpsBuilder, insn: Insn) -> None:
    """Emit unknown registers, flags and stored values; exact addresses and base write-back."""
    memory = insn.memory
    base = None
    if memory is not None and memory.access is not AccessKind.PRELOAD:
        lowest, indexed = build.address(insn, memory)
        build.accesses(memory, lowest)
        if memory.writeback and memory.base is not None:
            base = memory.base
            if is_block_transfer(insn) and base != PC:
                build.past_list(insn, memory, base)
            elif base != PC:
                build.emit(OpCode.COPY, general(base), indexed)
    build.unknown(*(general(r) for r in sorted(insn.writes) if r not in (base, PC)))
    if insn.sets_flags:
        build.unknown_flags()
    if PC in insn.writes:
        _unknown_goto(build)


def _maintain(build: OpsBuilder, insn: Insn) -> None:
    """Emit the effect of a system-register write on memory as instructions see it."""
    register = insn.encoding >> 12 & 15
    if discards_any_line(insn):
        build.emit(OpCode.DISCARD, None, build.value(OpCode.UNKNOWN))
    elif discards_line(insn):
        build.emit(OpCode.DISCARD, None, general(register))
    if changes_translation(insn):
        build.emit(OpCode.RETRANSLATE, None)


def _unknown_goto(build: OpsBuilder) -> None:
    target = build.value(OpCode.UNKNOWN)
    build.emit(OpCode.GOTO, None, target, build.value(OpCode.UNKNOWN, size=1))


def _user_bank(build: OpsBuilder, insn: Insn, memory: MemoryAccess) -> None:
    """Emit ldm and stm of user registers (B9.3.5, B9.3.17): r8 to r14 may be banked."""
    lowest, _ = build.address(insn, memory)
    for number, register in enumerate(insn.transfers):
        place = build.value(OpCode.INT_ADD, lowest, const(4 * number))
        if memory.access is AccessKind.LOAD:
            value = build.value(OpCode.LOAD, place)
            if register in UNSHARED:
                build.emit(OpCode.COPY, general(register), value)
        elif register in UNSHARED:
            build.emit(OpCode.STORE, None, place, general(register))
        else:
            build.emit(OpCode.STORE, None, place, build.value(OpCode.UNKNOWN))
    if memory.access is AccessKind.LOAD:
        build.unknown(*(general(r) for r in insn.transfers if r not in UNSHARED and r < SP))
    if memory.writeback and memory.base == PC:  # UNPREDICTABLE, and so is the next case
        _unknown_goto(build)
    elif memory.writeback and memory.base is not None:
        build.unknown(general(memory.base))


def _enter_mode(build: OpsBuilder, mode: Var) -> None:
    for number in BANKED:
        build.emit(OpCode.BANK, general(number), general(number), mode)


def _bit(build: OpsBuilder, word: Var, bit: int) -> Var:
    shifted = build.value(OpCode.INT_RIGHT, word, const(bit))
    masked = build.value(OpCode.INT_AND, shifted, const(1))
    return build.value(OpCode.SUBPIECE, masked, const(0), size=1)


def _set_status(build: OpsBuilder, word: Var, fields: StatusField) -> None:
    """Write ``word`` to ``fields`` of the CPSR."""
    flags = STATUS_BITS if StatusField.FLAGS in fields else ()
    greater = GE_BITS if StatusField.STATUS in fields else ()
    values = [(flag, _bit(build, word, bit)) for flag, bit in (*flags, *greater)]
    for flag, value in values:
        build.emit(OpCode.COPY, flag, value)
    if StatusField.CONTROL in fields:
        _enter_mode(build, word)


def _msr(build: OpsBuilder, insn: Insn) -> None:
    """Write the CPSR; the SPSR and the registers of other modes are not tracked (B9.3.10)."""
    fields = status_written(insn)
    if fields:
        _set_status(build, _msr_operand(insn), fields)
    elif not writes_saved_status(insn):
        build.unknown(*(general(number) for number in BANKED))


def _msr_operand(insn: Insn) -> Var:
    if insn.sources:
        return general(insn.sources[0])
    value = immediate_operand(insn)
    assert value is not None
    return const(value)


def _mrs(build: OpsBuilder, insn: Insn) -> None:
    """Read an unknown word: mode, masks and state bits are not tracked."""
    build.unknown(*(general(r) for r in insn.writes))


def _cps(build: OpsBuilder, insn: Insn) -> None:
    """Change the mode; other effects do not concern registers (B9.3.2)."""
    change = state_change(insn)
    if change is not None and change.mode is not None:
        _enter_mode(build, const(change.mode))


def _srs(build: OpsBuilder, insn: Insn) -> None:
    """Store r14 and SPSR on the stack of another mode (B9.3.16)."""
    memory = insn.memory
    if memory is None:
        raise ValueError("srs without an access")
    word = int.from_bytes(insn.raw, "little")
    mode = const(word >> 16 & 31 if insn.thumb else word & 31)
    stack = build.value(OpCode.BANK, general(SP), mode)
    lowest = build.value(OpCode.INT_ADD, stack, const(memory.displacement))
    build.emit(OpCode.STORE, None, lowest, general(LR))
    above = build.value(OpCode.INT_ADD, lowest, const(4))
    build.emit(OpCode.STORE, None, above, build.value(OpCode.UNKNOWN))
    if memory.writeback:
        build.emit(OpCode.UNKNOWN, general(SP), general(SP), stack)


def _rfe(build: OpsBuilder, insn: Insn) -> None:
    """Load pc and CPSR (B9.3.13)."""
    memory = insn.memory
    if memory is None or memory.base is None:
        raise ValueError("rfe without an access")
    lowest, _ = build.address(insn, memory)
    target = build.value(OpCode.LOAD, lowest)
    above = build.value(OpCode.INT_ADD, lowest, const(4))
    status = build.value(OpCode.LOAD, above)
    if memory.writeback and memory.base != PC:  # rfe pc! is UNPREDICTABLE
        build.past_list(insn, memory, memory.base)
    _set_status(build, status, EVERY_FIELD)
    build.emit(OpCode.GOTO, None, target, _bit(build, status, STATE_BIT))


def _setend(build: OpsBuilder, insn: Insn) -> None:
    big = insn.raw[0] >> 3 & 1 if insn.thumb else insn.raw[1] >> 1 & 1
    if big:
        raise ControlFlowError(
            "setend be: big-endian data is not supported",
            where=f"{insn.addr:#x}",
            hint="the analysed code must stay little-endian",
        )


def _nothing(build: OpsBuilder, insn: Insn) -> None:
    """Hints, barriers and ``it``: no effect on registers, flags or memory."""


def _trap(build: OpsBuilder, insn: Insn) -> None:
    build.emit(OpCode.TRAP, None)


NO_EFFECT = (
    *("clrex", "csdb", "dbg", "dmb", "dsb", "hint", "isb", "it", "nop"),
    *("pld", "pldw", "pli", "sev", "sevl", "wfe", "wfi", "yield"),
)
TRAPS = ("bkpt", "hlt", "hvc", "smc", "svc", "udf", "undefined")

_LIFTERS: dict[str, Callable[[OpsBuilder, Insn], None]] = {
    "cps": _cps,
    "mrs": _mrs,
    "msr": _msr,
    "rfe": _rfe,
    "setend": _setend,
    "srs": _srs,
}
_LIFTERS |= dict.fromkeys(NO_EFFECT, _nothing) | dict.fromkeys(TRAPS, _trap)
