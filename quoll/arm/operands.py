"""The registers that an instruction reads, in operand order, and the registers it writes.

``Operands`` is the normalised operand list of a disassembler: general registers in assembler
order, the shift of the last one, and whether immediates follow. Roles are given by position; the
tables below name the instructions whose positions do not mean "destination, sources".
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.insn import AccessKind, Insn, MemoryAccess, ShiftKind

__all__ = ["Operands", "RegisterRoles", "long_product", "roles"]


@dataclass(frozen=True, slots=True)
class Operands:
    """``registers`` holds a number for a general register, None for any other register."""

    registers: tuple[int | None, ...]
    count: int  # operands of every kind
    shift: ShiftKind
    shift_register: int | None


@dataclass(frozen=True, slots=True)
class RegisterRoles:
    """Destinations (without the base that a memory access writes back) and ordered sources."""

    destinations: tuple[int, ...]
    sources: tuple[int, ...]


BRANCHES = ("b", "bl", "blx", "bx", "bxj", "cbnz", "cbz")
COMPARES = ("cmn", "cmp", "teq", "tst")
TO_COPROCESSOR = ("cdp", "mcr", "mcr2", "mcrr", "mcrr2", "msr", "vmsr")
NO_DESTINATION = frozenset([*BRANCHES, *COMPARES, *TO_COPROCESSOR, "hvc", "smc", "svc"])
TWO_DESTINATIONS = frozenset(["mrrc", "mrrc2", "smull", "umull"])
LONG_ACCUMULATE = ("smlal", "smlsld", "umaal", "umlal")
READ_DESTINATION = frozenset(["bfc", "bfi", "movt"])
# Thumb writes these with two operands when the destination is the first source
ARITHMETIC = ("adc", "add", "rsb", "rsc", "sbc", "sub")
LOGIC = ("and", "bic", "eor", "mul", "orn", "orr")
THREE_OPERANDS = frozenset([*ARITHMETIC, *LOGIC])
SHIFTS = frozenset(["asr", "lsl", "lsr", "ror"])
TO_CORE = frozenset(["vmov", "vmrs"])


def roles(
    name: str, operands: Operands, access: tuple[MemoryAccess, tuple[int, ...]] | None
) -> RegisterRoles:
    """Roles of the registers of instruction ``name`` (the disassembler's base name)."""
    if access is not None:
        return _memory_roles(name, operands, *access)
    if name[0] == "v" or name.startswith("fm"):
        return _vfp_roles(name, operands.registers)
    registers = tuple(r for r in operands.registers if r is not None)
    destinations, sources = _split(name, registers, operands)
    if operands.shift_register is not None:
        sources += (operands.shift_register,)
    return RegisterRoles(destinations, sources)


def _split(
    name: str, registers: tuple[int, ...], operands: Operands
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if name in NO_DESTINATION or not registers:
        return (), registers
    if name in TWO_DESTINATIONS:
        return registers[:2], registers[2:]
    if name.startswith(LONG_ACCUMULATE):
        return registers[:2], registers[2:] + registers[:2]
    if name in READ_DESTINATION:
        return registers[:1], registers[1:] + registers[:1]
    in_place = name in THREE_OPERANDS or (name in SHIFTS and operands.shift is ShiftKind.NONE)
    if in_place and operands.count == 2:
        return registers[:1], registers
    return registers[:1], registers[1:]


def _memory_roles(
    name: str, operands: Operands, memory: MemoryAccess, transfers: tuple[int, ...]
) -> RegisterRoles:
    """Base, index, then the registers stored; a user-bank r13 or r14 is left out (B9.3.5)."""
    address = tuple(r for r in (memory.base, memory.index) if r is not None)
    if memory.access is AccessKind.SWAP:
        return RegisterRoles(transfers[:1], address + transfers[1:])
    moved = tuple(r for r in transfers if not memory.user or memory.count == 1 or r < 13)
    if memory.access is AccessKind.LOAD:
        return RegisterRoles(moved, address)
    status = (operands.registers[0],) if memory.exclusive else ()
    return RegisterRoles(tuple(r for r in status if r is not None), address + moved)


def _vfp_roles(name: str, registers: tuple[int | None, ...]) -> RegisterRoles:
    """Transfers between general and VFP registers: leading general registers are written."""
    general = tuple(r for r in registers if r is not None)
    if name in TO_CORE and registers and registers[0] is not None:
        return RegisterRoles(general, ())
    return RegisterRoles((), general)


def long_product(insn: Insn) -> tuple[int, int]:
    """The registers of a product of 64 bits, the lower half first (A8.8.189)."""
    word = insn.encoding
    return word >> 12 & 15, word >> (8 if insn.thumb else 16) & 15
