"""Functions in ``.debug_info``: name, address, and size (DWARF 5 standard, sections 3.3 and 7.5).

Only units of a given line table are read. It is queried only if code and lines of discarded
functions both start at address 0 (``quoll.image.dead_code``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quoll.image.byte_stream import EndOfBytes
from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_entries import (
    HIGH_PC,
    LOW_PC,
    UNIT_REFERENCES,
    Attributes,
    DebugEntry,
    DebugUnit,
    code_range,
    text_of,
    units,
)

__all__ = ["DebugFunction", "functions_of_units"]

SUBPROGRAM = 0x2E  # DW_TAG
NAME, STMT_LIST, ABSTRACT_ORIGIN, SPECIFICATION = 0x03, 0x10, 0x31, 0x47
LINKAGE_NAME, MIPS_LINKAGE_NAME = 0x6E, 0x2007  # DW_AT
WANTED = frozenset((NAME, STMT_LIST, LOW_PC, HIGH_PC, ABSTRACT_ORIGIN, SPECIFICATION, LINKAGE_NAME,
                    MIPS_LINKAGE_NAME))  # fmt: skip
DEEPEST = 8  # longest chain of referenced declarations


@dataclass(frozen=True, slots=True)
class DebugFunction:
    """A function with all of its names, and its range of bytes."""

    names: frozenset[str]
    addr: int
    size: int


def functions_of_units(
    debug: DebugSections, programs: frozenset[int]
) -> dict[int, tuple[DebugFunction, ...]]:
    """The functions of the units whose line programs start at ``programs`` in ``.debug_line``.

    Units without entries, and units that violate the standard, are left out.
    """
    found: dict[int, tuple[DebugFunction, ...]] = {}
    for unit, entries in units(debug, WANTED):
        program = unit.root.get(STMT_LIST, (0, ""))[1]
        if isinstance(program, int) and program in programs:
            try:
                found[program] = tuple(_functions(debug, unit, list(entries)))
            except EndOfBytes:
                continue
    return found


def _functions(
    debug: DebugSections, unit: DebugUnit, entries: list[DebugEntry]
) -> Iterator[DebugFunction]:
    by_offset = {entry.offset: entry.attributes for entry in entries}
    for entry in entries:
        attributes = entry.attributes
        code = code_range(debug, unit, attributes) if entry.tag == SUBPROGRAM else None
        if code is None:
            continue
        low, high = code
        names = _names(debug, unit, attributes, by_offset)
        yield DebugFunction(frozenset(names), low, high - low)


def _names(
    debug: DebugSections, unit: DebugUnit, attributes: Attributes, entries: Mapping[int, Attributes]
) -> Iterator[str]:
    """The names in the entry, and in the declarations that it completes."""
    for _ in range(DEEPEST):
        for name in (NAME, LINKAGE_NAME, MIPS_LINKAGE_NAME):
            text = text_of(debug, unit, attributes[name]) if name in attributes else None
            if text:
                yield text
        form, to = attributes.get(ABSTRACT_ORIGIN, attributes.get(SPECIFICATION, (0, "")))
        if not isinstance(to, int):
            return
        to -= 0 if form in UNIT_REFERENCES else unit.start
        if to not in entries:
            return
        attributes = entries[to]
