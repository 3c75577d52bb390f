"""Registers that hold variables, from locations and their lists (DWARF 5, sections 2.6 and 7.7.3).

Only locations in registers are read: a computed value tells nothing about a register.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quoll.image.byte_stream import ByteStream, EndOfBytes
from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_entries import ADDR_BASE, DebugUnit, Value, address_of, indexed

__all__ = ["LIST_BASE", "HeldRange", "registers_held"]

LOW_PC, LIST_BASE = 0x11, 0x8C  # DW_AT
OFFSET_FORMS, LISTX = (0x06, 0x17), 0x22  # DW_FORM
END, BASEX, STARTX_ENDX, STARTX_LENGTH, PAIR, DEFAULT, BASE, START_END, START_LENGTH = range(9)
REGISTER, REGISTERS, PIECE = 0x50, 16, 0x93  # DW_OP
WORD = 4  # bytes
WHOLE = 0xFFFFFFFF  # address that selects a base (DWARF 4)


class HeldRange(NamedTuple):
    """From ``low`` to before ``high``, ``register`` has the value of a variable.

    ``part``: only of the word at this offset.
    """

    low: int
    high: int
    register: int
    part: int | None = None


def registers_held(
    debug: DebugSections, unit: DebugUnit, location: Value, scope: tuple[int, int] | None
) -> Iterator[HeldRange]:
    """The ranges in which a variable is in a register.

    A location without a list holds in the whole ``scope`` of the variable, if that is one range.
    """
    form, number = location
    if isinstance(number, bytes) and scope is not None:
        try:
            for register, part in _registers(number):
                yield HeldRange(*scope, register, part)
        except EndOfBytes:
            return
    if not isinstance(number, int) or form not in (*OFFSET_FORMS, LISTX):
        return
    at: int | None = number
    if form == LISTX:
        start = unit.root.get(LIST_BASE, (0, 0))[1]
        at = indexed(debug.loclists, unit, LIST_BASE, unit.offset_size, number)
        at = at + start if at is not None and isinstance(start, int) else None
    section = debug.loclists if unit.version >= 5 else debug.loc
    if at is None or not 0 <= at < len(section):
        return
    stream = ByteStream(section, at)
    read = _entries_v5 if unit.version >= 5 else _entries_v4
    try:
        for low, high, expression in read(debug, unit, stream):
            for register, part in _registers(expression):
                yield HeldRange(low, high, register, part)
    except EndOfBytes:
        return


def _registers(expression: bytes) -> Iterator[tuple[int, int | None]]:
    """The registers of an expression, each with the offset of its word if it holds a part."""
    if len(expression) == 1:
        if 0 <= expression[0] - REGISTER < REGISTERS:
            yield expression[0] - REGISTER, None
        return
    stream, at = ByteStream(expression), 0
    while stream.left:
        register = stream.u8()
        if register != PIECE:  # otherwise this part is nowhere
            if not 0 <= register - REGISTER < REGISTERS or stream.u8() != PIECE:
                return
            if (size := stream.uleb()) == WORD:
                yield register - REGISTER, at
        else:
            size = stream.uleb()
        at += size


def _base(debug: DebugSections, unit: DebugUnit) -> int:
    low = unit.root.get(LOW_PC)
    return (address_of(debug, unit, low) if low is not None else None) or 0


def _entries_v4(
    debug: DebugSections, unit: DebugUnit, stream: ByteStream
) -> Iterator[tuple[int, int, bytes]]:
    """Entries of ``.debug_loc``: range, and expression."""
    base = _base(debug, unit)
    while True:
        low, high = stream.unsigned(unit.address_size), stream.unsigned(unit.address_size)
        if not (low or high):
            return
        if low == WHOLE:
            base = high
            continue
        yield base + low, base + high, stream.take(stream.u16())


def _entries_v5(
    debug: DebugSections, unit: DebugUnit, stream: ByteStream
) -> Iterator[tuple[int, int, bytes]]:
    """Entries of ``.debug_loclists``: range, and expression."""
    base, size = _base(debug, unit), unit.address_size

    def address(index: int) -> int:
        return indexed(debug.addr, unit, ADDR_BASE, size, index) or 0

    while kind := stream.u8():
        if kind == BASEX:
            base = address(stream.uleb())
        elif kind == BASE:
            base = stream.unsigned(size)
        elif kind == DEFAULT:
            stream.take(stream.uleb())
        elif kind > START_LENGTH:
            raise EndOfBytes(f"location list entry {kind} is not in DWARF 5")
        else:
            low = high = base
            if kind in (STARTX_ENDX, STARTX_LENGTH):
                low = address(stream.uleb())
                high = address(stream.uleb()) if kind == STARTX_ENDX else low + stream.uleb()
            elif kind == PAIR:
                low, high = base + stream.uleb(), base + stream.uleb()
            else:
                low = stream.unsigned(size)
                high = stream.unsigned(size) if kind == START_END else low + stream.uleb()
            yield low, high, stream.take(stream.uleb())
