"""The folders in which the compiler ran, from ``.debug_info`` (DWARF 5 standard, section 3.1.1)."""

from __future__ import annotations

from quoll.image.debug_sections import DebugSections
from quoll.image.dwarf_entries import text_of, units

__all__ = ["compiler_folders"]

COMP_DIR = 0x1B  # DW_AT


def compiler_folders(debug: DebugSections) -> tuple[str, ...]:
    """The folders that the units state, each once, in their order."""
    found = (
        text_of(debug, unit, unit.root[COMP_DIR])
        for unit, _ in units(debug, frozenset((COMP_DIR,)))
        if COMP_DIR in unit.root
    )
    return tuple(dict.fromkeys(folder for folder in found if folder))
