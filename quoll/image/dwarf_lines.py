"""The DWARF line table: from addresses to source lines, and back.

Decodes ``.debug_line`` of DWARF 2 to 5 (DWARF 5 standard, section 6.2) without reading any other
unit, in one pass over the bytes, because kernels have millions of rows. Of several rows at one
address the last one counts: the others cover no instruction.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from posixpath import basename, normpath

from quoll.image.byte_stream import ByteStream, EndOfBytes
from quoll.image.dead_code import HIGHEST_TOMBSTONE, LineSequence, live_sequences
from quoll.image.debug_sections import DebugSections
from quoll.image.memory_map import Span
from quoll.image.symbols import SymbolTable

__all__ = ["LineTable", "SourceLine", "decode_lines"]

WORD = 1 << 32
NO_FILE = 0xFFFFFFFF  # the gap after a sequence

# DW_LNS, DW_LNE and DW_LNCT codes and forms (DWARF 5, 7.22 and 7.5.6).
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN, NEGATE_STMT, BASIC_BLOCK = range(1, 8)
CONST_ADD_PC, FIXED_ADVANCE_PC = 8, 9
END_SEQUENCE, SET_ADDRESS = 1, 2
PATH, DIRECTORY_INDEX = 1, 2
FORM_BLOCK2, FORM_BLOCK4, FORM_DATA2, FORM_DATA4, FORM_DATA8 = 0x03, 0x04, 0x05, 0x06, 0x07
FORM_STRING, FORM_BLOCK, FORM_BLOCK1, FORM_DATA1 = 0x08, 0x09, 0x0A, 0x0B
FORM_STRP, FORM_UDATA, FORM_DATA16, FORM_LINE_STRP = 0x0E, 0x0F, 0x1E, 0x1F


class BadLineTable(Exception):
    """A unit that violates the standard."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line (from 1) of a source file, named by the path the compiler recorded."""

    path: str
    line: int

    @property
    def file(self) -> str:
        """The last component of the path."""
        return basename(self.path)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class LineTable:
    """Ranges of addresses: range ``i`` runs from ``starts[i]`` to ``starts[i + 1]``.

    ``problem`` is the reason why part of the table is unreadable, "" if all of it was read.
    """

    starts: array[int]
    files: array[int]  # index into paths, NO_FILE for a gap
    lines: array[int]
    paths: tuple[str, ...]
    problem: str

    def line(self, addr: int) -> SourceLine | None:
        """The source line of the instruction at ``addr``."""
        at = bisect_right(self.starts, addr) - 1
        if at < 0 or self.files[at] == NO_FILE or self.lines[at] == 0:
            return None
        return SourceLine(self.paths[self.files[at]], self.lines[at])

    def paths_named(self, name: str) -> tuple[str, ...]:
        """The recorded paths that are ``name`` or end in ``/name``."""
        return tuple(p for p in self.paths if p == name or p.endswith("/" + name))

    def addresses(self, path: str, line: int) -> tuple[int, ...]:
        """Start of every range of ``line`` in the file recorded as ``path``, ascending."""
        return tuple(low for low, _ in self.spans(path, line, line))

    def spans(self, path: str, first: int, last: int) -> tuple[Span, ...]:
        """Every range of the lines from ``first`` to ``last`` of a file, ascending."""
        if path not in self.paths:
            return ()
        file, first = self.paths.index(path), max(first, 1)
        rows = zip(self.starts, self.starts[1:], self.lines, self.files, strict=False)
        return tuple(
            (start, end - 1)
            for start, end, line, at in rows
            if first <= line <= last and at == file
        )

    def lines_with_code(self, path: str) -> tuple[int, ...]:
        """The lines of the file recorded as ``path`` that have instructions, ascending."""
        if path not in self.paths:
            return ()
        file = self.paths.index(path)
        return tuple(sorted({n for n, f in zip(self.lines, self.files, strict=True) if f == file}))


@dataclass(frozen=True, slots=True)
class LineProgramHeader:
    """The header of a line-number program (DWARF 5, 6.2.4)."""

    min_length: int
    line_base: int
    line_range: int
    opcode_base: int
    operands: bytes  # per standard opcode
    files: list[int]  # file number of the program -> index of the path


def decode_lines(
    debug: DebugSections, is_code: Callable[[int], bool], symbols: SymbolTable
) -> LineTable:
    """All line programs in ``debug``, except for functions that the linker discarded.

    A damaged unit ends the decoding and is named in ``problem``.
    """
    paths: dict[str, int] = {}
    sequences: list[LineSequence] = []
    problem = ""
    stream = ByteStream(debug.line)
    while stream.left and not problem:
        start = stream.pos
        try:
            length = stream.u32()
            offset_size = 4
            if length == NO_FILE:
                length, offset_size = stream.u64(), 8
            unit_bytes = ByteStream(stream.take(length))
            unit = _unit(unit_bytes, offset_size, debug, paths)
            _run(unit, unit_bytes, start, sequences)
        except (EndOfBytes, BadLineTable) as fault:
            problem = f".debug_line+0x{start:x}: {fault}"
    linked = [s for s in sequences if is_code(s.addrs[0])]
    return _table(live_sequences(linked, symbols, debug), tuple(paths), problem)


def _unit(
    stream: ByteStream, offset_size: int, debug: DebugSections, paths: dict[str, int]
) -> LineProgramHeader:
    version = stream.u16()
    if not 2 <= version <= 5:
        raise BadLineTable(f"DWARF version {version} is not 2 to 5")
    if version >= 5:
        stream.take(2)  # address size, segment selector size
    header_length = stream.u32() if offset_size == 4 else stream.u64()
    program = stream.pos + header_length
    min_length = stream.u8()
    if version >= 4 and stream.u8() != 1:
        raise BadLineTable("VLIW line programs are not used on ARM")
    stream.take(1)  # default_is_stmt
    line_base = stream.i8()
    line_range = stream.u8()
    if line_range == 0:
        raise BadLineTable("line_range is 0")
    opcode_base = stream.u8()
    operands = stream.take(max(opcode_base - 1, 0))
    names = _names_v5(stream, offset_size, debug) if version >= 5 else _names_v4(stream)
    files = [paths.setdefault(name, len(paths)) for name in names]
    stream.skip_to(program)
    return LineProgramHeader(min_length, line_base, line_range, opcode_base, operands, files)


def _names_v4(stream: ByteStream) -> list[str]:
    """The file names before DWARF 5, with a placeholder for file 0, which does not exist.

    Directory 0 is the compilation directory, which is not recorded.
    """
    directories = [""]
    while text := stream.text():
        directories.append(text)
    names = ["?"]
    while text := stream.text():
        names.append(_join(directories, stream.uleb(), text))
        stream.uleb()  # time
        stream.uleb()  # length
    return names


def _names_v5(stream: ByteStream, offset_size: int, debug: DebugSections) -> list[str]:
    directories = [name for name, _ in _entries(stream, offset_size, debug)]
    return [
        _join(directories, directory, name)
        for name, directory in _entries(stream, offset_size, debug)
    ]


def _entries(stream: ByteStream, offset_size: int, debug: DebugSections) -> list[tuple[str, int]]:
    formats = [(stream.uleb(), stream.uleb()) for _ in range(stream.u8())]
    count = stream.uleb()
    if count and (not formats or count > stream.left):
        raise BadLineTable(f"{count} file names in {stream.left} bytes")
    entries = []
    for _ in range(count):
        name, directory = "?", 0
        for content, form in formats:
            value = _form(stream, form, offset_size, debug)
            if content == PATH and isinstance(value, str):
                name = value
            elif content == DIRECTORY_INDEX and isinstance(value, int):
                directory = value
        entries.append((name, directory))
    return entries


def _form(stream: ByteStream, form: int, offset_size: int, debug: DebugSections) -> str | int:
    sizes = {FORM_DATA1: 1, FORM_DATA2: 2, FORM_DATA4: 4, FORM_DATA8: 8, FORM_DATA16: 16}
    blocks = {FORM_BLOCK1: 1, FORM_BLOCK2: 2, FORM_BLOCK4: 4}
    if form in sizes:
        return stream.unsigned(sizes[form])
    if form == FORM_STRING:
        return stream.text()
    if form in (FORM_STRP, FORM_LINE_STRP):
        pool = debug.line_str if form == FORM_LINE_STRP else debug.str
        return ByteStream(pool, stream.unsigned(offset_size)).text()
    if form == FORM_UDATA:
        return stream.uleb()
    if form in blocks:
        stream.take(stream.unsigned(blocks[form]))
        return 0
    if form == FORM_BLOCK:
        stream.take(stream.uleb())
        return 0
    raise BadLineTable(f"form 0x{form:x} in a file name")


def _join(directories: list[str], index: int, name: str) -> str:
    if index >= len(directories):
        raise BadLineTable(f"directory {index} of {len(directories)}")
    return normpath(f"{directories[index]}/{name}") if directories[index] else name


def _run(
    unit: LineProgramHeader, stream: ByteStream, program: int, sequences: list[LineSequence]
) -> None:
    """Execute the program of ``unit`` (DWARF 5, 6.2.5), appending finished sequences.

    A kernel has ten million opcodes, so the frequent ones are read without ``stream``.
    """
    addr, file, line = 0, 1, 1
    rows = LineSequence(array("I"), array("I"), array("I"), program)
    base = unit.opcode_base
    special = _special_opcodes(base, unit.min_length, unit.line_base, unit.line_range)
    data, pos, end = stream.data, stream.pos, len(stream.data)
    while pos < end:
        opcode = data[pos]
        pos += 1
        if opcode >= base or opcode == COPY:
            if opcode >= base:
                step, delta = special[opcode - base]
                addr = (addr + step) % WORD
                line += delta
            if not 0 <= file < len(unit.files) or not 0 <= line < WORD:
                raise BadLineTable(f"row of file {file}, line {line}")
            rows.addrs.append(addr)
            rows.files.append(unit.files[file])
            rows.lines.append(line)
        elif opcode == ADVANCE_LINE and pos < end and data[pos] < 0x80:
            line += data[pos] if data[pos] < 0x40 else data[pos] - 0x80
            pos += 1
        elif opcode in (SET_COLUMN, NEGATE_STMT, BASIC_BLOCK) or opcode > FIXED_ADVANCE_PC:
            for _ in range(unit.operands[opcode - 1]):
                while pos < end and data[pos] >= 0x80:
                    pos += 1
                pos += 1
        elif opcode == CONST_ADD_PC:
            addr = (addr + special[-1][0]) % WORD
        else:
            stream.pos = pos
            if opcode == ADVANCE_PC:
                addr = (addr + stream.uleb() * unit.min_length) % WORD
            elif opcode == ADVANCE_LINE:
                line += stream.sleb()
            elif opcode == SET_FILE:
                file = stream.uleb()
            elif opcode == FIXED_ADVANCE_PC:
                addr = (addr + stream.u16()) % WORD
            else:
                extended = ByteStream(stream.take(stream.uleb()))
                kind = extended.u8()
                if kind == SET_ADDRESS:
                    addr = extended.unsigned(4)
                elif kind == END_SEQUENCE:
                    if not rows.addrs or rows.addrs[0] < HIGHEST_TOMBSTONE:
                        sequences.append(_ended(rows, addr))
                    rows = LineSequence(array("I"), array("I"), array("I"), program)
                    addr, file, line = 0, 1, 1
            pos = stream.pos
    stream.skip_to(pos)


@cache
def _special_opcodes(
    base: int, min_length: int, line_base: int, line_range: int
) -> tuple[tuple[int, int], ...]:
    """The address and line increments of each special opcode, from ``base`` to 255."""
    found = (divmod(opcode, line_range) for opcode in range(256 - base))
    return tuple((step * min_length, line_base + delta) for step, delta in found)


def _ended(rows: LineSequence, addr: int) -> LineSequence:
    """``rows`` with an end row at ``addr``; raises BadLineTable if the addresses descend."""
    rows.addrs.append(addr)
    rows.files.append(NO_FILE)
    rows.lines.append(0)
    if any(a > b for a, b in pairwise(rows.addrs)):
        raise BadLineTable(f"addresses of the sequence that ends at 0x{addr:x} descend")
    return rows


def _same(a: LineSequence, b: LineSequence) -> bool:
    """Whether two units have the same rows: a header's function that was linked once."""
    return (a.addrs, a.files, a.lines) == (b.addrs, b.files, b.lines)


def _table(sequences: list[LineSequence], paths: tuple[str, ...], problem: str) -> LineTable:
    """Merge sequences by address; of two that overlap and differ, neither is used."""
    starts, files, lines = array("I"), array("I"), array("I")
    ordered = sorted(sequences, key=lambda s: (s.addrs[0], s.addrs[-1]))
    ordered = [s for s in ordered if s.addrs[0] < s.addrs[-1]]
    ordered = [s for i, s in enumerate(ordered) if not i or not _same(s, ordered[i - 1])]
    reached = 0
    for i, sequence in enumerate(ordered):
        overlaps = sequence.addrs[0] < reached or (
            i + 1 < len(ordered) and ordered[i + 1].addrs[0] < sequence.addrs[-1]
        )
        reached = max(reached, sequence.addrs[-1])
        if overlaps:
            continue
        if starts and starts[-1] == sequence.addrs[0]:
            for column in (starts, files, lines):
                column.pop()
        last = len(sequence.addrs) - 1
        for at, addr in enumerate(sequence.addrs):
            if at == last or sequence.addrs[at + 1] != addr:
                starts.append(addr)
                files.append(sequence.files[at])
                lines.append(sequence.lines[at])
    return LineTable(starts, files, lines, paths, problem)
