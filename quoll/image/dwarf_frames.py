"""Places of variables in frames, as distances from a register or from the frame address.

GCC counts them from the canonical frame address (CFA), which ``.debug_frame`` places above a
register at each instruction; Clang counts them from a register.

Source: DWARF 5, 2.5.1.2 (registers), 3.3.5 (frame base) and 6.4 (call frames).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.dwarf.callframe import FDE, CallFrameInfo
from elftools.dwarf.structs import DWARFStructs

from quoll.image.byte_stream import ByteStream, EndOfBytes

__all__ = ["CallFrames", "FrameSlot", "slot_of"]

# Of pyelftools for damaged sections, of which nothing is known then.
DAMAGED = (
    ELFError, DWARFError, ConstructError, ArithmeticError, AssertionError, AttributeError,
    LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
BASED, FRAME_BASED, FRAME_ADDRESS, REGISTER, REGISTERS = 0x70, 0x91, 0x9C, 0x50, 16  # DW_OP


class FrameSlot(NamedTuple):
    """The place ``offset`` bytes above ``register``; None: above the CFA."""

    register: int | None
    offset: int


def slot_of(location: bytes, frame_base: bytes) -> FrameSlot | None:
    """The place that a location is; None if it is no constant distance.

    ``frame_base``: the expression of the function's frame base; empty if there is none.
    """
    stream = ByteStream(location)
    try:
        operation, offset = stream.u8(), stream.sleb()
    except EndOfBytes:
        return None
    if stream.left:
        return None
    if 0 <= operation - BASED < REGISTERS:
        return FrameSlot(operation - BASED, offset)
    if operation != FRAME_BASED or len(frame_base) != 1:
        return None
    if frame_base[0] == FRAME_ADDRESS:
        return FrameSlot(None, offset)
    register = frame_base[0] - REGISTER
    return FrameSlot(register, offset) if 0 <= register < REGISTERS else None


class CallFrames:
    """The frame addresses of functions, from the section ``.debug_frame``."""

    def __init__(self, section: bytes) -> None:
        self._section = section

    def frame_address(self, addr: int) -> FrameSlot | None:
        """The CFA before the instruction at ``addr``; None if it is not known."""
        found = None
        for low, high, entry in self._entries:
            if low <= addr < high:
                for at, slot in _rows(entry):
                    if at <= addr:
                        found = slot
        return found

    @cached_property
    def _entries(self) -> list[tuple[int, int, FDE]]:
        """The range of each function, with its entry; none of a damaged section."""
        structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=4)
        frames = CallFrameInfo(io.BytesIO(self._section), len(self._section), 0, structs)
        try:
            entries = [entry for entry in frames.get_entries() if isinstance(entry, FDE)]
            return [
                (low, low + entry["address_range"], entry)
                for entry in entries
                for low in [entry["initial_location"]]
            ]
        except DAMAGED:
            return []


def _rows(entry: FDE) -> Iterator[tuple[int, FrameSlot | None]]:
    """From each address on the CFA, in ascending order."""
    try:
        rows: list[dict[str, Any]] = entry.get_decoded().table
    except DAMAGED:
        return
    for row in rows:
        cfa = row["cfa"]
        known = cfa is not None and cfa.reg is not None
        yield row["pc"], FrameSlot(cfa.reg, cfa.offset) if known else None
