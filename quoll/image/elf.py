"""An ELF executable as its tables say, nothing trusted: every offset and count is checked first.

Source: System V ABI, chapters 4 and 5; ELF for the Arm Architecture (AAELF32). Only what an
analysis needs is taken: loadable segments, sections that are loaded, symbols, the line table and
the build attributes. Memory stays below twice the size of the file.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise

from quoll.errors import InputError
from quoll.image.dwarf_lines import DebugSections
from quoll.printable import printable

__all__ = ["ElfFile", "LoadSegment", "RawSymbol", "Section", "parse_elf"]

WORD = 1 << 32
MACHINE_ARM, TYPE_REL, TYPE_EXEC, TYPE_DYN = 40, 1, 2, 3
SEGMENT_LOAD, SEGMENT_X, SEGMENT_W = 1, 1, 2
SECTION_PROGBITS, SECTION_EXIDX, SECTION_RELA, SECTION_REL = 1, 0x70000001, 4, 9
SECTION_SYMBOLS, SECTION_NOBITS, SECTION_DYNSYM, SECTION_ATTRIBUTES = 2, 8, 11, 0x70000003
RELOCATION = {SECTION_REL: struct.Struct("<II"), SECTION_RELA: struct.Struct("<IIi")}
RELATIVE = 23  # R_ARM_RELATIVE: with REL, what is stored holds at the address of the link
SECTION_WRITE, SECTION_ALLOC, SECTION_EXEC, SECTION_TLS = 1, 2, 4, 0x400
SECTION_COMPRESSED = 0x800
HEADER, PROGRAM_HEADER = struct.Struct("<16sHHIIIIIHHHHHH"), struct.Struct("<8I")
SECTION_HEADER, SYMBOL = struct.Struct("<10I"), struct.Struct("<IIIBBH")
EXTENDED_SEGMENTS, EXTENDED_SECTION = 0xFFFF, 0xFFFF
MOST_SYMBOLS, LARGEST_FILE, LARGEST_DEBUG = 4_000_000, 1 << 30, 1 << 28
MACHINES = {2: "SPARC", 3: "x86", 8: "MIPS", 20: "PowerPC", 62: "x86-64", 183: "AArch64",
            243: "RISC-V"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadSegment:
    """Memory that is loaded: ``size`` bytes at ``addr``, of which ``data`` are in the file."""

    addr: int
    physical: int
    size: int
    data: bytes
    writable: bool
    executable: bool


@dataclass(frozen=True, slots=True)
class Section:
    """A section that is loaded.

    ``stored`` is False for .bss and its like, and for tables of the loader, which programs lay
    their own variables over once they are used up.
    """

    name: str
    addr: int
    size: int
    writable: bool
    executable: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class RawSymbol:
    """A row of the symbol table as it stands."""

    name: str
    value: int
    size: int
    kind: int  # STT_*
    binding: int  # STB_*
    section: int  # index, or a reserved one


@dataclass(frozen=True, slots=True)
class ElfFile:
    """Segments and sections ascend by address and do not overlap among themselves.

    ``unsettled``: addresses of words that a dynamic relocation changes before the program runs.
    """

    entry: int
    segments: tuple[LoadSegment, ...]
    sections: tuple[Section, ...]
    symbols: tuple[RawSymbol, ...]
    debug: DebugSections
    attributes: bytes
    unsettled: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _SectionHeader:
    name: int
    kind: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int


def parse_elf(data: bytes, path: str) -> ElfFile:
    """Check and read the ELF ``data``; ``path`` names it in errors.

    Raises InputError: not an ELF, wrong machine, byte order, class or type, truncated, or with
    tables that contradict each other.
    """
    header = _header(data, path)
    (_, _, _, _, entry, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx) = header
    headers: list[_SectionHeader] = []
    if shoff:
        first = _table(data, shoff, 1, shentsize, SECTION_HEADER, "section headers", path)[0]
        shnum = shnum or first[5]
        phnum = first[7] if phnum == EXTENDED_SEGMENTS else phnum
        shstrndx = first[6] if shstrndx == EXTENDED_SECTION else shstrndx
        rows = _table(data, shoff, shnum, shentsize, SECTION_HEADER, "section headers", path)
        headers = [_SectionHeader(*row[:7]) for row in rows]
    rows = _table(data, phoff, phnum, phentsize, PROGRAM_HEADER, "program headers", path)
    names = _stored(data, headers[shstrndx], path) if shstrndx < len(headers) else b""
    return ElfFile(
        entry,
        _segments(data, rows, path),
        _sections(headers, names, path),
        _symbols(data, headers, path),
        _debug(data, headers, names),
        next((_stored(data, h, path) for h in headers if h.kind == SECTION_ATTRIBUTES), b""),
        _unsettled(data, headers, path),
    )


def _header(data: bytes, path: str) -> tuple[int, ...]:
    if data[:4] != b"\x7fELF":
        raise InputError(f"{path} is not an ELF file", hint="give the linked kernel, kernel.elf")
    if len(data) < HEADER.size:
        raise InputError(f"{path} is truncated inside its ELF header")
    if data[4] != 1:
        raise InputError(f"{path} is not a 32-bit ELF", hint="ARMv4 to ARMv7-A is analysed")
    if data[5] != 1:
        raise InputError(f"{path} is big-endian", hint="only little-endian code is analysed")
    fields: tuple[int, ...] = HEADER.unpack_from(data)
    if fields[2] != MACHINE_ARM:
        machine = MACHINES.get(fields[2], f"machine {fields[2]}")
        raise InputError(f"{path} is for {machine}, not ARM", hint="use the cross compiler")
    if fields[1] == TYPE_REL:
        raise InputError(f"{path} is a relocatable object", hint="link it: give the executable")
    if fields[1] not in (TYPE_EXEC, TYPE_DYN):
        raise InputError(f"{path} has ELF type {fields[1]}, neither executable nor shared object")
    return fields


def _table(
    data: bytes, offset: int, count: int, size: int, row: struct.Struct, what: str, path: str
) -> list[tuple[int, ...]]:
    if count and size != row.size:
        raise InputError(f"{path}: {what} of {size} bytes each, not {row.size}")
    if count and offset + count * size > len(data):
        raise InputError(f"{path} is truncated: {count} {what} at offset 0x{offset:x}")
    return [row.unpack_from(data, offset + i * size) for i in range(count)]


def _segments(data: bytes, rows: list[tuple[int, ...]], path: str) -> tuple[LoadSegment, ...]:
    segments = []
    stored = 0
    for kind, offset, addr, physical, file_size, size, flags, _ in rows:
        if kind != SEGMENT_LOAD or size == 0:
            continue
        if file_size > size or addr + size > WORD:
            raise InputError(
                f"{path}: segment at 0x{addr:08x} has 0x{file_size:x} bytes stored of 0x{size:x}"
            )
        if offset + file_size > len(data):
            raise InputError(f"{path} is truncated inside the segment at 0x{addr:08x}")
        stored += file_size
        if stored > len(data):
            raise InputError(f"{path}: segments overlap in the file")
        bytes_ = data[offset : offset + file_size]
        segments.append(
            LoadSegment(
                addr, physical, size, bytes_, bool(flags & SEGMENT_W), bool(flags & SEGMENT_X)
            )
        )
    if not segments:
        raise InputError(f"{path} has no loadable segments", hint="link it into an executable")
    segments.sort(key=lambda s: s.addr)
    for low, high in pairwise(segments):
        if low.addr + low.size > high.addr:
            raise InputError(f"{path}: segments overlap at 0x{high.addr:08x}")
    return tuple(segments)


def _sections(headers: list[_SectionHeader], names: bytes, path: str) -> tuple[Section, ...]:
    """Loaded sections by address; zero-initialised thread storage takes no address."""
    sections = [
        Section(
            _name(names, h.name),
            h.addr,
            h.size,
            bool(h.flags & SECTION_WRITE),
            bool(h.flags & SECTION_EXEC),
            h.kind in (SECTION_PROGBITS, SECTION_EXIDX),
        )
        for h in headers
        if h.flags & SECTION_ALLOC
        and h.size
        and not (h.flags & SECTION_TLS and h.kind == SECTION_NOBITS)
    ]
    sections.sort(key=lambda s: s.addr)
    for low, high in pairwise(sections):
        if low.addr + low.size > high.addr:
            raise InputError(
                f"{path}: sections {low.name} and {high.name} overlap at 0x{high.addr:08x}"
            )
    return tuple(sections)


def _name(names: bytes, offset: int) -> str:
    """The string at ``offset`` of a string table; names longer than any compiler's are cut."""
    end = names.find(b"\0", offset, offset + 4096)
    text = names[offset : end if end >= 0 else offset + 4096].decode("utf-8", "replace")
    return printable(text)


def _stored(data: bytes, header: _SectionHeader, path: str) -> bytes:
    if header.kind == SECTION_NOBITS:
        return b""
    if header.offset + header.size > len(data):
        raise InputError(f"{path} is truncated inside the section at offset 0x{header.offset:x}")
    return data[header.offset : header.offset + header.size]


def _symbols(data: bytes, headers: list[_SectionHeader], path: str) -> tuple[RawSymbol, ...]:
    """The full symbol table, or the dynamic one of a stripped file."""
    for wanted in (SECTION_SYMBOLS, SECTION_DYNSYM):
        table = next((h for h in headers if h.kind == wanted), None)
        if table is None:
            continue
        count = table.size // SYMBOL.size
        if count > MOST_SYMBOLS:
            raise InputError(f"{path} has {count} symbols, more than {MOST_SYMBOLS}")
        if table.link >= len(headers):
            raise InputError(f"{path}: the symbol table has no string table")
        names = _stored(data, headers[table.link], path)
        rows = _stored(data, table, path)[: count * SYMBOL.size]
        return tuple(
            RawSymbol(_name(names, name), value, size, info & 15, info >> 4, section)
            for name, value, size, info, _, section in SYMBOL.iter_unpack(rows)
        )
    return ()


def _unsettled(data: bytes, headers: list[_SectionHeader], path: str) -> frozenset[int]:
    found: set[int] = set()
    for header in headers:
        row = RELOCATION.get(header.kind)
        if row is None or not header.flags & SECTION_ALLOC:
            continue
        rows = _stored(data, header, path)[: header.size // row.size * row.size]
        found |= {
            fields[0]
            for fields in row.iter_unpack(rows)
            if header.kind == SECTION_RELA or fields[1] & 255 != RELATIVE
        }
    return frozenset(found)


def _debug(data: bytes, headers: list[_SectionHeader], names: bytes) -> DebugSections:
    """Debug sections that lie outside the file or do not decompress count as absent."""
    found: dict[str, bytes] = {}
    for header in headers:
        name = _name(names, header.name)
        if name in (".debug_line", ".debug_line_str", ".debug_str"):
            raw = data[header.offset : header.offset + header.size]
            found[name] = _inflate(raw) if header.flags & SECTION_COMPRESSED else raw
    return DebugSections(
        found.get(".debug_line", b""),
        found.get(".debug_line_str", b""),
        found.get(".debug_str", b""),
    )


def _inflate(raw: bytes) -> bytes:
    """Undo SHF_COMPRESSED with ELFCOMPRESS_ZLIB; the size in the header is not believed."""
    if len(raw) < 12 or int.from_bytes(raw[:4], "little") != 1:
        return b""
    try:
        return zlib.decompressobj().decompress(raw[12:], LARGEST_DEBUG)
    except zlib.error:
        return b""
