"""The DWARF sections of a file, as bytes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DebugSections"]


@dataclass(frozen=True, slots=True)
class DebugSections:
    """The sections of the line table and of entries; empty where absent."""

    line: bytes = b""
    line_str: bytes = b""
    str: bytes = b""
    info: bytes = b""
    abbrev: bytes = b""
    addr: bytes = b""
    str_offsets: bytes = b""
