"""Instructions of the floating-point and vector unit, and their role in it.

Encodings: ARM Architecture Reference Manual, A7.2 to A7.9. VFP and the moves between registers are
in the space of coprocessors 10 and 11; NEON has one space for data processing and one for element
accesses.
"""

from __future__ import annotations

from enum import Enum

from quoll.arm.coprocessor import VFP
from quoll.arm.insn import Insn

__all__ = ["VectorRole", "has_float_elements", "is_double", "vector_role"]


class VectorRole(Enum):
    """The role of an instruction in the unit."""

    ARITHMETIC = "VFP data processing"  # A7.5
    FROM_CORE = "a general register to the unit"  # A7.8, A7.9
    TO_CORE = "the unit to a general register"
    STATUS = "vmrs, vmsr"
    REGISTERS = "vldr, vldm, vstr, vstm, fldmx, fstmx"  # A7.6
    ELEMENTS = "vld1 to vld4, vst1 to vst4"  # A7.7
    NEON = "NEON data processing"  # A7.4


def vector_role(insn: Insn) -> VectorRole | None:
    """The part of the unit that ``insn`` uses; None if it uses none."""
    if insn.mnemonic[0] != "v":
        return None
    if insn.mnemonic in ("vmrs", "vmsr"):
        return VectorRole.STATUS
    top = insn.encoding >> 24
    coprocessors = top >> 4 != 15 and top & 15 in (0xC, 0xD, 0xE)
    if coprocessors and insn.encoding >> 8 & 15 not in VFP:
        return None  # half precision of ARMv8
    if insn.memory is not None:
        return VectorRole.REGISTERS if coprocessors else VectorRole.ELEMENTS
    if not coprocessors:
        return VectorRole.NEON
    if top & 15 == 0xE and not insn.encoding & 1 << 4:
        return VectorRole.ARITHMETIC
    return VectorRole.TO_CORE if insn.encoding & 1 << 20 else VectorRole.FROM_CORE


def is_double(insn: Insn) -> bool:
    """Whether VFP data processing is of double precision (A7.5: bit sz)."""
    return bool(insn.encoding & 1 << 8)


def has_float_elements(insn: Insn) -> bool:
    """Whether NEON data processing is on floating-point elements (A7.2.1: type F16 or F32)."""
    return ".f" in insn.text.partition(" ")[0]
