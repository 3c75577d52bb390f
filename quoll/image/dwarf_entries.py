"""Entries of ``.debug_info`` in the order of the file (DWARF 2 to 5; standard 5, section 7.5).

pyelftools takes three times as long for the same entries (0.17 s instead of 0.05 s for the 37 units
of the shipped kernel), and reports damaged sections by exceptions of any class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from quoll.image.byte_stream import ByteStream, EndOfBytes
from quoll.image.debug_sections import DebugSections

__all__ = [
    "ADDR_BASE",
    "COMPILE_UNIT",
    "HIGH_PC",
    "LOW_PC",
    "UNIT_REFERENCES",
    "Attributes",
    "DebugEntry",
    "DebugUnit",
    "address_of",
    "code_range",
    "indexed",
    "text_of",
    "units",
]

COMPILE_UNIT = 0x11  # DW_TAG
STR_OFFSETS_BASE, ADDR_BASE, LOW_PC, HIGH_PC = 0x72, 0x73, 0x11, 0x12  # DW_AT
TYPE_UNITS, SKELETONS = (2, 6), (4, 5)  # DW_UT
LONG_LENGTH = 0xFFFFFFFF
# DW_FORM, by the number of bytes.
FIXED = {
    0x0B: 1, 0x0C: 1, 0x11: 1, 0x25: 1, 0x29: 1, 0x05: 2, 0x12: 2, 0x26: 2, 0x2A: 2, 0x27: 3,
    0x2B: 3, 0x06: 4, 0x13: 4, 0x1C: 4, 0x28: 4, 0x2C: 4, 0x07: 8, 0x14: 8, 0x20: 8, 0x24: 8,
    0x1E: 16, 0x19: 0,
}  # fmt: skip
ULEB = (0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
OFFSETS = (0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)
BLOCKS = {0x0A: 1, 0x03: 2, 0x04: 4}
ADDR, STRING, BLOCK, SDATA, STRP, REF_ADDR = 0x01, 0x08, 0x09, 0x0D, 0x0E, 0x10
INDIRECT, EXPRLOC, LINE_STRP, IMPLICIT = 0x16, 0x18, 0x1F, 0x21
STRX, ADDRX = (0x1A, 0x25, 0x26, 0x27, 0x28), (0x1B, 0x29, 0x2A, 0x2B, 0x2C)
UNIT_REFERENCES = (0x11, 0x12, 0x13, 0x14, 0x15)
ADDR_OPERATION, ADDRX_OPERATION = 0x03, 0xA1  # DW_OP

Value = tuple[int, int | str | bytes]  # form, and content
Attributes = Mapping[int, Value]
Abbreviation = tuple[int, bool, tuple[tuple[int, int, int], ...]]  # tag, children, attributes


@dataclass(frozen=True, slots=True)
class DebugEntry:
    """An entry; ``offset`` is from the start of its unit, ``depth`` 0 at the root."""

    offset: int
    depth: int
    tag: int
    attributes: Attributes


@dataclass(slots=True)
class DebugUnit:
    """The parameters of the forms of a unit."""

    start: int  # offset of its header in .debug_info
    version: int
    offset_size: int
    address_size: int
    root: Attributes = field(default_factory=dict)


def units(
    debug: DebugSections, wanted: Set[int]
) -> Iterator[tuple[DebugUnit, Iterator[DebugEntry]]]:
    """The compilation units, each with its entries and their ``wanted`` attributes.

    The root is read first, and is no part of the entries. Units without entries are left out. A
    reader of entries may meet EndOfBytes: those before stay valid, and the next unit is read.
    """
    stream = ByteStream(debug.info)
    try:
        while stream.left:
            start = stream.pos
            length, offset_size = stream.u32(), 4
            if length == LONG_LENGTH:
                length, offset_size = stream.u64(), 8
            end = stream.pos + length
            inside = ByteStream(debug.info[start:end], stream.pos - start)
            found = _unit(debug, inside, start, offset_size, wanted | {STR_OFFSETS_BASE, ADDR_BASE})
            if found is not None:
                yield found
            stream.skip_to(end)
    except EndOfBytes:
        pass  # units read before stay valid


def _unit(
    debug: DebugSections, stream: ByteStream, start: int, offset_size: int, wanted: Set[int]
) -> tuple[DebugUnit, Iterator[DebugEntry]] | None:
    version = stream.u16()
    if not 2 <= version <= 5:
        return None
    kind = stream.u8() if version >= 5 else 0
    address_size = stream.u8() if version >= 5 else 0
    abbreviations = stream.unsigned(offset_size)
    address_size = address_size or stream.u8()
    if kind in TYPE_UNITS:
        return None
    if kind in SKELETONS:
        stream.u64()
    unit = DebugUnit(start, version, offset_size, address_size)
    entries = _entries(stream, _abbreviations(debug.abbrev, abbreviations), unit, wanted)
    first = next(entries, None)
    if first is None or first.tag != COMPILE_UNIT:
        return None
    unit.root = first.attributes
    return unit, entries


def _abbreviations(section: bytes, offset: int) -> dict[int, Abbreviation]:
    """A table of ``.debug_abbrev`` (7.5.3)."""
    table: dict[int, Abbreviation] = {}
    stream = ByteStream(section)
    stream.skip_to(offset)
    while code := stream.uleb():
        tag, children = stream.uleb(), bool(stream.u8())
        attributes = []
        while True:
            name, form = stream.uleb(), stream.uleb()
            implicit = stream.sleb() if form == IMPLICIT else 0
            if not name and not form:
                break
            attributes.append((name, form, implicit))
        table[code] = (tag, children, tuple(attributes))
    return table


def _entries(
    stream: ByteStream,
    abbreviations: dict[int, Abbreviation],
    unit: DebugUnit,
    wanted: Set[int],
) -> Iterator[DebugEntry]:
    """Each entry with its wanted attributes."""
    depth = 0
    while stream.left:
        offset = stream.pos
        code = stream.uleb()
        if not code:
            depth -= 1
            continue
        if code not in abbreviations:
            raise EndOfBytes(f"abbreviation {code} is not defined")
        tag, children, attributes = abbreviations[code]
        values: dict[int, Value] = {}
        for name, form, implicit in attributes:
            value = _value(stream, form, implicit, unit)
            if name in wanted:
                values[name] = value
        yield DebugEntry(offset, depth, tag, values)
        depth += children


def _value(stream: ByteStream, form: int, implicit: int, unit: DebugUnit) -> Value:
    """One attribute (7.5.6)."""
    if form == INDIRECT:
        form = stream.uleb()
    if form in FIXED:
        return form, stream.unsigned(FIXED[form])
    if form in ULEB:
        return form, stream.uleb()
    if form in OFFSETS or (form == REF_ADDR and unit.version > 2):
        return form, stream.unsigned(unit.offset_size)
    if form in (ADDR, REF_ADDR):
        return form, stream.unsigned(unit.address_size)
    if form == STRING:
        return form, stream.text()
    if form == SDATA:
        return form, stream.sleb()
    if form == IMPLICIT:
        return form, implicit
    if form in BLOCKS:
        return form, stream.take(stream.unsigned(BLOCKS[form]))
    if form in (BLOCK, EXPRLOC):
        return form, stream.take(stream.uleb())
    raise EndOfBytes(f"form 0x{form:x} is not in DWARF 2 to 5")


def address_of(debug: DebugSections, unit: DebugUnit, value: Value) -> int | None:
    """The address in an attribute, or of the object that its location names."""
    form, number = value
    if isinstance(number, bytes):
        return _located(debug, unit, number)
    if not isinstance(number, int):
        return None
    return number if form not in ADDRX else indexed(debug.addr, unit, ADDR_BASE, 4, number)


def code_range(
    debug: DebugSections, unit: DebugUnit, attributes: Attributes
) -> tuple[int, int] | None:
    """The first address of an entry's code, and the one behind it; None without one range."""
    if LOW_PC not in attributes or HIGH_PC not in attributes:
        return None
    low = address_of(debug, unit, attributes[LOW_PC])
    form, high = attributes[HIGH_PC]
    if low is None or not isinstance(high, int):
        return None
    if form == ADDR or form in ADDRX:
        end = address_of(debug, unit, attributes[HIGH_PC])
        return low, low if end is None else end
    return low, low + high


def text_of(debug: DebugSections, unit: DebugUnit, value: Value) -> str | None:
    """The text in an attribute."""
    form, content = value
    if not isinstance(content, int):
        return content if isinstance(content, str) else None
    if form in STRX:
        size = unit.offset_size
        at = indexed(debug.str_offsets, unit, STR_OFFSETS_BASE, size, content)
        form, content = STRP, -1 if at is None else at
    pool = {STRP: debug.str, LINE_STRP: debug.line_str}.get(form, b"")
    if not 0 <= content < len(pool):
        return None
    return ByteStream(pool, content).text()


def indexed(section: bytes, unit: DebugUnit, base: int, size: int, index: int) -> int | None:
    """Entry ``index`` of a table whose start the unit states (7.26, 7.27)."""
    start = unit.root.get(base, (0, 0))[1]
    if not isinstance(start, int) or start < 0 or index < 0:
        return None
    entry = section[start + size * index : start + size * (index + 1)]
    return int.from_bytes(entry, "little") if len(entry) == size else None


def _located(debug: DebugSections, unit: DebugUnit, location: bytes) -> int | None:
    """The fixed address that a location is; None for any other one (2.6)."""
    stream = ByteStream(location)
    try:
        operation = stream.u8()
        if operation == ADDR_OPERATION:
            found: int | None = stream.unsigned(unit.address_size)
        elif operation == ADDRX_OPERATION:
            found = indexed(debug.addr, unit, ADDR_BASE, 4, stream.uleb())
        else:
            return None
    except EndOfBytes:
        return None
    return None if stream.left else found
