"""An ELF file (plus raw memory) for the analyses: bytes, symbols, code and source lines.

    image = Image.load("kernel.elf")
    image.read(0xF0010000, 4)        bytes, or None where nothing is loaded
    image.constant(0xF0010000, 4)    little-endian value if the section is not writable, else None
    image.symbol("schedule")         Symbol, or None
    image.place(0xF0010010)          '0xf0010010 <schedule+0x10> sched.c:41'

Addresses are the virtual ones the code runs at.
"""

from __future__ import annotations

import copy
import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from quoll.errors import InputError
from quoll.image.attributes import BuildAttributes, parse_attributes
from quoll.image.cache_words import CacheWords
from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_folders import compiler_folders
from quoll.image.dwarf_lines import LineTable, SourceLine, decode_lines
from quoll.image.dwarf_types import DebugTypes
from quoll.image.elf import LARGEST_FILE, WORD, ElfFile, LoadSegment, RawSymbol, Section, parse_elf
from quoll.image.memory_map import NO_MAP, MemoryMap, Span
from quoll.image.symbols import Symbol, SymbolTable, symbol_table
from quoll.input_files import Unreadable, read_input
from quoll.processes.futures import Future, submit
from quoll.results.cache_key import key_of

__all__ = ["Image", "RawMemory", "SourceLine", "Symbol"]

NO_PATH = {"quoll.image.image.RawMemory": {"path": "the bytes are walked, wherever they stood"}}
# Attributes outside the identity of an image, because ``sha256`` determines them.
LATEST = 7  # version of the architecture
DERIVED = frozenset((
    "entry", "symbols", "attributes", "segments", "sections", "lines", "types", "_debug", "_future",
    "_unsettled", "_code", "_dumped", "_segment_addrs", "_section_addrs", "_overlays",
))  # fmt: skip
LONG = 1 << 20  # bytes of a line table that justify another process


@dataclass(frozen=True, slots=True)
class RawMemory:
    """Bytes dumped from a running system: they replace the ELF's bytes at ``addr``."""

    addr: int
    path: str
    writable: bool = True
    executable: bool = True


class Image:
    """Loaded memory, from one ELF file and any number of raw dumps over it."""

    def __init__(
        self, elf: ElfFile, sha256: str, raw: tuple[tuple[RawMemory, bytes], ...] = ()
    ) -> None:
        self.sha256 = sha256  # of the file, with all dumps and added symbols, if any
        self.entry = elf.entry  # bit 0 set for Thumb code
        self.symbols: SymbolTable = symbol_table(elf.symbols)
        self.attributes: BuildAttributes = parse_attributes(elf.attributes)
        self.segments: tuple[LoadSegment, ...] = _overlay(elf.segments, raw)
        self.sections: tuple[Section, ...] = elf.sections
        self._debug: DebugSections = elf.debug
        self._future: Future[LineTable] | None = None
        self._unsettled = elf.unsettled
        self._overlays = elf.overlays
        self._code: dict[int, bytes] = {}  # by start
        self._dumped = tuple((r.addr, r.addr + len(data)) for r, data in raw)
        self._listed: frozenset[int] = frozenset()  # addresses of names without an instruction set
        self.memory: MemoryMap = NO_MAP
        self.version = LATEST
        self.cache_words: CacheWords | None = None
        self._fixed: tuple[Span, ...] = ()
        self._changing: frozenset[Span] = frozenset()
        self._as_loaded: tuple[Span, ...] = ()
        self._retranslated = False
        self._disturbed: frozenset[Span] = frozenset()
        self._own: tuple[tuple[Span, str], ...] = ()
        self._own_stores: tuple[tuple[int, int], ...] = ()
        self._segment_addrs = [s.addr for s in self.segments]
        self._section_addrs = [s.addr for s in self.sections]

    @classmethod
    def load(
        cls, path: str | Path, raw: tuple[RawMemory, ...] = (), symbols: tuple[RawSymbol, ...] = ()
    ) -> Image:
        """Read the ELF at ``path``, with ``symbols`` added to its own.

        Raises InputError naming the file and the defect.
        """
        data = _file_bytes(path)
        digest = hashlib.sha256(data).hexdigest()
        dumps = tuple((r, _file_bytes(r.path)) for r in raw)
        for dump, content in dumps:
            if not content or dump.addr + len(content) > WORD:
                raise InputError(f"{dump.path}: {len(content)} bytes do not fit at 0x{dump.addr:x}")
        if dumps or symbols:
            digest = key_of("image", digest, dumps, symbols, left_out=NO_PATH)
        elf = parse_elf(data, str(path))
        elf = replace(elf, symbols=(*elf.symbols, *symbols))
        image = cls(elf, digest, dumps)
        image._listed = frozenset(symbol.value for symbol in symbols)
        return image

    @property
    def identity(self) -> tuple[object, ...]:
        """The identity of the image: its content, and all later assumptions."""
        return tuple(item for item in sorted(vars(self).items()) if item[0] not in DERIVED)

    @property
    def cpu(self) -> str | None:
        """Tag_CPU_name of the build attributes: ``ARM1136JF-S``, or ``6J`` from GCC 12."""
        return self.attributes.cpu

    @cached_property
    def lines(self) -> LineTable:
        """The DWARF line table, decoded on first use."""
        future, self._future = self._future, None
        return future.result() if future else self._decoded_lines()

    @cached_property
    def types(self) -> DebugTypes:
        """The types of functions and variables, decoded on first use."""
        return DebugTypes(self._debug, self.symbols)

    @cached_property
    def compiler_folders(self) -> tuple[str, ...]:
        """The folders in which the compiler ran, by the debug information."""
        return compiler_folders(self._debug)

    def _decoded_lines(self) -> LineTable:
        return decode_lines(self._debug, self.is_executable, self.symbols)

    def begin_lines(self) -> None:
        """Decode a long line table in another process, in parallel with this one."""
        waits = len(self._debug.line) >= LONG and self._future is None
        if waits and "lines" not in self.__dict__:
            self._future = submit(self._decoded_lines)

    def settle_lines(self) -> None:
        """Wait for the line table of ``begin_lines``, so that forked processes need not."""
        if self._future:
            _ = self.lines

    def read(self, addr: int, count: int) -> bytes | None:
        """``count`` bytes at ``addr`` as they are after loading; None outside of loaded memory."""
        chunks: list[bytes] = []
        while count > 0:
            segment = self.segment_at(addr)
            if segment is None:
                return None
            start = addr - segment.addr
            take = min(count, segment.size - start)
            chunk = segment.data[start : start + take]
            chunks.append(chunk.ljust(take, b"\0"))
            addr, count = addr + take, count - take
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def holding(self, spans: Iterable[Span]) -> Image:
        """This image, assuming that no store changes the loaded contents of ``spans``."""
        fixed = copy.copy(self)
        fixed._fixed = (*self._fixed, *spans)
        return fixed

    def changing(self, spans: Iterable[Span]) -> Image:
        """This image, assuming that stores change ``spans``, even in read-only sections."""
        changed = copy.copy(self)
        changed._changing = self._changing | frozenset(spans)
        return changed

    def starting_with(self, spans: Iterable[Span]) -> Image:
        """This image on paths at whose start ``spans`` have their loaded contents.

        ``changing`` must name the spans that stores change: the caller examines the stores.
        """
        started = copy.copy(self)
        started._as_loaded = tuple(spans)
        return started

    def retranslated(self) -> Image:
        """This image in a program that changes translations (rule 44).

        The contents of memory without a fixed translation are unknown. Returns ``self`` if all
        loaded memory is fixed, or if no platform states fixed translations.
        """
        if self._retranslated or not self.memory.regions:
            return self
        if all(self.memory.fixes((s.addr, s.addr + s.size - 1)) for s in self.segments if s.size):
            return self
        changed = copy.copy(self)
        changed._retranslated = True
        return changed

    def disturbed(self, spans: Iterable[Span]) -> Image:
        """This image on paths between whose instructions other code may store to ``spans``.

        The contents there, by any alias, are unknown at every instruction.
        """
        changed = copy.copy(self)
        aliases = (one for span in spans for one in self.memory.physical_aliases(*span))
        changed._disturbed = self._disturbed | frozenset(aliases)
        return changed

    def is_disturbed(self, span: Span) -> bool:
        """Whether other code may store to a byte of ``span`` at any time."""
        return any(low <= span[1] and span[0] <= high for low, high in self._disturbed)

    def owning(self, objects: Mapping[Span, str], stores: Mapping[int, int]) -> Image:
        """This image, assuming that stores of unknown address do not hit ``objects`` (S8).

        ``stores``: the address of each instruction that stores to one of them.
        """
        changed = copy.copy(self)
        changed._own = tuple(sorted(objects.items()))
        changed._own_stores = tuple(sorted(stores.items()))
        return changed

    @property
    def own_stores(self) -> tuple[tuple[int, int], ...]:
        """The instructions that store to the objects of ``owning``, each with its address."""
        return self._own_stores

    @property
    def own_objects(self) -> tuple[tuple[Span, str], ...]:
        """The objects of ``owning``, by their first and last bytes, with their names."""
        return self._own

    @property
    def owns(self) -> bool:
        """Whether stores of unknown address are assumed to spare any object."""
        return bool(self._own)

    def own_object(self, addr: int, count: int) -> str:
        """The name of the object of ``owning`` that holds all these bytes; "" if there is none."""
        for (low, high), name in self._own:
            if low <= addr and addr + count - 1 <= high:
                return name
        return ""

    def is_constant_range(self, addr: int, count: int) -> bool:
        """Whether only stores of the path change these bytes, which name the same memory."""
        span = addr, addr + count - 1
        if self.is_disturbed(span):
            return False
        return not self._retranslated or self.memory.fixes(span)

    @property
    def as_loaded(self) -> tuple[Span, ...]:
        """The spans with their loaded contents when paths start."""
        return self._as_loaded

    def at_start(self, addr: int, count: int) -> int | None:
        """Little-endian value of ``count`` bytes when a path starts; None if unknown."""
        if not all(self._starts(addr + i) for i in range(count)):
            return None
        return self._settled(addr, count)

    def _starts(self, addr: int) -> bool:
        return self.is_constant_range(addr, 1) and any(
            low <= addr <= high for low, high in self._as_loaded
        )

    def loaded_in_place(self) -> tuple[Span, ...]:
        """The writable memory that a loader fills at its run-time address; all memory, if none is.

        Segments that are loaded elsewhere, for start-up code to copy, are excluded.
        """

        def in_place(segment: LoadSegment) -> bool:
            mapped = self.memory.physical(segment.addr)
            return segment.physical == (segment.addr if mapped is None else mapped)

        loaded = [s for s in self.segments if s.size]
        filled = [s for s in loaded if s.writable] or loaded
        return tuple((s.addr, s.addr + s.size - 1) for s in filled if in_place(s))

    def stored_in(self, span: Span) -> tuple[Span, ...]:
        """The subspans of ``span`` with bytes in the file or a dump."""
        spans = ((s.addr, s.addr + len(s.data) - 1) for s in self.segments if s.data)
        chunks = ((max(low, span[0]), min(high, span[1])) for low, high in spans)
        return tuple((low, high) for low, high in chunks if low <= high)

    def mapped(self, memory: MemoryMap, version: int = LATEST) -> Image:
        """This image in the memory of a platform, on a core of that architecture version."""
        changed = copy.copy(self)
        changed.memory, changed.version = memory, version
        return changed

    def identifying(self, words: CacheWords | None) -> Image:
        """This image on a core whose registers that identify caches read ``words``."""
        changed = copy.copy(self)
        changed.cache_words = words
        return changed

    def constant_as_loaded(self) -> tuple[Span, ...]:
        """The spans of ``as_loaded`` that no store changes."""
        spans = list(self._as_loaded)
        for low, high in self._changing:
            remainders = [
                end for a, b in spans for end in ((a, min(b, low - 1)), (max(a, high + 1), b))
            ]
            spans = list(dict.fromkeys((a, b) for a, b in remainders if a <= b))
        return tuple(sorted(spans))

    def changed_as_loaded(self) -> tuple[Span, ...]:
        """The spans of ``as_loaded`` that stores change."""
        chunks = (
            (max(a, low), min(b, high)) for a, b in self._as_loaded for low, high in self._changing
        )
        return tuple(sorted((low, high) for low, high in chunks if low <= high))

    def overwritten(self, span: Span) -> tuple[Span, ...]:
        """The bytes that ``constant`` treats as unchanged and a store to ``span`` hits, by any
        alias.
        """
        return tuple(
            (low, high)
            for low, high in self.memory.physical_aliases(*span)
            if any(self._constant_at(addr) for addr in range(low, high + 1))
        )

    def is_constant(self, span: Span) -> bool:
        """Whether ``constant`` treats every byte of ``span`` as unchanged."""
        return all(self._constant_at(addr) for addr in range(span[0], span[1] + 1))

    def home(self, addr: int, size: int) -> int:
        """The canonical alias of a word: an address in a section, if there is one."""
        names = self.memory.names(addr, size)
        if len(names) == 1:
            return addr
        return min(names, key=lambda name: (self.section_at(name) is None, name))

    def constant(self, addr: int, count: int) -> int | None:
        """Little-endian value of ``count`` bytes that no store changes (rules 1, S2), or None."""
        if any(not self._constant_at(addr + i) for i in range(count)):
            return None
        return self._settled(addr, count)

    def _settled(self, addr: int, count: int) -> int | None:
        """The bytes loaded there, unless the loader changes them."""
        if self.is_relocated(addr, count):
            return None
        content = self.read(addr, count)
        return None if content is None else int.from_bytes(content, "little")

    @property
    def is_relocatable(self) -> bool:
        """Whether a loader changes any word before the program runs."""
        return bool(self._unsettled)

    def is_relocated(self, addr: int, count: int) -> bool:
        """Whether a loader changes one of ``count`` bytes before the program runs."""
        if not self._unsettled:
            return False
        return not self._unsettled.isdisjoint(range(addr - 3, addr + count))

    def _constant_at(self, addr: int) -> bool:
        if any(low <= addr <= high for low, high in self._changing) or not self.is_constant_range(
            addr, 1
        ):
            return False
        segment = self.segment_at(addr)
        if segment is not None and any(low <= addr <= high for low, high in self._fixed):
            return True
        if self._as_loaded and segment is not None and self._starts(addr):
            return True
        if segment is None or addr - segment.addr >= len(segment.data):
            return False
        section = self.section_at(addr)
        if section is not None:
            return section.stored and not section.writable
        return not segment.writable

    def segment_at(self, addr: int) -> LoadSegment | None:
        """The segment that loads the byte at ``addr``, or None."""
        at = bisect_right(self._segment_addrs, addr) - 1
        if at < 0 or addr - self.segments[at].addr >= self.segments[at].size:
            return None
        return self.segments[at]

    def section_at(self, addr: int) -> Section | None:
        """The section holding ``addr``: None without section headers and in a raw dump."""
        at = bisect_right(self._section_addrs, addr) - 1
        if at < 0 or addr - self.sections[at].addr >= self.sections[at].size:
            return None
        if any(low <= addr < high for low, high in self._dumped):
            return None
        return self.sections[at]

    def overlaid(self, addr: int) -> str | None:
        """The overlay that makes the byte at ``addr`` unknown."""
        if self.segment_at(addr) is not None:
            return None
        names = (", ".join(o.sections) for o in self._overlays if o.start <= addr < o.end)
        return next((f"{text} overlay each other at {addr:#010x}" for text in names), None)

    def is_executable(self, addr: int) -> bool:
        """Whether the byte is in an executable section, or segment where there are none."""
        segment = self.segment_at(addr)
        if segment is None:
            return False
        section = self.section_at(addr)
        return segment.executable if section is None else section.executable

    def code_around(self, addr: int) -> tuple[int, bytes] | None:
        """The executable section or segment that holds ``addr``: its start and stored bytes."""
        segment = self.segment_at(addr)
        if segment is None or not self.is_executable(addr):
            return None
        section = self.section_at(addr)
        if section is None:
            return segment.addr, segment.data
        start = max(section.addr, segment.addr)
        if start not in self._code:
            end = section.addr + section.size
            self._code[start] = segment.data[start - segment.addr : end - segment.addr]
        return start, self._code[start]

    def symbol(self, name: str) -> Symbol | None:
        """The symbol of that name; a global one before local ones.

        Raises InputError if several local symbols have the name.
        """
        candidates = self._candidates(name)
        if len({(s.addr, s.thumb) for s in candidates}) > 1:
            places = ", ".join(map(self._with_file, candidates))
            raise InputError(f"several symbols are named {name}: {places}", hint="use an address")
        return candidates[-1] if candidates else None

    def only_symbol(self, name: str) -> Symbol | None:
        """As ``symbol``, but None if several local symbols have the name."""
        candidates = self._candidates(name)
        return candidates[-1] if len({(s.addr, s.thumb) for s in candidates}) == 1 else None

    def _candidates(self, name: str) -> list[Symbol]:
        named = self.symbols.named(name)
        return [s for s in named if not s.local] or list(named)

    def _with_file(self, symbol: Symbol) -> str:
        """The place of ``symbol``, with its source file if a table names it."""
        place = self.place(symbol.addr)
        known = symbol.file and self.line(symbol.addr) is None
        return f"{place} of {symbol.file}" if known else place

    def symbol_at(self, addr: int) -> tuple[Symbol, int] | None:
        """The symbol that covers ``addr`` and the offset into it."""
        symbol = self.symbols.covering(addr, self._floor(addr))
        return None if symbol is None else (symbol, addr - symbol.addr)

    def _floor(self, addr: int) -> int:
        """The lowest address from which a symbol may extend to ``addr``."""
        area = self.section_at(addr) or self.segment_at(addr)
        return area.addr if area else addr

    def line(self, addr: int) -> SourceLine | None:
        """The source line that the instruction at ``addr`` was compiled from."""
        return self.lines.line(addr)

    def addresses_of_line(self, file: str, line: int) -> tuple[int, ...]:
        """Start addresses of the code of ``line``, in every recorded file that matches ``file``."""
        paths = self.lines.paths_named(file)
        return tuple(sorted({a for p in paths for a in self.lines.addresses(p, line)}))

    def place(self, addr: int) -> str:
        """``addr`` as printed: ``0xf0010010 <schedule+0x10> sched.c:41``."""
        text = f"0x{addr:08x}"
        if found := self.symbol_at(addr):
            symbol, offset = found
            text += f" <{symbol.name}+0x{offset:x}>" if offset else f" <{symbol.name}>"
        line = self.line(addr)
        return f"{text} {line}" if line else text

    def thumb_at(self, addr: int) -> bool | None:
        """Instruction set at ``addr`` by mapping symbols, else by the symbol there, else None.

        An odd ELF entry counts too, where there is no symbol.
        """
        kind = self.symbols.mapping(addr, self._floor(addr))
        if kind in ("a", "t"):
            return kind == "t"
        functions = {s.thumb for s in self.symbols.at(addr) if s.kind == "func"}
        if not functions and self.entry == addr | 1:
            return True
        return functions.pop() if len(functions) == 1 else None

    def contradiction(self, addr: int, *, thumb: bool) -> str | None:
        """The evidence that code at ``addr`` has another instruction set, or None."""
        here = "ARM" if thumb else "Thumb"
        kind = self.symbols.mapping(addr, self._floor(addr))
        if kind in ("a", "t"):
            wrong = (kind == "t") != thumb
            return f"its mapping symbol ${kind} says that it is {here} code" if wrong else None
        functions = {s.thumb for s in self.symbols.at(addr) if s.kind == "func"}
        if functions == {not thumb} and addr not in self._listed:
            return f"its symbol says that it is {here} code"
        return None

    def is_marked_data(self, addr: int) -> bool:
        """Whether mapping symbols mark ``addr`` as data; control flow may contradict them."""
        return self.symbols.mapping(addr, self._floor(addr)) == "d"

    def is_function(self, word: int) -> bool:
        """Whether a function symbol starts at ``word``, whose bit 0 is set for Thumb code."""
        addr, thumb = word & ~1, bool(word & 1)
        if not self.is_executable(addr):
            return False
        labels = [s for s in self.symbols.at(addr) if s.kind != "object"]
        if any(s.kind == "func" for s in labels):
            return any(s.kind == "func" and s.thumb == thumb for s in labels)
        return (
            bool(labels) and self.thumb_at(addr) in (thumb, None) and not self.is_marked_data(addr)
        )


def _file_bytes(path: str | Path) -> bytes:
    try:
        return read_input(path, LARGEST_FILE)
    except Unreadable as fault:
        raise InputError(f"{path} {fault}") from fault


def _overlay(
    segments: tuple[LoadSegment, ...], raw: tuple[tuple[RawMemory, bytes], ...]
) -> tuple[LoadSegment, ...]:
    """``segments`` with each dump replacing its addresses, later dumps on top."""
    segments_now = list(segments)
    for dump, data in raw:
        low, high = dump.addr, dump.addr + len(data)
        segments_left = [
            segment
            for s in segments_now
            for segment in (_cut(s, 0, low), _cut(s, high, WORD))
            if segment
        ]
        segments_left.append(LoadSegment(low, low, len(data), data, dump.writable, dump.executable))
        segments_now = sorted(segments_left, key=lambda s: s.addr)
    return tuple(segments_now)


def _cut(segment: LoadSegment, low: int, high: int) -> LoadSegment | None:
    """The subrange of ``segment`` between two addresses."""
    start = max(segment.addr, low)
    end = min(segment.addr + segment.size, high)
    if start >= end:
        return None
    skip = start - segment.addr
    return LoadSegment(
        start,
        segment.physical + skip,
        end - start,
        segment.data[skip : end - segment.addr],
        segment.writable,
        segment.executable,
    )
