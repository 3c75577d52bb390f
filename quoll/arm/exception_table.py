"""The exception vectors of an image: the table that the core reads, by its form.

Sources: ARM Architecture Reference Manual, ARMv7-A, B1.8.1: eight words, each an ARM or a Thumb
instruction that leads to its handler, by ``b`` or ``ldr pc`` with a literal; unused words hold a
``nop``, 0, or a branch to themselves, and the handler of the fast interrupt may stand in the last
place. Table B1-3 there has the mode in which each exception is taken. ARMv7-M, B1.5.3: the first
stack pointer, then the addresses of handlers, all of them Thumb.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.decode import decode
from quoll.arm.insn import PC, Condition, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.errors import InputError
from quoll.image.image import Image

__all__ = [
    "EXCEPTIONS",
    "SIZE",
    "WORD",
    "EnteredMode",
    "ExceptionTable",
    "entered_mode",
    "exception_tables",
    "microcontroller_tables",
]

EXCEPTIONS = (
    "reset",
    "undefined instruction",
    "supervisor call",
    "prefetch abort",
    "data abort",
    "unused vector",
    "interrupt",
    "fast interrupt",
)
MODES = (0x13, 0x1B, 0x13, 0x17, 0x17, None, 0x12, 0x11)  # CPSR bits 4 to 0, by exception
WORD = 4  # bytes
SIZE = WORD * len(EXCEPTIONS)  # bytes
RESET, UNUSED, LAST = 0, 5, 7
FEWEST = 2  # vectors of a table that lead to other code
FIRST, FAULTS = slice(1, 4), slice(4, 7)  # of the M profile: reset, NMI, HardFault; the others


@dataclass(frozen=True, slots=True)
class ExceptionTable:
    """The table at ``addr``: the address of each handler, bit 0 set for Thumb code.

    ``handlers`` are in the order of ``EXCEPTIONS``; None where a vector leads nowhere. ``literals``
    are the addresses of the words that the vectors load.
    """

    addr: int
    handlers: tuple[int | None, ...]
    literals: frozenset[int] = frozenset()


def exception_tables(image: Image) -> tuple[ExceptionTable, ...]:
    """All tables of the image, by address.

    A table begins at a multiple of 32, at a symbol, or at a section, and shares no word with the
    inside of a function.
    """
    found = (
        _table(image, addr, thumb=thumb) for addr in _starts(image) for thumb in _sets(image, addr)
    )
    return tuple({table.addr: table for table in found if table is not None}.values())


@dataclass(frozen=True, slots=True)
class EnteredMode:
    """The mode (CPSR bits 4 to 0) in which exceptions enter a handler, by the vector's address."""

    mode: int
    vector: int


def entered_mode(image: Image, address: int) -> EnteredMode | None:
    """The mode in which exceptions enter the code at ``address``, bit 0 set for Thumb code.

    The code is a vector or the handler of one. None if no vector leads there, and where vectors of
    several modes do. The mode is another one where Monitor or Hyp mode takes the exception
    (B1.8.1): a table that uses the unused vector may be of Hyp mode, and tells nothing.
    """
    found: dict[int, int] = {}
    for table in exception_tables(image):
        for number, (handler, mode) in enumerate(zip(table.handlers, MODES, strict=True)):
            vector = table.addr + WORD * number
            leads = handler is not None and handler & ~1 == address & ~1
            if not leads and vector != address & ~1:
                continue
            if mode is None or table.handlers[UNUSED] not in (None, table.addr + WORD * UNUSED):
                return None
            found.setdefault(mode, vector)
    if len(found) != 1:
        return None
    ((mode, vector),) = found.items()
    return EnteredMode(mode, vector)


def microcontroller_tables(image: Image) -> tuple[int, ...]:
    """The addresses of tables of the M profile, at the starts of sections and segments."""
    sections = {section.addr for section in image.sections}
    starts = sorted(sections | {segment.addr for segment in image.segments})
    return tuple(addr for addr in starts if _is_microcontroller(image, addr))


def _starts(image: Image) -> list[int]:
    aligned = (
        range(segment.addr + -segment.addr % SIZE, segment.addr + len(segment.data), SIZE)
        for segment in image.segments
    )
    found = {addr for addresses in aligned for addr in addresses}
    found |= {symbol.addr for symbol in image.symbols.symbols}
    found |= {section.addr for section in image.sections}
    return [addr for addr in sorted(found) if not addr % WORD and image.is_executable(addr)]


def _sets(image: Image, addr: int) -> tuple[bool, ...]:
    """The instruction sets that the first vector may be of: whether Thumb."""
    content = image.read(addr, SIZE)
    if content is None:
        return ()
    word, thumb = int.from_bytes(content[:WORD], "little"), image.thumb_at(addr)
    return tuple(
        which
        for which, fits in ((False, _may_branch(word)), (True, _may_branch_in_thumb(word)))
        if fits and thumb in (None, which)
    )


def _may_branch(word: int) -> bool:
    """Whether an ARM word is ``b``, or ``ldr pc`` with a literal."""
    return word >> 24 == 0xEA or word >> 12 & ~0x800 == 0xE51FF


def _may_branch_in_thumb(word: int) -> bool:
    """Whether it begins as ``b``, ``b.w``, or ``ldr.w pc`` with a literal."""
    return word >> 11 & 31 in (0b11100, 0b11110) or word & 0xFF7F == 0xF85F


def _table(image: Image, addr: int, *, thumb: bool) -> ExceptionTable | None:
    """The table of this instruction set at ``addr``; None if its words are anything else."""
    handlers: list[int | None] = []
    literals: set[int] = set()
    if _inside_function(image, addr):
        return None
    for number in range(len(EXCEPTIONS)):
        at = addr + WORD * number
        insn = _instruction(image, at, thumb=thumb)
        literal = None if insn is None else _literal(insn)
        handler = None if insn is None else _handler(image, insn, literal)
        literals |= {literal} if literal is not None else set()
        if handler is None and not _is_empty(image, at, insn):
            if number == LAST and _is_code(image, at, insn):
                handler = at | thumb
            elif number != UNUSED:
                return None
        handlers.append(handler)
    away = sum(h is not None and h & ~1 != addr + WORD * n for n, h in enumerate(handlers))
    if handlers[RESET] is None or away < FEWEST:
        return None
    return ExceptionTable(addr, tuple(handlers), frozenset(literals))


def _inside_function(image: Image, addr: int) -> bool:
    """Whether a function begins behind ``addr`` in the table, or extends over ``addr``."""
    around = image.symbol_at(addr)
    if around is not None and around[1] and around[0].kind == "func":
        return True
    later = range(addr + WORD, addr + SIZE, WORD)
    return any(s.kind == "func" and s.size for at in later for s in image.symbols.at(at))


def _instruction(image: Image, addr: int, *, thumb: bool) -> Insn | None:
    try:
        return decode(image.read(addr, WORD) or b"", addr, thumb=thumb)
    except InputError:
        return None


def _literal(insn: Insn) -> int | None:
    """The address of the word that ``ldr pc`` loads; None for another instruction."""
    memory = insn.memory
    if insn.flow is not ControlFlow.INDIRECT or memory is None or memory.base != PC:
        return None
    plain = memory.index is None and insn.operation is Operation.LOAD_WORD
    return insn.pc_operand + memory.displacement if plain else None


def _handler(image: Image, insn: Insn, literal: int | None) -> int | None:
    """The address that a vector leads to, bit 0 set for Thumb code; None for another one."""
    if insn.cond is not Condition.AL:
        return None
    if insn.flow is ControlFlow.JUMP and insn.target is not None:
        return insn.target | insn.target_thumb
    content = None if literal is None else image.read(literal, WORD)
    return None if content is None else int.from_bytes(content, "little")


def _is_empty(image: Image, addr: int, insn: Insn | None) -> bool:
    """Whether a vector does nothing: 0, or an instruction without any effect."""
    if not any(image.read(addr, WORD) or b""):
        return True
    if insn is None or insn.flow is not ControlFlow.NEXT or insn.memory is not None:
        return False
    same = insn.mnemonic == "mov" and insn.writes == frozenset(insn.sources)
    return insn.mnemonic == "nop" or same


def _is_code(image: Image, addr: int, insn: Insn | None) -> bool:
    return (
        insn is not None
        and insn.flow is ControlFlow.NEXT
        and image.is_executable(addr)
        and not image.is_marked_data(addr)
    )


def _is_microcontroller(image: Image, addr: int) -> bool:
    content = image.read(addr, SIZE)
    if content is None or addr % WORD:
        return False
    words = [int.from_bytes(content[at : at + WORD], "little") for at in range(0, SIZE, WORD)]
    stack = words[0] - WORD
    return (
        stack > 0
        and not words[0] % WORD
        and not image.is_executable(stack)
        and all(_is_thumb_code(image, word) for word in words[FIRST])
        and all(not word or _is_thumb_code(image, word) for word in words[FAULTS])
    )


def _is_thumb_code(image: Image, word: int) -> bool:
    return bool(word & 1) and image.is_executable(word & ~1)
