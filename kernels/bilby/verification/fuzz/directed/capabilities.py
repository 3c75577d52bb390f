# SPDX-License-Identifier: BSD-2-Clause
"""Capabilities: copies, badges, rights, guards, places."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import NODE, NOWHERE, TCB, Script
from kernels.bilby.verification.spec.layout import API, RAM, SIZES, WINDOW


def what_has_no_copy(script: Script) -> None:
    for name in ("IRQ_CONTROL", "UNTYPED", "PAGE_TABLE"):
        script.copy(API[f"ROOT_{name}"], error="ILLEGAL_OPERATION")
    if script.run.kernel.pools:
        script.copy(API["ROOT_ASID_CONTROL"], error="ILLEGAL_OPERATION")


def a_badge_is_revoked_without_others(script: Script) -> None:
    """The next slot in the list is a copy too, but has another badge."""
    for kind in ("ENDPOINT", "NOTIFICATION"):
        original = script.make(kind)
        other = script.mint(original, 2)
        script.copy(other)
        first = script.mint(original, 1)
        script.copy(first)
        script.delete(other)
        script.revoke(first)


def a_badge_given_twice_is_two_families(script: Script) -> None:
    for kind in ("ENDPOINT", "NOTIFICATION"):
        original = script.make(kind)
        script.mint(original, 1)
        first = script.mint(original, 1)
        script.copy(first)
        script.revoke(first)
        script.copy(first)
        script.revoke(original)


def a_badge_is_given_once(script: Script) -> None:
    for kind in ("ENDPOINT", "NOTIFICATION"):
        original = script.make(kind)
        script.mint(script.mint(original, 1), 2, "ILLEGAL_OPERATION")
        script.mint(original, 1 << 28, "RANGE")
        script.mint(original, (1 << 28) - 1)


def each_right_can_be_taken(script: Script) -> None:
    originals = [script.make(kind) for kind in ("ENDPOINT", "NOTIFICATION", "FRAME_4K")]
    for original in originals:
        for rights in range(8):
            script.copy(original, rights)


def guards(script: Script) -> None:
    """A level has at most 32 bits, and a guard the bits of its size."""
    node = script.make("CNODE", 4)
    for size, value, error in ((28, 5, "NONE"), (29, 5, "RANGE"), (3, 9, "RANGE"), (3, 7, "NONE")):
        script.mint(node, value << 5 | size, error)
    to = script.slots()
    script.invoke(NODE, "CNODE_MUTATE", [to, 32, node, 32, 29], [NODE], "RANGE")
    script.invoke(NODE, "CNODE_MUTATE", [to, 32, TCB, 32, 3], [NODE], "ILLEGAL_OPERATION")
    script.invoke(NODE, "CNODE_MUTATE", [to, 32, node, 32, 3 << 5 | 3], [NODE])


def addresses_end_inside_of_a_level(script: Script) -> None:
    """A CNode that holds itself resolves any number of bits."""
    node = script.make("CNODE", 4)
    inside = [0, 4, node, 32, 7]
    script.invoke(node, "CNODE_COPY", inside, [NODE])
    for depth, error in ((3, "LOOKUP_FAILED"), (8, "SLOT_OCCUPIED"), (33, "RANGE"), (0, "RANGE")):
        script.invoke(node, "CNODE_COPY", [0, depth, TCB, 32, 7], [NODE], error)


def occupied_slots_are_not_filled(script: Script) -> None:
    endpoint, occupied = script.make("ENDPOINT"), script.make("NOTIFICATION")
    script.invoke(NODE, "CNODE_COPY", [occupied, 32, endpoint, 32, 7], [NODE], "SLOT_OCCUPIED")
    script.invoke(NODE, "CNODE_MOVE", [occupied, 32, endpoint, 32], [NODE], "SLOT_OCCUPIED")


def rotations(script: Script) -> None:
    first, second, third = script.make("ENDPOINT"), script.make("NOTIFICATION"), script.slots()
    fourth = script.make("ENDPOINT")

    def rotate(to: int, pivot: int, source: int, error: str = "NONE") -> None:
        words = [to, 32, pivot, 32, source, 32]
        script.invoke(NODE, "CNODE_ROTATE", words, [NODE, NODE], error)

    rotate(second, second, first, "INVALID_ARGUMENT")
    rotate(third, first, first, "INVALID_ARGUMENT")
    rotate(fourth, first, second, "SLOT_OCCUPIED")
    rotate(NOWHERE, first, second, "LOOKUP_FAILED")
    rotate(third, NOWHERE, second, "LOOKUP_FAILED")
    rotate(third, first, NOWHERE, "LOOKUP_FAILED")
    rotate(third, first, second)
    rotate(third, second, third, "INVALID_CAPABILITY")
    rotate(third, first, third)


def deleting_keeps_what_was_derived(script: Script) -> None:
    endpoint = script.make("ENDPOINT")
    script.copy(script.mint(endpoint, 1))
    script.delete(endpoint)


def recycling_needs_every_right(script: Script) -> None:
    for kind, rights in (("ENDPOINT", (3, 5, 6)), ("NOTIFICATION", (1, 2))):
        original = script.make(kind)
        for fewer in rights:
            script.recycle(script.copy(original, fewer), "NO_RIGHT")
        script.recycle(original)
    script.recycle(script.make("CNODE", 2), "ILLEGAL_OPERATION")
    script.recycle(script.make("FRAME_4K"), "ILLEGAL_OPERATION")


def priorities_are_at_most_ones_own(script: Script) -> None:
    thread = script.make("TCB")
    script.invoke(TCB, "TCB_SET_PRIORITY", [100])
    if script.is_timed:
        script.invoke(TCB, "TCB_SET_LIMITS", [100, 0])
    script.invoke(thread, "TCB_SET_PRIORITY", [101], error="RANGE")
    script.invoke(thread, "TCB_SET_PRIORITY", [100])


def only_registers_of_a_stopped_thread_are_written(script: Script) -> None:
    thread, words = script.thread(), [0] * 17  # pc, sp, cpsr, r0 to r12, lr
    script.invoke(thread, "TCB_WRITE_REGISTERS", words, error="ILLEGAL_OPERATION")
    script.invoke(thread, "TCB_SUSPEND")
    script.invoke(thread, "TCB_WRITE_REGISTERS", words)


def regions_are_not_left(script: Script) -> None:
    """The last objects of a region fit exactly; one more does not."""
    size = max(4096, 4 * SIZES["endpoint"])
    region = script.make("UNTYPED", size.bit_length() - 1)
    script.make("ENDPOINT", count=3, region=region)
    left = (size - 3 * SIZES["endpoint"]) // SIZES["tcb"]
    words = [API["TYPE_TCB"], 0, 0, 0, script.slots(), left + 1]
    script.invoke(region, "UNTYPED_RETYPE", words, [NODE], "NO_MEMORY")
    script.make("TCB", count=left, region=region)
    words = [API["TYPE_TCB"], 0, 0, 0, script.slots(), 1]
    script.invoke(region, "UNTYPED_RETYPE", words, [NODE], "NO_MEMORY")
    script.revoke(region)
    script.make("FRAME_4K", region=region)
    script.revoke(region)
    script.make("CNODE", 8, region=region)


def retype_is_checked(script: Script) -> None:
    endpoint, first = script.make("ENDPOINT"), script.slots()
    region, kind = API["ROOT_UNTYPED"] + 1, API["TYPE_ENDPOINT"]
    for words, node, error in (
        ([kind, 0, 0, 33, first, 1], NODE, "RANGE"),
        ([kind, 0, endpoint, 32, first, 1], NODE, "INVALID_CAPABILITY"),
        ([kind, 0, 0, 0, first, 1], endpoint, "INVALID_CAPABILITY"),
        ([kind, 0, 1 << 31, 32, first, 1], NODE, "LOOKUP_FAILED"),
        ([kind, 0, 0, 0, first, 0], NODE, "RANGE"),
        ([kind, 0, 0, 0, first, 33], NODE, "RANGE"),
        ([kind, 0, 0, 0, 1 << API["ROOT_RADIX"], 1], NODE, "RANGE"),
        ([kind, 0, 0, 0, (1 << API["ROOT_RADIX"]) - 1, 2], NODE, "RANGE"),
        ([kind, 0, 0, 0, endpoint, 1], NODE, "SLOT_OCCUPIED"),
        ([99, 0, 0, 0, first, 1], NODE, "INVALID_ARGUMENT"),
        ([API["TYPE_CNODE"], 13, 0, 0, first, 1], NODE, "INVALID_ARGUMENT"),
        ([API["TYPE_UNTYPED"], 3, 0, 0, first, 1], NODE, "INVALID_ARGUMENT"),
        ([API["TYPE_PAGE_DIRECTORY"], 0, 0, 0, first, 2], NODE, "RANGE"),
        ([API["TYPE_FRAME_16M"], 0, 0, 0, first, 1], NODE, "NO_MEMORY"),
    ):
        script.invoke(region, "UNTYPED_RETYPE", words, [node], error)
    script.invoke(region, "CNODE_COPY", [0], [NODE], "ILLEGAL_OPERATION")
    script.invoke(TCB, "TCB_RESUME", error="ILLEGAL_OPERATION")
    script.invoke(TCB, "CNODE_COPY", error="ILLEGAL_OPERATION")
    script.invoke(NODE, "TCB_RESUME", error="ILLEGAL_OPERATION")


def a_region_made_from_all_of_another(script: Script) -> None:
    outer = script.make("UNTYPED", 13)
    inner = script.make("UNTYPED", 13, region=outer)
    script.make("TCB", count=2, region=inner)
    script.delete(outer)
    script.revoke(inner)


def small_regions_are_cleared(script: Script) -> None:
    """Of the size of an endpoint: if that is 16 bytes, they begin or end in the middle of a cache
    line. A frame's data, then a deleted endpoint, which is closed, was left in each.
    """
    region, bytes_of = script.make("UNTYPED", 12), SIZES["endpoint"]
    frame = script.make("FRAME_4K", region=region)
    base = (script.cap_of(frame)["base"] << 12) - RAM + WINDOW
    for place in range(0, 4 * bytes_of, 4):
        script.run.host.write(base + place, 0xDEAD0000 | place)
    script.revoke(region)
    first = script.make("UNTYPED", bytes_of.bit_length() - 1, count=2, region=region)
    for piece in (first, first + 1):
        for _ in range(2):
            script.make("ENDPOINT", region=piece)
            assert not any(script.run.host.words(script.object_of(piece), bytes_of // 4))
            script.revoke(piece)
            assert script.run.host.word(script.object_of(piece)) != 0


def large_regions_are_cleared(script: Script) -> None:
    """Data in a frame is in no object that is made of its memory later."""
    node, table = SIZES["slot"] << 10, SIZES["page_table"]
    for kind, size, bytes_of in (
        ("FRAME_64K", 0, 1 << 16), ("CNODE", 10, node), ("FRAME_4K", 0, 1 << 12),
        ("PAGE_TABLE", 0, table),
    ):  # fmt: skip
        script.begin_again()
        region = script.make("UNTYPED", 16)
        frame = script.make("FRAME_64K", region=region)
        base = (script.cap_of(frame)["base"] << 12) - RAM + WINDOW
        places = [place + word for place in range(0, 1 << 16, 1024) for word in (0, 4, 28, 1020)]
        for place in places:
            script.run.host.write(base + place, 0xDEAD0000 | place)
        script.delete(frame)
        script.make(kind, size, region=region)
        left = [place for place in places if script.run.host.word(base + place)]
        assert all(place >= bytes_of for place in left)


def a_region_is_made_into_a_directory(script: Script) -> None:
    """Nothing of the kernel's mappings was copied there before."""
    region = script.make("UNTYPED", SIZES["page_directory"].bit_length() - 1)
    script.make("PAGE_DIRECTORY", region=region)


def small_objects_are_clear_when_they_are_made_again(script: Script) -> None:
    """Of half a line each, perhaps, in rows that begin and end in the middle of one."""
    for kind in ("NOTIFICATION", "ENDPOINT"):
        size = max(128, 4 * SIZES[kind.lower()])
        region = script.make("UNTYPED", size.bit_length() - 1)
        count = size // SIZES[kind.lower()]
        for number in (count, 1):
            for slot in [script.make(kind, region=region) for _ in range(number)]:
                script.syscall("NB_SEND", script.mint(slot, 0xFFFFFFF))
            if number == count:
                script.revoke(region)
        row = script.make(kind, count=count - 2, region=region)
        for slot in range(row, row + count - 2):
            words = script.run.host.words(script.object_of(slot), SIZES[kind.lower()] // 4)
            assert not any(words), f"{kind} {slot - row}: {words}"


def copies_of_what_has_no_badge_have_no_children(script: Script) -> None:
    """Each is revoked; the others stay."""
    for kind in ("TCB", "CNODE", "FRAME_4K"):
        original = script.make(kind, 1 if kind == "CNODE" else 0)
        for copy in [script.copy(original) for _ in range(3)]:
            script.revoke(copy)
        script.revoke(original)


def two_types_in_one_place_of_a_word(script: Script) -> None:
    """The first words of an endpoint's and a frame's capability differ only in the type."""
    pieces = script.make("UNTYPED", 16, 32, region=2)
    endpoint = script.make("ENDPOINT", region=pieces + 11)
    frame = script.make("FRAME_4K", region=pieces + 16)
    assert script.object_of(endpoint) - WINDOW == (script.cap_of(frame)["base"] << 8) % (32 << 20)
    for piece in range(11, 17):
        script.delete(pieces + piece)
    script.revoke(endpoint)
    script.copy(frame)
    script.delete(endpoint)


def objects_are_made_one_bit_below_a_node(script: Script) -> None:
    outer, inner, wide = script.make("CNODE", 1), script.make("CNODE", 4), script.make("CNODE", 4)
    script.invoke(outer, "CNODE_MOVE", [1, 1, inner, 32], [NODE])
    words = [API["TYPE_ENDPOINT"], 0, 1, 1, 3, 2]
    script.invoke(API["ROOT_UNTYPED"] + 1, "UNTYPED_RETYPE", words, [outer])
    script.invoke(API["ROOT_UNTYPED"] + 1, "UNTYPED_RETYPE", words, [wide], "LOOKUP_FAILED")
