# SPDX-License-Identifier: BSD-2-Clause
"""Address spaces: mapping and unmapping of page tables and frames."""

from __future__ import annotations

from kernels.bilby.verification.spec.invocation import Invocation, Refused
from kernels.bilby.verification.spec.layout import API, LIMITS, WINDOW
from kernels.bilby.verification.spec.state import Cap, Table
from kernels.bilby.verification.spec.tables import Spaces, descriptor_count, pointer_to, table_at

FRAME_BITS = (12, 16, 20, 24)


def spaces_of(call: Invocation) -> Spaces:
    assert call.kernel.spaces is not None
    return call.kernel.spaces


def directory_of(call: Invocation) -> Table:
    cap = call.extra[0].cap
    if cap is None or cap.kind != "page_directory":
        raise Refused("INVALID_CAPABILITY")
    directory = spaces_of(call).directory(call.kernel, cap)
    if directory is None:
        raise Refused("INVALID_CAPABILITY")
    return directory


def map_table(call: Invocation) -> None:
    table = call.kernel.table(call.cap["object"])
    call.require(1, 1)
    directory = directory_of(call)
    address = call.word(0)
    if address >= WINDOW:
        raise Refused("RANGE")
    if address % (1 << 20):
        raise Refused("ALIGNMENT")
    spaces = spaces_of(call)
    if address >> 20 in directory.descriptors or spaces.is_entered(call.kernel, call.cap):
        raise Refused("ALREADY_MAPPED")
    directory.descriptors[address >> 20] = pointer_to(table)
    space = call.extra[0].cap
    assert space is not None
    spaces.note_table(call.cap, address, space)
    call.kernel.touch(directory, table, call.slot)


def entry_for(call: Invocation, directory: Table, address: int, size: int) -> tuple[Table, int]:
    """The table and the index of the first descriptor for a frame at an address."""
    first = directory.descriptors.get(address >> 20, 0)
    if size >= 2:
        return directory, address >> 20
    if first & 3 == 1:
        return table_at(call.kernel, first), address >> 12 & 0xFF
    raise Refused("ALREADY_MAPPED" if first else "NO_TABLE")


def descriptor_of(frame: Cap, write: bool, execute: bool, memory: int) -> int:
    """ARM ARM, extended small and large pages, sections and supersections; domain 0, nG."""
    base = frame["base"] << 12
    if frame["size"] >= 2:
        rights = 0xC00 if write else 0x800
        large = 0x40000 if frame["size"] == 3 else 0
        return base | large | 0x20002 | rights | memory | (0 if execute else 0x10)
    rights = 0x30 if write else 0x20
    if frame["size"] == 1:
        return base | 0x801 | rights | memory | (0 if execute else 0x8000)
    return base | 0x802 | rights | memory | (0 if execute else 1)


def map_frame(call: Invocation) -> None:
    frame = call.cap
    call.require(3, 1)
    directory = directory_of(call)
    if spaces_of(call).is_mapped(frame):
        raise Refused("ALREADY_MAPPED")
    address, rights, flags = (call.word(i) for i in range(3))
    if address >= WINDOW:
        raise Refused("RANGE")
    if address % (1 << FRAME_BITS[frame["size"]]):
        raise Refused("ALIGNMENT")
    write, execute = bool(rights & API["RIGHT_WRITE"]), bool(flags & API["MAP_EXECUTE"])
    if (write and not frame["can_write"]) or (execute and frame["device"]):
        raise Refused("NO_RIGHT")
    table, index = entry_for(call, directory, address, frame["size"])
    places = range(index, index + descriptor_count(frame))
    if any(i in table.descriptors for i in places):
        raise Refused("ALREADY_MAPPED")
    memory = 0x4 if frame["device"] else 0 if flags & API["MAP_UNCACHED"] else 0xC
    value = descriptor_of(frame, write, execute, memory)
    table.descriptors |= dict.fromkeys(places, value)
    space = call.extra[0].cap
    assert space is not None
    spaces_of(call).note_frame(frame, table, index, address, space)
    call.kernel.touch(table, call.slot)


def unmap(call: Invocation) -> None:
    spaces_of(call).unmap_frame(call.kernel, call.slot)


def clean(call: Invocation) -> None:
    """Clean a frame: the abstract state does not change."""
    call.require(2, 0)
    if call.cap["device"]:
        raise Refused("ILLEGAL_OPERATION")
    first, count = call.word(0), call.word(1)
    if first % LIMITS["LINE_BYTES"] or count % LIMITS["LINE_BYTES"]:
        raise Refused("ALIGNMENT")
    if count > API["FRAME_CLEAN_BYTES_MAX"] or first + count > 1 << FRAME_BITS[call.cap["size"]]:
        raise Refused("RANGE")


def tell_address(call: Invocation) -> None:
    call.caller.regs[2] = call.cap["base"] << 12
    call.answer = 1


def unmap_one_table(call: Invocation) -> None:
    spaces_of(call).unmap_table(call.kernel, call.slot)
