"""The DWARF sections of a file, as bytes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DebugSections"]


@dataclass(frozen=True, slots=True)
class DebugSections:
    """The sections of lines, entries, locations and call frames; empty where absent."""

    line: bytes = b""
    line_str: bytes = b""
    str: bytes = b""
    info: bytes = b""
    abbrev: bytes = b""
    addr: bytes = b""
    str_offsets: bytes = b""
    loc: bytes = b""
    loclists: bytes = b""
    frame: bytes = b""
