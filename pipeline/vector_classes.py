"""Rows of VFP and NEON instructions (ARM ARM A7.4 to A7.9).

Registers of the unit are not followed. Instead the bound of an instruction holds the issue stage
until its result is ready, and a transfer to a general register also pays the path between the two
pipelines. So no charged operation is under way when a later instruction issues, and no instruction
waits for an operand of the unit. Real cores overlap them, which never makes an in-order pipeline
slower (rules 14 and 16). The row ``VFP_OUTSTANDING`` covers operations that other code has left in
the unit: it is charged once, where a path starts.

Bounds of data processing cover vectors of VFP (FPSCR.LEN), up to eight single or four double
operations. An instruction for support code takes the undefined vector, which an assumption
excludes.
"""

from __future__ import annotations

from quoll.arm.floating_point import VectorRole, has_float_elements, is_double, vector_role
from quoll.arm.insn import AccessKind, Insn

__all__ = ["vector_row"]

ACCUMULATE = ("vmla", "vmls", "vnmla", "vnmls", "vfma", "vfms", "vfnma", "vfnms")
VFP = {
    **dict.fromkeys(ACCUMULATE, "VFP_ACCUMULATE"),
    **dict.fromkeys(("vadd", "vsub"), "VFP_ADD"),
    **dict.fromkeys(("vmul", "vnmul"), "VFP_MULTIPLY"),
    **dict.fromkeys(("vmov", "vabs", "vneg", "vcmp", "vcmpe"), "VFP_MOVE"),
    "vdiv": "VFP_DIVIDE",
    "vsqrt": "VFP_SQUARE_ROOT",
}
CONVERT = "vcvt"  # all of its forms
NEON_MULTIPLY = ("vmla", "vmls", "vmul", "vmlal", "vmlsl", "vmull", "vqdml", "vqdmul", "vqrdmul")
NEON_FLOAT = ("vrecp", "vrsqrt", "vcvt", "vfma", "vfms")
NEON_PERMUTE = ("vdup", "vext", "vmov", "vmvn", "vrev", "vswp", "vtbl", "vtbx", "vtrn", "vuzp",
                "vzip")  # fmt: skip
NARROWING = ("vmovl", "vmovn", "vqmovn", "vqmovun")  # go through the arithmetic pipeline
SIZES = (2, 4, 8, 16, 33)  # words; fldmx and fstmx transfer one more than their registers


def vector_row(insn: Insn) -> tuple[str, str] | None:
    """The row of an instruction of VFP or NEON; None for others, and for later extensions."""
    role = vector_role(insn)
    if role is None:
        return None
    if role is VectorRole.ARITHMETIC:
        name = "VFP_CONVERT" if insn.mnemonic.startswith(CONVERT) else VFP.get(insn.mnemonic)
        if name is None:
            return None
        if name == "VFP_CONVERT":
            return name, "any"
        return name, "double" if is_double(insn) else "single"
    if role is VectorRole.NEON:
        return _neon(insn.mnemonic, float_type=has_float_elements(insn)), "any"
    if role is VectorRole.STATUS:
        return "VFP_STATUS_READ" if insn.mnemonic == "vmrs" else "VFP_STATUS_WRITE", "any"
    if role in (VectorRole.FROM_CORE, VectorRole.TO_CORE):
        return f"VFP_{role.name}", "any"
    assert insn.memory is not None
    direction = "LOAD" if insn.memory.access is AccessKind.LOAD else "STORE"
    if role is VectorRole.ELEMENTS:
        return f"NEON_{direction}", "any"
    size = next((size for size in SIZES if insn.memory.count <= size), None)
    return None if size is None else (f"VFP_{direction}", f"to {size} words")


def _neon(name: str, *, float_type: bool) -> str:
    if float_type or name.startswith(NEON_FLOAT):
        return "NEON_FLOAT"
    if name.startswith(NEON_MULTIPLY):
        return "NEON_MULTIPLY"
    if name.startswith(NEON_PERMUTE) and name not in NARROWING:
        return "NEON_PERMUTE"
    return "NEON_INTEGER"
