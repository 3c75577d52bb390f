"""The disassembly of an instruction by capstone.

Capstone carries IT-block state from one call to the next, so an instruction inside an IT block
is decoded behind an ``it`` of its own condition, and an ``it`` in front of enough ``nop``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import capstone
from capstone import arm

from quoll.arm.insn import Condition, ShiftKind
from quoll.arm.operands import Operands

__all__ = ["FLAG_REGISTERS", "IT_BLOCK", "Disassembler", "Disassembly"]

THUMB_NOP = b"\x00\xbf"
IT_BLOCK = 4  # most instructions that an ``it`` covers


@dataclass(frozen=True, slots=True)
class Disassembly:
    """A disassembled instruction in plain values."""

    name: str
    mnemonic: str
    text: str
    cond: Condition
    sets_flags: bool
    operands: Operands
    special: frozenset[int]  # registers that are neither general nor VFP: apsr, cpsr, fpscr ...
    target: int | None


class Disassembler:
    """Capstone with one handle per instruction set, with details on."""

    def __init__(self) -> None:
        self._arm = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM)
        self._thumb = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB)
        self._arm.detail = self._thumb.detail = True
        self._plain = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_ARM)

    def __call__(self, raw: bytes, thumb: bool, it: tuple[Condition, ...]) -> Disassembly | None:
        if not thumb:
            return self._first(self._arm, raw, 0)
        if it:
            prefix = bytes([it[0] << 4 | 8, 0xBF])
            insns = list(self._thumb.disasm(prefix + raw, -2 & 0xFFFFFFFF, 2))
            return _plain(insns[1]) if len(insns) == 2 else None
        if raw[-1] == 0xBF and len(raw) == 2:
            raw += THUMB_NOP * IT_BLOCK
        return self._first(self._thumb, raw, 0)

    def text(self, raw: bytes) -> str | None:
        """The printed text of an ARM instruction, in a tenth of the time of ``__call__``."""
        for _, _, mnemonic, operands in self._plain.disasm_lite(raw, 0, 1):
            return f"{mnemonic} {operands}".strip()
        return None

    def _first(self, handle: Any, raw: bytes, addr: int) -> Disassembly | None:
        insns = list(handle.disasm(raw, addr))
        return _plain(insns[0]) if insns else None


GENERAL = {
    number: index
    for index, number in enumerate(
        [arm.ARM_REG_R0 + n for n in range(13)] + [arm.ARM_REG_SP, arm.ARM_REG_LR, arm.ARM_REG_PC]
    )
}
SHIFT_REGISTER_TYPES = frozenset(
    [
        arm.ARM_SFT_ASR_REG,
        arm.ARM_SFT_LSL_REG,
        arm.ARM_SFT_LSR_REG,
        arm.ARM_SFT_ROR_REG,
        arm.ARM_SFT_RRX_REG,
    ]
)
FLAG_REGISTERS = frozenset([arm.ARM_REG_APSR_NZCV, arm.ARM_REG_APSR, arm.ARM_REG_CPSR])


def _plain(insn: Any) -> Disassembly:
    registers: list[int | None] = []
    special: set[int] = set()
    shift, shift_register, target = ShiftKind.NONE, None, None
    for operand in insn.operands:
        if operand.type == arm.ARM_OP_REG:
            registers.append(GENERAL.get(operand.reg))
            if operand.reg not in GENERAL:
                special.add(operand.reg)
            kind = operand.shift.type
            if kind in SHIFT_REGISTER_TYPES:
                shift, shift_register = ShiftKind.REGISTER, GENERAL[operand.shift.value]
            elif kind == arm.ARM_SFT_RRX or (kind and operand.shift.value):
                shift = ShiftKind.IMMEDIATE
        elif operand.type == arm.ARM_OP_IMM:
            target = operand.imm & 0xFFFFFFFF
    return Disassembly(
        name=insn.insn_name(),
        mnemonic=insn.mnemonic,
        text=f"{insn.mnemonic} {insn.op_str}".strip(),
        cond=Condition(insn.cc - 1) if insn.cc else Condition.AL,
        sets_flags=_suffixed(insn.insn_name(), insn.mnemonic),
        operands=Operands(tuple(registers), len(insn.operands), shift, shift_register),
        special=frozenset(special),
        target=target,
    )


def _suffixed(name: str, mnemonic: str) -> bool:
    """Whether the printed mnemonic has an 's'; update_flags of capstone is wrong for adc."""
    return name in ("movs", "subs") or mnemonic.startswith(name + "s")
