"""Registers that hold variables, from location lists (DWARF 5, sections 2.6.2 and 7.7.3; 4, 2.6.2).

Only locations that are a whole register are read: others, as of a part or of a computed value, tell
nothing about the content of a register.
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
REGISTER, REGISTERS = 0x50, 16  # DW_OP
WHOLE = 0xFFFFFFFF  # address that selects a base (DWARF 4)


class HeldRange(NamedTuple):
    """From ``low`` to before ``high``, ``register`` has the value of a variable."""

    low: int
    high: int
    register: int


def registers_held(debug: DebugSections, unit: DebugUnit, location: Value) -> Iterator[HeldRange]:
    """The ranges of a location list in which it is a register; none for other locations."""
    form, number = location
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
            if len(expression) == 1 and 0 <= expression[0] - REGISTER < REGISTERS:
                yield HeldRange(low, high, expression[0] - REGISTER)
    except EndOfBytes:
        return


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
