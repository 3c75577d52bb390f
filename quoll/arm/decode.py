"""From bytes to ``Insn``: ARM and Thumb, ARMv4 to ARMv7-A, little-endian.

The disassembler identifies an encoding (``disassembler.py``): its name, condition, whether it
sets flags, and its operands in assembler order. Data accesses are read from the encoding itself
(``addressing.py``) and register roles from operand positions (``operands.py``), because capstone's
own lists of registers read and written, written-back bases and post-indexed offsets have gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from quoll.arm.addressing import Transfer, arm_access, thumb_access
from quoll.arm.disassembler import FLAG_REGISTERS, IT_BLOCK, Disassembler, Disassembly
from quoll.arm.forms import form_of
from quoll.arm.insn import LR, PC, AccessKind, Condition, ControlFlow, Insn, MemoryAccess, ShiftKind
from quoll.arm.operands import RegisterRoles, roles
from quoll.arm.relocated_insn import aimed, branch_at, moved
from quoll.arm.status import status_mask
from quoll.arm.unpredictable import has_meaning
from quoll.errors import InputError

__all__ = ["ARM_LENGTH", "decode", "disassembled", "it_conditions", "known_words"]

ARM_LENGTH = 4  # bytes
CACHED = 1 << 19  # distinct encodings that are cached


def decode(code: bytes, addr: int, thumb: bool, it: tuple[Condition, ...] = ()) -> Insn:
    """The instruction at the start of ``code``, which stands at ``addr``.

    ``it`` holds the conditions of this and the following instructions of an IT block, from
    ``it_conditions``. An unknown encoding has ``ControlFlow.UNDEFINED``. Raises ``InputError`` when
    ``code`` ends inside the instruction.
    """
    length = _length(code) if thumb else ARM_LENGTH
    if length == 0 or len(code) < length:
        raise InputError(f"the code ends inside the instruction at {addr:#x}")
    raw = bytes(code[:length])
    known = None if thumb else known_words.get(raw)
    if known is not None:
        return moved(known[0], addr)
    branch = split_branch(raw, thumb)
    if branch is not None:
        return branch_at(_at_zero(branch[0], thumb, it[:1]), addr, raw, branch[1])
    insn = _at_zero(raw, thumb, it[:1])
    if insn.target is not None:
        return aimed(insn, addr, raw, insn.target)
    if not thumb:
        if len(known_words) >= CACHED:
            known_words.clear()
        goes_on = insn.flow is ControlFlow.NEXT and LR not in insn.writes and has_meaning(insn)
        known_words[raw] = insn[1:], goes_on
    return moved(insn[1:], addr)


# ARM instructions without a direct target, for ``moved``; whether one falls through and preserves
# lr
known_words: dict[bytes, tuple[tuple[object, ...], bool]] = {}
_disassemble = Disassembler()


def it_conditions(insn: Insn) -> tuple[Condition, ...]:
    """Conditions of the instructions after an ``it``, in order; empty for others (A8.8.54)."""
    if insn.mnemonic != "it":
        return ()
    first, mask = insn.raw[0] >> 4, insn.raw[0] & 15
    length = IT_BLOCK - ((mask & -mask).bit_length() - 1)
    bits = (first & 1, mask >> 3 & 1, mask >> 2 & 1, mask >> 1 & 1)
    return tuple(Condition(min(first & 14 | bit, Condition.AL)) for bit in bits[:length])


def _length(code: bytes) -> int:
    """Bytes of the first Thumb instruction, 0 when ``code`` is too short to tell (A6.1)."""
    if len(code) < 2:
        return 0
    return 4 if code[1] >> 3 >= 0x1D else 2


def _at_zero(raw: bytes, thumb: bool, it: tuple[Condition, ...]) -> Insn:
    form = None if thumb else form_of(int.from_bytes(raw, "little"))
    if form is None:
        return _disassembled(raw, thumb, it)
    text = _disassemble.text(raw)
    same = _same_form(form[0])
    if text is None or same.flow is ControlFlow.UNDEFINED:
        return disassembled(raw, thumb, it)
    return _renamed(same, raw, text, form[1])


@lru_cache(maxsize=CACHED)
def _same_form(word: int) -> Insn:
    return disassembled(word.to_bytes(4, "little"), False, ())


def _renamed(same: Insn, raw: bytes, text: str, names: Mapping[int, int]) -> Insn:
    """``same`` with the registers and numbers of ``raw``."""
    word = int.from_bytes(raw, "little")
    accesses = same.memory is not None
    memory, transfers = (arm_access(word) if accesses else None) or (None, ())
    return Insn(
        0,
        raw,
        False,
        same.mnemonic,
        text,
        same.cond,
        same.flow,
        None,
        False,
        same.sets_flags,
        same.reads_flags,
        _interned(names.get(r, r) for r in same.reads),
        _interned(names.get(r, r) for r in same.writes),
        same.shift,
        memory,
        transfers,
        tuple(names.get(r, r) for r in same.sources),
    )


@lru_cache(maxsize=CACHED)
def _disassembled(raw: bytes, thumb: bool, it: tuple[Condition, ...]) -> Insn:
    return disassembled(raw, thumb, it)


def _interned(registers: Iterable[int]) -> frozenset[int]:
    """One object for equal sets: there are few distinct ones, of 200 bytes each."""
    found = frozenset(registers)
    return _SETS.setdefault(found, found)


_SETS: dict[frozenset[int], frozenset[int]] = {}


def disassembled(raw: bytes, thumb: bool, it: tuple[Condition, ...]) -> Insn:
    """The instruction ``raw`` at address 0, from the disassembler's operands."""
    known = _disassemble(raw, thumb, it)
    if known is None or known.name in ANOTHER_PROFILE:
        return _undefined(raw, thumb)
    access = _access(raw, thumb, known.name)
    role = _roles(raw, thumb, known, access)
    mnemonic = _mnemonic(known, access)
    memory, transfers = access if access else (None, ())
    flow = _flow(known, role, memory)
    if mnemonic in WAITS or (mnemonic == "mcr" and _waits(raw, thumb)):
        flow = ControlFlow.WAIT
    shift = _shift(known, role, memory)
    branch = flow in (ControlFlow.JUMP, ControlFlow.CALL)
    return Insn(
        addr=0,
        raw=raw,
        thumb=thumb,
        mnemonic=mnemonic,
        text=known.text,
        cond=_cond(known, raw, thumb),
        flow=flow,
        target=known.target if branch else None,
        target_thumb=branch and thumb != (mnemonic == "blx"),
        sets_flags=_sets_flags(known, flow, raw, thumb),
        reads_flags=_reads_flags(known),
        reads=frozenset(role.sources),
        writes=_writes(role, memory, flow),
        shift=shift,
        memory=memory,
        transfers=transfers,
        sources=role.sources,
    )


# instructions of the M profile that the disassembler reports as A-profile ones
ANOTHER_PROFILE = frozenset(["blxns", "bxns", "sg", "tt", "tta", "ttat", "ttt", "vlldm", "vlstm"])


def _undefined(raw: bytes, thumb: bool) -> Insn:
    nothing: frozenset[int] = frozenset()
    return Insn(
        addr=0,
        raw=raw,
        thumb=thumb,
        mnemonic="undefined",
        text=f".inst {int.from_bytes(raw, 'little'):#x}",
        cond=Condition.AL,
        flow=ControlFlow.UNDEFINED,
        target=None,
        target_thumb=False,
        sets_flags=False,
        reads_flags=False,
        reads=nothing,
        writes=nothing,
        shift=ShiftKind.NONE,
        memory=None,
        transfers=(),
    )


# names that share space with loads and stores in ``addressing`` but access nothing
NO_ACCESS = frozenset(["clrex", "dmb", "dsb", "hint", "isb", "nop"])


def _access(raw: bytes, thumb: bool, name: str) -> Transfer | None:
    if name in NO_ACCESS:
        return None
    first = int.from_bytes(raw[:2], "little")
    if not thumb:
        return arm_access(int.from_bytes(raw, "little"))
    return thumb_access(first, int.from_bytes(raw[2:], "little") if len(raw) == 4 else None)


def _roles(raw: bytes, thumb: bool, known: Disassembly, access: Transfer | None) -> RegisterRoles:
    if known.name in ("subs", "eret") and not known.operands.registers:
        return RegisterRoles((PC,), (LR,))  # Thumb: subs pc, lr, #n
    if known.name == "adr":
        return RegisterRoles(tuple(r for r in known.operands.registers if r is not None), (PC,))
    if known.name in ("mrc", "mrc2"):
        return RegisterRoles(tuple(r for r in known.operands.registers if r is not None), ())
    if known.name.startswith("srs"):
        return RegisterRoles((), (13, LR))
    return roles(known.name, known.operands, access)


SAME_NAME = {
    "addw": "add",
    "adr": "add",
    "cdp2": "cdp",
    "fconstd": "vmov",
    "fconsts": "vmov",
    "eret": "sub",
    "fldmdbx": "vldm",
    "fldmiax": "vldm",
    "fmdhr": "vmov",
    "fmdlr": "vmov",
    "fmstat": "vmrs",
    "fstmdbx": "vstm",
    "fstmiax": "vstm",
    "lsl": "mov",
    "lsr": "mov",
    "asr": "mov",
    "ror": "mov",
    "rrx": "mov",
    "mcr2": "mcr",
    "mcrr2": "mcrr",
    "mrc2": "mrc",
    "mrrc2": "mrrc",
    "neg": "rsb",
    "subs": "sub",
    "subw": "sub",
    "movs": "mov",
    "trap": "udf",
}
STEMS = ("ldm", "stm", "vldm", "vstm", "srs", "rfe", "ldc", "stc")
HINTS = ("csdb", "dbg", "nop", "sevl", "sev", "wfe", "wfi", "yield")  # without a condition
UNPRIVILEGED = {
    f"{stem}{size}t": f"{stem}{size}"
    for stem in ("ldr", "str")
    for size in ("", "b", "h", "sb", "sh")
}


def _mnemonic(known: Disassembly, access: Transfer | None) -> str:
    name = known.name
    if name == "hint":
        return next((h for h in HINTS if known.mnemonic.startswith(h)), name)
    if name in ("push", "pop") and access:
        memory, _ = access
        single = known.operands.count == 1 and memory.displacement in (-4, 4) and memory.count == 1
        return _push_pop(name, single and not memory.pre_indexed)
    if name in ("vpush", "vpop"):
        return "vstm" if name == "vpush" else "vldm"
    for stem in STEMS:
        if name.startswith(stem):
            return stem
    return UNPRIVILEGED.get(name) or SAME_NAME.get(name, name)


def _push_pop(name: str, single: bool) -> str:
    if name == "pop":
        return "ldr" if single else "ldm"
    return "str" if single else "stm"


def _cond(known: Disassembly, raw: bytes, thumb: bool) -> Condition:
    if known.name == "it" or (not thumb and raw[3] >> 4 == 15):
        return Condition.AL
    return known.cond


TRAPS = frozenset(["bkpt", "hlt", "hvc", "smc", "svc", "trap", "udf"])
WAITS = frozenset(["wfe", "wfi"])
# mcr p15, 0, rX, c7, c0, 4 without condition and rX: wait for interrupt before ARMv7
OLD_WAIT, OLD_WAIT_BITS = 0x0E070F90, 0x0FFF0FFF


def _flow(known: Disassembly, role: RegisterRoles, memory: MemoryAccess | None) -> ControlFlow:
    name = known.name
    if name in TRAPS:
        return ControlFlow.TRAP
    if name in ("b", "cbz", "cbnz"):
        return ControlFlow.JUMP
    if name in ("bl", "blx"):
        return ControlFlow.INDIRECT_CALL if known.operands.registers else ControlFlow.CALL
    if name in ("bx", "bxj", "tbb", "tbh"):
        return ControlFlow.INDIRECT
    if PC in role.destinations:
        restores = name.startswith("rfe") or name == "eret"
        if restores or (memory is None and known.sets_flags) or known.text.endswith("^"):
            return ControlFlow.EXCEPTION_RETURN
        return ControlFlow.INDIRECT
    if memory is not None and memory.writeback and memory.base == PC:
        return ControlFlow.INDIRECT  # UNPREDICTABLE: nothing is known of the next address
    return ControlFlow.NEXT


def _waits(raw: bytes, thumb: bool) -> bool:
    if thumb:  # the first half is the upper one
        raw = raw[2:] + raw[:2]
    return int.from_bytes(raw, "little") & OLD_WAIT_BITS == OLD_WAIT


PARALLEL = frozenset(  # A4.4.5: set GE
    sign + form for sign in "su" for form in ("add16", "add8", "asx", "sax", "sub16", "sub8")
)
COMPARES = frozenset(["cmn", "cmp", "fmstat", "teq", "tst"])


def _sets_flags(known: Disassembly, flow: ControlFlow, raw: bytes, thumb: bool) -> bool:
    name = known.name
    if known.sets_flags or name in COMPARES or name in PARALLEL:
        return True
    if name == "msr":
        return bool(status_mask(raw, thumb) & 0b1100)
    if name in ("mrc", "mrc2", "vmrs"):
        return bool(known.special & FLAG_REGISTERS)
    return flow is ControlFlow.EXCEPTION_RETURN


READ_FLAGS = frozenset(["adc", "rrx", "rsc", "sbc", "sel"])


def _reads_flags(known: Disassembly) -> bool:
    if known.name == "mrs":
        return bool(known.special & FLAG_REGISTERS)
    return known.name in READ_FLAGS or "rrx" in known.text


def _writes(role: RegisterRoles, memory: MemoryAccess | None, flow: ControlFlow) -> frozenset[int]:
    writes = set(role.destinations)
    if memory is not None and memory.writeback:
        writes.add(13 if memory.base is None else memory.base)
    if flow in (ControlFlow.CALL, ControlFlow.INDIRECT_CALL):
        writes.add(LR)
    if flow in (ControlFlow.INDIRECT, ControlFlow.INDIRECT_CALL):
        writes.add(PC)
    return frozenset(writes)


SHIFT_NAMES = frozenset(["asr", "lsl", "lsr", "ror", "rrx"])


def _shift(known: Disassembly, role: RegisterRoles, memory: MemoryAccess | None) -> ShiftKind:
    if memory is not None:
        return memory.shift if memory.access is not AccessKind.SWAP else ShiftKind.NONE
    if known.name in SHIFT_NAMES:
        return ShiftKind.REGISTER if len(role.sources) == 2 else ShiftKind.IMMEDIATE
    return known.operands.shift


ARM_LINK_AND_CONDITION = 0xFF00_0000
THUMB_OPCODE, THUMB_ZERO = 0xF800, 0x2800  # J1 = J2 = 1 stand for zeros when S is 0
THUMB_BRANCHES = (0xD000, 0x9000)  # second halfword of bl T1 and b T4 (A8.8.18, A8.8.25)


def split_branch(raw: bytes, thumb: bool) -> tuple[bytes, int] | None:
    """``raw`` with distance 0, and its distance in bytes; None for other instructions.

    Other encodings with few distances, and ``blx``, are decoded unchanged.
    """
    if not thumb:
        if raw[3] & 0x0E != 0x0A or raw[3] >= 0xF0:
            return None
        word = int.from_bytes(raw, "little")
        return (word & ARM_LINK_AND_CONDITION).to_bytes(4, "little"), _signed(word << 2, 26)
    if len(raw) == 2:
        return None
    first, second = int.from_bytes(raw[:2], "little"), int.from_bytes(raw[2:], "little")
    if first >> 11 != 0b11110 or second & 0xD000 not in THUMB_BRANCHES:
        return None
    sign, j1, j2 = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
    high = sign << 24 | (1 ^ j1 ^ sign) << 23 | (1 ^ j2 ^ sign) << 22
    distance = high | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
    zero = (second & 0xD000) | THUMB_ZERO
    return (first & THUMB_OPCODE).to_bytes(2, "little") + zero.to_bytes(2, "little"), _signed(
        distance, 25
    )


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> bits - 1 << bits)
