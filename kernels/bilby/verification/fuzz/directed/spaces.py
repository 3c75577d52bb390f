# SPDX-License-Identifier: BSD-2-Clause
"""Address spaces: mapping, unmapping, space numbers, instructions."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import DIRECTORY, NODE, NOWHERE, TCB, Script
from kernels.bilby.verification.spec.layout import API, LIMITS, RAM, WINDOW, message, offset

MIB = 1 << 20
WRITE, EXECUTE, UNCACHED = API["RIGHT_WRITE"], API["MAP_EXECUTE"], API["MAP_UNCACHED"]
ROOM = 0x001C0000  # in the first thread's space: below its page table, unused


def _map_frame(
    script: Script, frame: int, address: int, space: int = DIRECTORY, *, rights: int = 3,
    flags: int = 0, error: str = "NONE",
) -> None:  # fmt: skip
    script.invoke(frame, "FRAME_MAP", [address, rights, flags], [space], error)


def old_instructions_are_forgotten(script: Script) -> None:
    """A frame was executed; code in an object made of its memory must not find its instructions."""
    region = script.make("UNTYPED", 12)
    frame = script.make("FRAME_4K", region=region)
    _map_frame(script, frame, ROOM, rights=1, flags=EXECUTE)
    script.syscall("YIELD")
    script.revoke(region)
    script.make("FRAME_4K", region=region)


def mappings_are_checked(script: Script) -> None:
    frame, table = script.make("FRAME_4K"), script.make("PAGE_TABLE")
    large = script.make("FRAME_64K")
    read_only = script.copy(frame, 1)
    _map_frame(script, read_only, ROOM, rights=WRITE, error="NO_RIGHT")
    _map_frame(script, read_only, ROOM, rights=1)
    _map_frame(script, script.copy(read_only), ROOM + 0x30000, rights=1)
    _map_frame(script, frame, ROOM, error="ALREADY_MAPPED")
    _map_frame(script, frame, WINDOW, error="RANGE")
    _map_frame(script, frame, ROOM + 0x10000 + 64, error="ALIGNMENT")
    _map_frame(script, large, ROOM + 0x1000, error="ALIGNMENT")
    _map_frame(script, large, ROOM, error="ALREADY_MAPPED")
    _map_frame(script, large, ROOM + 0x10000)
    _map_frame(script, frame, ROOM + 0x1F000, error="ALREADY_MAPPED")
    _map_frame(script, frame, ROOM + 0x21000, flags=UNCACHED)
    script.invoke(table, "PAGE_TABLE_MAP", [WINDOW], [DIRECTORY], "RANGE")
    script.invoke(table, "PAGE_TABLE_MAP", [4096], [DIRECTORY], "ALIGNMENT")
    script.invoke(table, "PAGE_TABLE_MAP", [MIB], [DIRECTORY], "ALREADY_MAPPED")
    script.invoke(table, "PAGE_TABLE_MAP", [2 * MIB], [DIRECTORY])
    script.invoke(table, "PAGE_TABLE_MAP", [3 * MIB], [DIRECTORY], "ALREADY_MAPPED")


def devices_are_mapped_as_devices(script: Script) -> None:
    device = script.copy(API["ROOT_UART_FRAME"])
    _map_frame(script, device, ROOM, flags=EXECUTE, error="NO_RIGHT")
    _map_frame(script, device, ROOM)


def unmapping_reaches_the_tlb(script: Script) -> None:
    """Each kind of mapping was used, and is taken away in every way."""
    table, frame = script.make("PAGE_TABLE"), script.make("FRAME_4K")
    large, section = script.make("FRAME_64K"), script.copy(API["ROOT_FRAME_1M"])
    copy = script.copy(frame)
    script.invoke(table, "PAGE_TABLE_MAP", [2 * MIB], [DIRECTORY])
    _map_frame(script, frame, 2 * MIB)
    _map_frame(script, large, 2 * MIB + 0x10000)
    _map_frame(script, copy, ROOM)
    _map_frame(script, section, 3 * MIB)
    for _ in range(2):
        script.syscall("YIELD")
    script.invoke(frame, "FRAME_UNMAP")
    script.delete(copy)
    script.invoke(section, "FRAME_UNMAP")
    script.invoke(table, "PAGE_TABLE_UNMAP")
    script.invoke(large, "FRAME_UNMAP")
    script.delete(table)


def a_table_that_was_used_is_deleted(script: Script) -> None:
    table, frame = script.make("PAGE_TABLE"), script.make("FRAME_4K")
    script.invoke(table, "PAGE_TABLE_MAP", [2 * MIB], [DIRECTORY])
    _map_frame(script, frame, 2 * MIB + 0xFF000)
    script.syscall("YIELD")
    script.delete(table)
    script.invoke(frame, "FRAME_UNMAP")


def a_space_is_deleted_while_it_is_used(script: Script) -> None:
    space = script.space()
    table, frame = script.make("PAGE_TABLE"), script.make("FRAME_4K")
    script.invoke(table, "PAGE_TABLE_MAP", [4 * MIB], [space])
    _map_frame(script, frame, 4 * MIB, space)
    buffer = script.make("FRAME_4K")
    thread = script.thread(frame=buffer, space=space)
    script.syscall("YIELD")
    assert script.runs(thread)
    script.revoke(space)
    script.delete(space)
    script.syscall("YIELD")
    assert script.runs(TCB)
    script.syscall("YIELD")


def space_numbers_are_reused(script: Script) -> None:
    """After the last number comes the first again, and its old translations are gone."""
    host, table = script.run.host, script.run.table
    host.write(table["last_asid"], 253)
    threads = []
    for _ in range(4):
        space = script.space()
        page_table, frame = script.make("PAGE_TABLE"), script.make("FRAME_4K")
        script.invoke(page_table, "PAGE_TABLE_MAP", [4 * MIB], [space])
        _map_frame(script, frame, 4 * MIB, space)
        threads.append(script.thread(space=space))
    for _ in range(12):
        script.syscall("YIELD")
    script.invoke(TCB, "TCB_SET_PRIORITY", [200])
    for _ in range(6):
        script.syscall("YIELD")


def a_stale_mapping_is_harmless(script: Script) -> None:
    """A space is deleted; the next one may get its number, and maps others in the same places."""
    frames, tables = [], []
    for _ in range(2):
        space = script.space()
        tables.append(script.make("PAGE_TABLE"))
        frames.append(script.make("FRAME_4K"))
        script.invoke(tables[-1], "PAGE_TABLE_MAP", [4 * MIB], [space])
        _map_frame(script, frames[-1], 4 * MIB, space)
        if len(frames) == 1:
            script.delete(space)
    script.invoke(frames[0], "FRAME_UNMAP")
    script.invoke(tables[0], "PAGE_TABLE_UNMAP")
    _map_frame(script, frames[0], 4 * MIB + 0x1000, space)
    script.invoke(tables[1], "PAGE_TABLE_UNMAP")
    script.invoke(tables[1], "PAGE_TABLE_MAP", [5 * MIB], [space])


def a_cnode_that_nobody_reaches_has_a_table(script: Script) -> None:
    """It holds all capabilities of its region, its own too: nobody can delete it any more."""
    region, space = API["ROOT_UNTYPED"] + 2, script.space()
    node, table = script.make("CNODE", 4, region=2), script.make("PAGE_TABLE", region=2)
    frame = script.make("FRAME_4K")
    script.invoke(table, "PAGE_TABLE_MAP", [4 * MIB], [space])
    _map_frame(script, frame, 4 * MIB, space)
    thread = script.thread(space=space)
    for index, slot in enumerate((region, table, node)):
        script.invoke(node, "CNODE_MOVE", [index, 4, slot, 32], [NODE])
    script.syscall("YIELD")
    assert script.runs(thread)
    script.invoke(frame, "FRAME_UNMAP")
    script.delete(space)
    script.syscall("YIELD")


def _make_pool(script: Script, region: int, error: str = "NONE") -> int:
    pool = script.slots()
    script.invoke(API["ROOT_ASID_CONTROL"], "ASID_MAKE_POOL", [pool, 32], [region, NODE], error)
    return pool


def numbers_go_with_their_pool(script: Script) -> None:
    """Threads run in spaces of a second pool, which is deleted, and then made once more."""
    used, unused, later = (script.make("UNTYPED", 12) for _ in range(3))
    if not script.run.kernel.pools:
        _make_pool(script, unused, "INVALID_CAPABILITY")
        return
    script.make("ENDPOINT", region=used)
    _make_pool(script, used, "NO_MEMORY")
    pool = _make_pool(script, unused)
    spaces = [script.make("PAGE_DIRECTORY") for _ in range(3)]
    for space in spaces:
        script.invoke(pool, "ASID_ASSIGN", [], [space])
        script.invoke(pool, "ASID_ASSIGN", [], [space], "INVALID_CAPABILITY")
    threads = [script.thread(space=space) for space in spaces]
    for thread in threads:
        script.syscall("YIELD")
        assert script.runs(thread)
    script.delete(pool)
    for _ in range(5):
        script.syscall("YIELD")
    again = _make_pool(script, later)
    script.invoke(again, "ASID_ASSIGN", [], [spaces[0]], "INVALID_CAPABILITY")
    script.invoke(again, "ASID_ASSIGN", [], [script.make("PAGE_DIRECTORY")])


def a_space_has_a_number_of_the_fifth_pool(script: Script) -> None:
    """The number is one of thirteen bits; a frame that is mapped remembers all of them."""
    if not script.run.kernel.pools:
        return
    pools = [_make_pool(script, script.make("UNTYPED", 12)) for _ in range(4)]
    space, table, frame = (script.make(f) for f in ("PAGE_DIRECTORY", "PAGE_TABLE", "FRAME_4K"))
    script.invoke(pools[-1], "ASID_ASSIGN", [], [space])
    assert script.cap_of(space)["asid"] == 4096
    script.invoke(table, "PAGE_TABLE_MAP", [4 * MIB], [space])
    _map_frame(script, frame, 4 * MIB, space)
    script.invoke(frame, "FRAME_UNMAP")


def a_region_is_no_space(script: Script) -> None:
    """The region's capability reads like its directory's: address and number."""
    if not script.run.kernel.pools:
        return
    for _ in range(2, 14):
        script.space()
    region = script.make("UNTYPED", 14)
    space = script.make("PAGE_DIRECTORY", region=region)
    script.invoke(API["ROOT_ASID_POOL"], "ASID_ASSIGN", [], [space])
    assert script.cap_of(space)["asid"] == 14
    assert script.object_of(space) == script.object_of(region)
    table, frame = script.make("PAGE_TABLE"), script.make("FRAME_1M")
    script.invoke(table, "PAGE_TABLE_MAP", [4 * MIB], [region], "INVALID_CAPABILITY")
    _map_frame(script, frame, 4 * MIB, region, error="INVALID_CAPABILITY")


def what_was_unmapped_and_mapped_elsewhere_stays(script: Script) -> None:
    """When the table, or the space, in which it was before is deleted."""
    first, second, frame = (script.make(f) for f in ("PAGE_TABLE", "PAGE_TABLE", "FRAME_4K"))
    spaces = [script.space(), script.space()]
    script.invoke(first, "PAGE_TABLE_MAP", [4 * MIB], [spaces[0]])
    script.invoke(second, "PAGE_TABLE_MAP", [4 * MIB], [spaces[1]])
    _map_frame(script, frame, 4 * MIB, spaces[0])
    script.invoke(frame, "FRAME_UNMAP")
    _map_frame(script, frame, 4 * MIB, spaces[1])
    script.delete(first)
    third = script.make("PAGE_TABLE")
    script.invoke(third, "PAGE_TABLE_MAP", [5 * MIB], [spaces[0]])
    script.invoke(third, "PAGE_TABLE_UNMAP")
    script.invoke(third, "PAGE_TABLE_MAP", [5 * MIB], [spaces[1]])
    script.delete(spaces[0])
    script.invoke(frame, "FRAME_UNMAP")
    script.invoke(third, "PAGE_TABLE_UNMAP")


def _written(script: Script, label: str) -> None:
    """A user writes the first words of two pieces of a frame, and a device those behind them."""
    host, frame = script.run.host, script.make("FRAME_4K")
    _map_frame(script, frame, ROOM, flags=EXECUTE)
    base = (script.cap_of(frame)["base"] << 12) - RAM + WINDOW
    piece = API["FRAME_CLEAN_BYTES_MAX"]
    for first in (0, 4096 - piece):
        script.meanwhile("YIELD", 0)
        host.store(base + first, 0x11)
        host.device_writes(base + first + piece - 4, 0x22)
        assert not host.is_clean(base + first, piece)
        assert not host.is_forgotten(base + first, piece)
        script.meanwhile("CALL", frame, message(2, 0, 0, API[f"LABEL_{label}"]), [first, piece])
        assert host.is_clean(base + first, piece)
        assert host.is_forgotten(base + first, piece) == (label == "FRAME_PUBLISH")
        assert host.word(base + first) == 0x11
        assert host.word(base + first + piece - 4) == 0x22


def instructions_are_published(script: Script) -> None:
    _written(script, "FRAME_PUBLISH")


def data_is_shared_with_a_device(script: Script) -> None:
    _written(script, "FRAME_CLEAN")


def pieces_of_frames(script: Script) -> None:
    """The largest and smallest pieces of a frame that can be cleaned."""
    frame, device = script.make("FRAME_4K"), API["ROOT_UART_FRAME"]
    piece = API["FRAME_CLEAN_BYTES_MAX"]
    for words, error in (
        ([4096 - 32, 32], "NONE"),
        ([4096, 0], "NONE"),
        ([16, 32], "ALIGNMENT"),
        ([0, 16], "ALIGNMENT"),
        ([0, piece + 32], "RANGE"),
        ([4096 - 32, 64], "RANGE"),
        ([4096 + 32, 0], "RANGE"),
        ([0xFFFFFFE0, 64], "RANGE"),
    ):
        script.invoke(frame, "FRAME_CLEAN", words, error=error)
    last = (1 << 24) - 32  # of memory: nothing behind it may be cleaned
    script.invoke(API["ROOT_FRAME_16M"], "FRAME_CLEAN", [last, 32])
    script.invoke(device, "FRAME_CLEAN", [0, 32], error="ILLEGAL_OPERATION")
    script.invoke(frame, "FRAME_PUBLISH", [0], error="TRUNCATED")


def spaces_keep_their_numbers(script: Script) -> None:
    """Threads of two spaces take turns, each under the number that its space has got."""
    spaces = [script.space(), script.space()]
    for space in spaces:
        script.thread(space=space)
    place = offset("page_directory", "asid")

    def numbers() -> list[int]:
        words = [script.run.host.word(script.object_of(s) + place & ~3) for s in spaces]
        return [word >> 8 * (place & 3) & 0xFF for word in words]

    for _ in range(3):
        script.syscall("YIELD")
    first = numbers()
    for _ in range(6):
        script.syscall("YIELD")
    assert 0 not in first
    assert first[0] != first[1]
    assert numbers() == first


def a_section_is_mapped_where_its_space_is_deleted(script: Script) -> None:
    """The large frames of the first thread."""
    space = script.space()
    for slot, address in ((API["ROOT_FRAME_1M"], 5 * MIB), (API["ROOT_FRAME_16M"], 16 * MIB)):
        _map_frame(script, slot, address, space)
        script.invoke(slot, "FRAME_UNMAP")
        _map_frame(script, slot, address, space)
    script.delete(space)
    other = script.space()
    for slot, address in ((API["ROOT_FRAME_1M"], 5 * MIB), (API["ROOT_FRAME_16M"], 16 * MIB)):
        script.invoke(slot, "FRAME_UNMAP")
        _map_frame(script, slot, address, other)


def as_many_pools_as_there_can_be(script: Script) -> None:
    """A place for a pool that is wrong leaves everything as it is; the last one has no number."""
    if not script.run.kernel.pools:
        return
    regions = [script.make("UNTYPED", 12) for _ in range(LIMITS["ASID_POOLS"])]
    control, node = API["ROOT_ASID_CONTROL"], script.make("CNODE", 2)
    for place, root, error in (
        ([NODE, 32], NODE, "SLOT_OCCUPIED"),
        ([NOWHERE, 32], NODE, "LOOKUP_FAILED"),
        ([script.slots(), 33], NODE, "RANGE"),
        ([4, 3], node, "LOOKUP_FAILED"),
    ):
        script.invoke(control, "ASID_MAKE_POOL", place, [regions[0], root], error)
    for region in regions[:-1]:
        _make_pool(script, region)
    _make_pool(script, regions[-1], "NO_NUMBER")


def a_pool_is_made_of_memory_that_was_used(script: Script) -> None:
    """All its numbers are free; copies of its capability go when it is revoked."""
    if not script.run.kernel.pools:
        return
    region = script.make("UNTYPED", 12)
    frame = script.make("FRAME_4K", region=region)
    address = (script.cap_of(frame)["base"] << 12) - RAM + WINDOW
    for at in range(0, 64, 4):
        script.run.host.store(address + at, WINDOW)
    script.delete(frame)
    pool = _make_pool(script, region)
    script.invoke(pool, "ASID_ASSIGN", [], [script.make("PAGE_DIRECTORY")])
    copy = script.copy(pool)
    script.revoke(pool)
    script.invoke(copy, "ASID_ASSIGN", [], [script.make("PAGE_DIRECTORY")], "INVALID_CAPABILITY")


def the_first_pool_is_made_again(script: Script) -> None:
    """Its place is the first that is free."""
    if not script.run.kernel.pools:
        return
    script.delete(API["ROOT_ASID_POOL"])
    pool = _make_pool(script, script.make("UNTYPED", 12))
    assert script.cap_of(pool)["index"] == 0
    script.invoke(pool, "ASID_ASSIGN", [], [script.make("PAGE_DIRECTORY")])
