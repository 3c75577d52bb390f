"""The architecture extension that an instruction needs; a core without it cannot time it.

Source: ARM Architecture Reference Manual (DDI 0406C), the variants of each encoding in A8.8 and
B9.3, and A7 for VFP and NEON; for ARMv8, DDI 0487, part F. Instructions of ARMv6 need no extension.
"""

from __future__ import annotations

from enum import Enum

from quoll.arm.floating_point import VectorRole, vector_role
from quoll.arm.insn import PC, Insn
from quoll.arm.status import names_banked_register

__all__ = ["Extension", "computes_pc", "needed_extension", "on_version"]

INTERWORKING = 7  # the first version in which data processing in ARM state interworks (A2.3.1)


class Extension(Enum):
    """Extensions of ARMv6, by the manual's name."""

    V6K = "ARMv6K"
    SECURITY = "the Security Extensions"
    THUMB2 = "ARMv6T2"
    V7 = "ARMv7"
    MULTIPROCESSING = "the Multiprocessing Extensions"
    VIRTUALIZATION = "the Virtualization Extensions"
    DIVISION = "integer division"
    V8 = "ARMv8"
    VFP2 = "VFPv2"
    VFP3 = "VFPv3"
    HALF_PRECISION = "the half-precision extension"
    VFP4 = "VFPv4"
    NEON = "Advanced SIMD"


V6K_NAMES = frozenset(
    ["clrex", "ldrexb", "ldrexd", "ldrexh", "nop", "sev", "strexb", "strexd", "strexh", "wfe",
     "wfi", "yield"]
)  # fmt: skip
THUMB2_NAMES = frozenset(["bfc", "bfi", "mls", "movt", "rbit", "sbfx", "ubfx"])
UNPRIVILEGED_HALFWORDS = frozenset(["ldrh", "ldrsb", "ldrsh", "strh"])
WIDE_MOVES = (0x30, 0x34)  # bits 27 to 20 of movw and movt of ARM
V7_NAMES = frozenset(["dbg", "dmb", "dsb", "isb", "pli"])
V8_NAMES = frozenset(
    ["dcps1", "dcps2", "dcps3", "hlt", "lda", "ldab", "ldaex", "ldaexb", "ldaexd",
     "ldaexh", "ldah", "sb", "setpan", "stl", "stlb", "stlex", "stlexb", "stlexd",
     "stlexh", "stlh"]
)  # fmt: skip
V8_STEMS = (
    *("aes", "crc32", "sha1", "sha256", "vcadd", "vcmla", "vcvta", "vcvtm", "vcvtn", "vcvtp"),
    *("vfmal", "vfmsl", "vins", "vjcvt", "vmaxnm", "vminnm", "vmovx", "vrint", "vsdot", "vsel"),
    *("vudot", "vqrdmlah", "vqrdmlsh"),
)
BARRIERS = frozenset(["dmb", "dsb"])
V8_OPTIONS = (1, 5, 9, 13)  # of barriers: loads only
V8_BARRIERS = frozenset([0, 4])  # of dsb: ssbb, pssbb
FUSED = ("vfma", "vfms", "vfnma", "vfnms")
HINT_NAMES = frozenset(
    ["csdb", "dbg", "esb", "hint", "nop", "sev", "sevl", "tsb", "wfe", "wfi", "yield"]
)
THUMB1_LONG = frozenset(["bl", "blx"])  # the two 32-bit instructions of Thumb before ARMv6T2
THUMB2_SHORT = frozenset(["cbnz", "cbz", "it"])
D16 = 16  # the first register that only VFPv3 has


def needed_extension(insn: Insn) -> Extension | None:
    """The extension that ``insn`` needs; None if ARMv6 is enough."""
    key = insn.raw, insn.thumb
    if key not in _found:
        if len(_found) >= CACHED:
            _found.clear()
        _found[key] = _needed(insn)
    return _found[key]


CACHED = 1 << 17
_found: dict[tuple[bytes, bool], Extension | None] = {}  # by encoding


def _needed(insn: Insn) -> Extension | None:
    name = insn.mnemonic
    if name in V8_NAMES or name.startswith(V8_STEMS) or _is_barrier_of_v8(insn):
        return Extension.V8
    if name[0] in "fv":
        found = _vector_extension(insn)
        return Extension.THUMB2 if insn.thumb and found is Extension.VFP2 else found
    returns = insn.text.startswith("eret") and not insn.thumb  # in Thumb: subs pc, lr, #0
    if name == "hvc" or returns or names_banked_register(insn):
        return Extension.VIRTUALIZATION
    if name == "smc":
        return Extension.SECURITY
    if name in ("sdiv", "udiv"):
        return Extension.DIVISION
    if name == "pldw":
        return Extension.MULTIPROCESSING
    if name in V7_NAMES:
        return Extension.V7
    if insn.thumb and _is_thumb2(insn):
        return Extension.THUMB2
    if not insn.thumb and _is_arm_of_v6t2(insn):
        return Extension.THUMB2
    return Extension.V6K if name in V6K_NAMES else None


def computes_pc(insn: Insn) -> bool:
    """Whether ``insn`` is data processing of ARM state that writes the pc."""
    arithmetic = insn.mnemonic not in ("bx", "bxj", "blx")
    return not insn.thumb and insn.memory is None and PC in insn.writes and arithmetic


def on_version(insn: Insn, version: int) -> Insn:
    """``insn`` as a core of that architecture version executes it (A2.3.1, ALUWritePC)."""
    if version < INTERWORKING and computes_pc(insn):
        return insn._replace(interworks=False)
    return insn


def _is_barrier_of_v8(insn: Insn) -> bool:
    option = insn.encoding & 15
    loads = insn.mnemonic in BARRIERS and option in V8_OPTIONS
    speculation = insn.mnemonic == "dsb" and option in V8_BARRIERS
    return loads or speculation


def _is_thumb2(insn: Insn) -> bool:
    if insn.size == 4:
        return insn.mnemonic not in THUMB1_LONG
    return insn.mnemonic in THUMB2_SHORT or insn.mnemonic in HINT_NAMES


def _is_arm_of_v6t2(insn: Insn) -> bool:
    unprivileged = insn.memory is not None and insn.memory.user
    narrow = unprivileged and insn.mnemonic in UNPRIVILEGED_HALFWORDS
    wide = insn.mnemonic == "mov" and insn.encoding >> 20 & 0xFF in WIDE_MOVES
    return insn.mnemonic in THUMB2_NAMES or narrow or wide


def _vector_extension(insn: Insn) -> Extension | None:
    role = vector_role(insn)
    if role is None:
        return Extension.V8 if insn.mnemonic[0] == "v" else Extension.VFP2
    kind = insn.text.partition(" ")[0]
    if kind.startswith(("vcvtb", "vcvtt")):
        return Extension.V8 if ".f64" in kind else Extension.HALF_PRECISION
    if ".f16" in kind or ".p64" in kind:
        half = role is VectorRole.NEON and insn.mnemonic == "vcvt" and ".f32" in kind
        return Extension.HALF_PRECISION if half else Extension.V8
    if kind.startswith(FUSED):
        return Extension.VFP4
    if role in (VectorRole.NEON, VectorRole.ELEMENTS):
        return Extension.NEON
    if _is_lane_of_neon(insn, role):
        return Extension.NEON
    return Extension.VFP3 if _is_of_vfp3(insn, role) else Extension.VFP2


def _is_lane_of_neon(insn: Insn, role: VectorRole) -> bool:
    """``vmov`` of a lane that is no word, and ``vdup`` of a register (A7.8)."""
    if role not in (VectorRole.FROM_CORE, VectorRole.TO_CORE):
        return False
    word = insn.encoding
    scalar = word >> 24 & 15 == 14 and word >> 8 & 15 == 11
    return scalar and (bool(word & 0x60) or bool(word & 1 << 22) or insn.mnemonic == "vdup")


def _is_of_vfp3(insn: Insn, role: VectorRole) -> bool:
    """Constants, fixed-point numbers (A7.5) and the registers d16 to d31."""
    word = insn.encoding
    if role is VectorRole.ARITHMETIC:
        extension = word >> 20 & 11 == 11
        constant = extension and not word & 1 << 6
        fixed = extension and word >> 17 & 5 == 5 and word >> 16 & 15 in (10, 11, 14, 15)
        if constant or fixed:
            return True
    return any(number >= D16 for number in _double_registers(insn.text))


def _double_registers(text: str) -> list[int]:
    names = text.partition(" ")[2].replace("{", " ").replace("}", " ").replace("-", " ")
    words = names.replace("[", " ").replace(",", " ").split()
    return [int(word[1:]) for word in words if word[0] == "d" and word[1:].isdigit()]
