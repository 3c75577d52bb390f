"""An ELF executable from its tables: pyelftools reads the rows, and every field is checked.

Source: System V ABI, chapters 4 and 5; ELF for the Arm Architecture (AAELF32). Only the data that
the analysis needs are read: loadable segments, sections that are loaded, symbols, the line table
and the build attributes. Every offset and count is checked before it is used, and rows are read one
at a time, so memory stays below twice the size of the file. Only the layouts of pyelftools are
used: its ``ELFFile`` follows offsets into the file before they can be checked.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any

from elftools.construct import ConstructError
from elftools.elf.structs import ELFStructs

from quoll.errors import InputError
from quoll.image.debug_sections import DebugSections
from quoll.image.dynamic import BadDynamicSection, relocation_tables
from quoll.printable import printable

__all__ = [
    "SAY_WHICH",
    "ElfFile",
    "LoadSegment",
    "OverlayRange",
    "RawSymbol",
    "Section",
    "parse_elf",
]

SAY_WHICH = "say which one runs: objcopy -O binary -j SECTION ELF FILE, then --raw FILE@ADDRESS:r"

WORD = 1 << 32
ELFCLASS32, ELFDATA2LSB = 1, 1  # e_ident
SEGMENT_X, SEGMENT_W = 1, 2  # p_flags
SECTION_WRITE, SECTION_ALLOC, SECTION_EXEC = 1, 2, 4  # sh_flags
SECTION_TLS, SECTION_COMPRESSED = 0x400, 0x800
STORED = ("SHT_PROGBITS", "SHT_ARM_EXIDX")
RELOCATIONS = {"SHT_REL": "Elf_Rel", "SHT_RELA": "Elf_Rela"}
RELATIVE = 23  # R_ARM_RELATIVE: with REL, the stored word holds at the link address
EXTENDED = 0xFFFF  # PN_XNUM, SHN_XINDEX: section header 0 holds the number
RESERVED_SECTIONS = 0xFF00  # SHN_LORESERVE: indices from here on name no section
DEBUG = ".debug_"
LINE_SECTIONS = ("line", "line_str", "str")  # in the order of DebugSections
ENTRY_SECTIONS = ("info", "abbrev", "addr", "str_offsets")
PLACE_SECTIONS = ("loc", "loclists", "frame")
LONGEST_NAME = 4096
MOST_ROWS = 1_000_000  # of any table: pyelftools reads one in 15 us
SHORT_ENTRIES = 4 << 20  # bytes
LARGEST_FILE, LARGEST_DEBUG = 1 << 30, 1 << 28  # bytes

Row = Any  # a container of pyelftools: fields by their ABI names


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
    """A loaded section.

    ``stored`` is False for .bss and similar, and for tables of the loader, whose memory programs
    reuse for their own variables.
    """

    name: str
    addr: int
    size: int
    writable: bool
    executable: bool
    stored: bool


@dataclass(frozen=True, slots=True)
class RawSymbol:
    """A row of the symbol table; ``kind`` and ``binding`` are STT_* and STB_* of the ABI."""

    name: str
    value: int
    size: int
    kind: str
    binding: str
    defined: bool  # in a section: neither undefined nor absolute nor common


@dataclass(frozen=True, slots=True)
class OverlayRange:
    """Addresses with several contents in the file, each at its own place in memory.

    Code copies or maps one of them there at run time; the file does not determine which.
    """

    start: int
    end: int  # the first address after it
    sections: tuple[str, ...]  # names of the sections there


@dataclass(frozen=True, slots=True)
class ElfFile:
    """Segments and sections ascend by address and do not overlap among themselves.

    No segment is loaded in ``overlays``. ``unsettled``: addresses of words that a dynamic
    relocation changes before the program runs, except words that keep their value at the link
    address.
    """

    entry: int
    segments: tuple[LoadSegment, ...]
    sections: tuple[Section, ...]
    symbols: tuple[RawSymbol, ...]
    debug: DebugSections
    attributes: bytes
    unsettled: frozenset[int] = frozenset()
    overlays: tuple[OverlayRange, ...] = ()


@dataclass(frozen=True, slots=True)
class _SectionHeader:
    """The used fields of a row, far smaller than the row of pyelftools."""

    name: int
    kind: str
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
    try:
        return _Reader(data, path).read()
    except ConstructError as fault:
        raise InputError(f"{path} is damaged: {fault}") from fault


class _Reader:
    """The bytes of a file and the layouts of its tables."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data, self._path = data, path
        self._layouts = ELFStructs(little_endian=True, elfclass=32)
        self._layouts.create_basic_structs()
        self._layouts.create_advanced_structs("ET_EXEC", "EM_ARM", "ELFOSABI_SYSV")

    def read(self) -> ElfFile:
        header = self._header()
        segments, names = header["e_phnum"], header["e_shstrndx"]
        headers: list[_SectionHeader] = []
        if offset := header["e_shoff"]:
            size = header["e_shentsize"]
            (first,) = self._table("Elf_Shdr", offset, 1, size, "section headers")
            count = header["e_shnum"] or first["sh_size"]
            segments = first["sh_info"] if segments == EXTENDED else segments
            names = first["sh_link"] if names == EXTENDED else names
            rows = self._table("Elf_Shdr", offset, count, size, "section headers")
            headers = [
                _SectionHeader(
                    row["sh_name"],
                    str(row["sh_type"]),
                    row["sh_flags"],
                    row["sh_addr"],
                    row["sh_offset"],
                    row["sh_size"],
                    row["sh_link"],
                )
                for row in rows
            ]
        loads = list(
            self._table(
                "Elf_Phdr", header["e_phoff"], segments, header["e_phentsize"], "program headers"
            )
        )
        strings = self._stored(headers[names]) if names < len(headers) else b""
        attributes = (h for h in headers if h.kind == "SHT_ARM_ATTRIBUTES")
        loaded, overlaid = self._segments(loads)
        sections, overlays = self._sections(headers, strings, overlaid)
        return ElfFile(
            header["e_entry"],
            loaded,
            sections,
            self._symbols(headers),
            self._debug(headers, strings, entries=any(s.addr == 0 for s in loaded)),
            next((self._stored(h) for h in attributes), b""),
            self._unsettled(headers) | self._unsettled_by_loader(loads),
            overlays,
        )

    def _header(self) -> Row:
        data, path, layout = self._data, self._path, self._layouts.Elf_Ehdr
        if data[:4] != b"\x7fELF":
            raise InputError(
                f"{path} is not an ELF file", hint="give the linked kernel, kernel.elf"
            )
        if len(data) < layout.sizeof():
            raise InputError(f"{path} is truncated inside its ELF header")
        if data[4] != ELFCLASS32:
            raise InputError(f"{path} is not a 32-bit ELF", hint="ARMv4 to ARMv7-A is analysed")
        if data[5] != ELFDATA2LSB:
            raise InputError(f"{path} is big-endian", hint="only little-endian code is analysed")
        header = layout.parse(data[: layout.sizeof()])
        if header["e_machine"] != "EM_ARM":
            machine = str(header["e_machine"]).removeprefix("EM_")
            raise InputError(
                f"{path} is for machine {machine}, not ARM", hint="use the cross compiler"
            )
        kind = str(header["e_type"]).removeprefix("ET_")
        if kind == "REL":
            raise InputError(f"{path} is a relocatable object", hint="link it: give the executable")
        if kind not in ("EXEC", "DYN"):
            raise InputError(f"{path} has ELF type {kind}, neither executable nor shared object")
        return header

    def _table(self, layout: str, offset: int, count: int, size: int, what: str) -> Iterator[Row]:
        """``count`` rows at ``offset``, of ``size`` bytes each according to the file."""
        wanted = getattr(self._layouts, layout).sizeof()
        if count and size != wanted:
            raise InputError(f"{self._path}: {what} of {size} bytes each, not {wanted}")
        end = offset + count * size
        if count and end > len(self._data):
            raise InputError(f"{self._path} is truncated: {count} {what} at offset 0x{offset:x}")
        return self._rows(layout, self._data[offset:end] if count else b"", what)

    def _rows(self, layout: str, content: bytes, what: str) -> Iterator[Row]:
        """The rows of a table in order; an incomplete last row is left out."""
        row = getattr(self._layouts, layout)
        count = len(content) // row.sizeof()
        if count > MOST_ROWS:
            raise InputError(f"{self._path} has {count} {what}, more than {MOST_ROWS}")
        stream = BytesIO(content)
        return (row.parse_stream(stream) for _ in range(count))

    def _segments(
        self, rows: Iterable[Row]
    ) -> tuple[tuple[LoadSegment, ...], tuple[tuple[int, int], ...]]:
        """The segments at addresses that only one segment has, and the other addresses.

        Raises InputError where two overlap in memory too.
        """
        path, segments, stored = self._path, [], 0
        for row in rows:
            addr, size, in_file = row["p_vaddr"], row["p_memsz"], row["p_filesz"]
            if row["p_type"] != "PT_LOAD" or size == 0:
                continue
            if in_file > size or addr + size > WORD:
                raise InputError(
                    f"{path}: segment at 0x{addr:08x} has 0x{in_file:x} bytes stored of 0x{size:x}"
                )
            end = row["p_offset"] + in_file
            if end > len(self._data):
                raise InputError(f"{path} is truncated inside the segment at 0x{addr:08x}")
            stored += in_file
            if stored > len(self._data):
                raise InputError(f"{path}: segments overlap in the file")
            segments.append(
                LoadSegment(
                    addr,
                    row["p_paddr"],
                    size,
                    self._data[row["p_offset"] : end],
                    bool(row["p_flags"] & SEGMENT_W),
                    bool(row["p_flags"] & SEGMENT_X),
                )
            )
        if not segments:
            raise InputError(f"{path} has no loadable segments", hint="link it into an executable")
        together = _together(segments)
        for same in together:
            for low, high in pairwise(sorted(same, key=lambda s: s.physical)):
                if low.physical + low.size > high.physical:
                    addr = max(low.addr, high.addr)
                    raise InputError(f"{path}: segments overlap at 0x{addr:08x}")
        overlaid = (same for same in together if len(same) > 1)
        spans = ((same[0].addr, max(s.addr + s.size for s in same)) for same in overlaid)
        return tuple(same[0] for same in together if len(same) == 1), tuple(spans)

    def _sections(
        self, headers: list[_SectionHeader], names: bytes, overlaid: tuple[tuple[int, int], ...]
    ) -> tuple[tuple[Section, ...], tuple[OverlayRange, ...]]:
        """Loaded sections by address, and overlays.

        Zero-initialised thread storage takes no address.
        """
        sections = [
            Section(
                _name(names, h.name),
                h.addr,
                h.size,
                bool(h.flags & SECTION_WRITE),
                bool(h.flags & SECTION_EXEC),
                h.kind in STORED,
            )
            for h in headers
            if h.flags & SECTION_ALLOC
            and h.size
            and not (h.flags & SECTION_TLS and h.kind == "SHT_NOBITS")
        ]
        overlays = tuple(
            OverlayRange(start, end, tuple(s.name for s in sections if start <= s.addr < end))
            for start, end in overlaid
        )
        loaded = [s for s in sections if not any(o.start <= s.addr < o.end for o in overlays)]
        loaded.sort(key=lambda s: s.addr)
        for low, high in pairwise(loaded):
            if low.addr + low.size > high.addr:
                raise InputError(
                    f"{self._path}: sections {low.name} and {high.name} overlap at "
                    f"0x{high.addr:08x}"
                )
        return tuple(loaded), overlays

    def _symbols(self, headers: list[_SectionHeader]) -> tuple[RawSymbol, ...]:
        """The full symbol table, or the dynamic one of a stripped file."""
        for wanted in ("SHT_SYMTAB", "SHT_DYNSYM"):
            table = next((h for h in headers if h.kind == wanted), None)
            if table is None:
                continue
            if table.link >= len(headers):
                raise InputError(f"{self._path}: the symbol table has no string table")
            names = self._stored(headers[table.link])
            return tuple(
                RawSymbol(
                    _name(names, row["st_name"]),
                    row["st_value"],
                    row["st_size"],
                    str(row["st_info"]["type"]),
                    str(row["st_info"]["bind"]),
                    isinstance(row["st_shndx"], int) and row["st_shndx"] < RESERVED_SECTIONS,
                )
                for row in self._rows("Elf_Sym", self._stored(table), "symbols")
            )
        return ()

    def _unsettled(self, headers: list[_SectionHeader]) -> frozenset[int]:
        return frozenset(
            offset
            for h in headers
            if h.kind in RELOCATIONS and h.flags & SECTION_ALLOC
            for offset in self._relocated(RELOCATIONS[h.kind], self._stored(h))
        )

    def _unsettled_by_loader(self, rows: list[Row]) -> frozenset[int]:
        """The relocations that a loader finds by PT_DYNAMIC, with or without section headers."""
        found: set[int] = set()
        for row in rows:
            if row["p_type"] != "PT_DYNAMIC":
                continue
            start, size = row["p_offset"], row["p_filesz"]
            if start + size > len(self._data):
                raise InputError(f"{self._path} is truncated inside its dynamic section")
            entries = self._rows("Elf_Dyn", self._data[start : start + size], "dynamic entries")
            try:
                tables = relocation_tables((str(e["d_tag"]), e["d_val"]) for e in entries)
            except BadDynamicSection as fault:
                raise InputError(
                    f"{self._path}: dynamic section at offset 0x{start:x}: {fault}",
                    hint="link the kernel without dynamic relocations, or repair the file",
                ) from fault
            for table in tables:
                content = self._loaded(rows, table.addr, table.size)
                if table.layout != "Elf_Relr":  # all of them relative to the stored word
                    found.update(self._relocated(table.layout, content))
        return frozenset(found)

    def _relocated(self, layout: str, content: bytes) -> Iterator[int]:
        """Addresses of the words that a table of relocations changes."""
        for row in self._rows(layout, content, "relocations"):
            if layout == "Elf_Rela" or row["r_info_type"] != RELATIVE:
                yield row["r_offset"]

    def _loaded(self, rows: list[Row], addr: int, size: int) -> bytes:
        """The bytes of loaded memory in the file. Raises InputError if not all."""
        for row in rows:
            start = addr - row["p_vaddr"]
            if row["p_type"] == "PT_LOAD" and start >= 0 and start + size <= row["p_filesz"]:
                start += row["p_offset"]
                return self._data[start : start + size]
        if not size:
            return b""
        raise InputError(
            f"{self._path}: the dynamic section names 0x{size:x} bytes of relocations at "
            f"0x{addr:08x}, where none are loaded"
        )

    def _debug(
        self, headers: list[_SectionHeader], names: bytes, *, entries: bool
    ) -> DebugSections:
        """Debug sections; one outside the file, or not decompressible, counts as absent.

        ``entries``: also the sections of entries, if they are long: functions at 0 need them.
        """
        named = [(h, _name(names, h.name)) for h in headers]
        long = sum(h.size for h, name in named if name.removeprefix(DEBUG) in ENTRY_SECTIONS)
        entries = entries or long <= SHORT_ENTRIES
        wanted = LINE_SECTIONS + (ENTRY_SECTIONS + PLACE_SECTIONS if entries else ())
        found: dict[str, bytes] = {}
        for h, full in named:
            name = full.removeprefix(DEBUG)
            if full.startswith(DEBUG) and name in wanted:
                raw = self._data[h.offset : h.offset + h.size]
                found[name] = _inflate(raw) if h.flags & SECTION_COMPRESSED else raw
        every = LINE_SECTIONS + ENTRY_SECTIONS + PLACE_SECTIONS
        return DebugSections(*(found.get(name, b"") for name in every))

    def _stored(self, header: _SectionHeader) -> bytes:
        """The bytes of a section in the file."""
        if header.kind == "SHT_NOBITS":
            return b""
        start, size = header.offset, header.size
        if start + size > len(self._data):
            raise InputError(f"{self._path} is truncated inside the section at offset 0x{start:x}")
        return self._data[start : start + size]


def _together(segments: list[LoadSegment]) -> list[list[LoadSegment]]:
    """The segments by address, overlapping ones in one list."""
    found: list[list[LoadSegment]] = []
    end = 0
    for segment in sorted(segments, key=lambda s: s.addr):
        if found and segment.addr < end:
            found[-1].append(segment)
        else:
            found.append([segment])
        end = max(end, segment.addr + segment.size)
    return found


def _name(names: bytes, offset: int) -> str:
    """The string at ``offset`` of a string table; overlong names are cut."""
    end = names.find(b"\0", offset, offset + LONGEST_NAME)
    text = names[offset : end if end >= 0 else offset + LONGEST_NAME].decode("utf-8", "replace")
    return printable(text)


def _inflate(raw: bytes) -> bytes:
    """Undo SHF_COMPRESSED with ELFCOMPRESS_ZLIB, without trusting the size in the header."""
    if len(raw) < 12 or int.from_bytes(raw[:4], "little") != 1:
        return b""
    try:
        return zlib.decompressobj().decompress(raw[12:], LARGEST_DEBUG)
    except zlib.error:
        return b""
