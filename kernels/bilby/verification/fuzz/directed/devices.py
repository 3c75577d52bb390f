# SPDX-License-Identifier: BSD-2-Clause
"""Regions of devices: objects made of them, refusals, and the effect of revoking."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.script import DIRECTORY, NODE, TCB, Script
from kernels.bilby.verification.spec.layout import API

DEVICE = API["ROOT_DEVICE"]  # check/host/board.h: 64 KiB, 1 MiB and 32 MiB
SMALL, MIDDLE, LARGE = DEVICE, DEVICE + 1, DEVICE + 2


def _make(
    script: Script, region: int, kind: str, size: int = 0, count: int = 1, error: str = "NONE"
) -> int:
    first = script.slots(count)
    words = [API[f"TYPE_{kind}"], size, 0, 0, first, count]
    script.invoke(region, "UNTYPED_RETYPE", words, [NODE], error)
    return first


def frames_of_every_size(script: Script) -> None:
    """Side by side, aligned to their size; until no page is left."""
    for kind, region, pages in (
        ("FRAME_4K", SMALL, 1), ("FRAME_64K", SMALL, 16), ("FRAME_1M", MIDDLE, 256),
        ("FRAME_16M", LARGE, 4096),
    ):  # fmt: skip
        script.begin_again()
        base, bits = (script.cap_of(region)[name] for name in ("base", "size_bits"))
        count = (1 << bits - 12) // pages
        for i in range(0, count, 8):
            first = _make(script, region, kind, count=min(8, count - i))
            for j in range(min(8, count - i)):
                cap = script.cap_of(first + j)
                assert cap["base"] == base + pages * (i + j)
                assert cap["device"]
                assert cap["can_write"]
        _make(script, region, kind, error="NO_MEMORY")
        script.revoke(region)
        assert script.cap_of(_make(script, region, kind))["base"] == base


def a_larger_frame_is_aligned(script: Script) -> None:
    """Pages are left out, and one frame more than there is room for is refused."""
    base = script.cap_of(MIDDLE)["base"]
    _make(script, MIDDLE, "FRAME_4K")
    assert script.cap_of(_make(script, MIDDLE, "FRAME_64K"))["base"] == base + 16
    _make(script, MIDDLE, "FRAME_64K", count=15, error="NO_MEMORY")
    assert script.cap_of(_make(script, MIDDLE, "FRAME_64K", count=14))["base"] == base + 32
    _make(script, MIDDLE, "FRAME_4K", error="NO_MEMORY")
    _make(script, MIDDLE, "FRAME_1M", error="NO_MEMORY")


def regions_of_a_region(script: Script) -> None:
    """Revoking one takes the objects made from it, and nothing of its neighbours."""
    whole = _make(script, SMALL, "UNTYPED", 16)
    first = _make(script, whole, "UNTYPED", 13, count=3)
    frames = [_make(script, first + i, "FRAME_4K", count=2) for i in range(3)]
    for i, frame in enumerate(frames):
        assert script.cap_of(frame)["base"] == script.cap_of(first + i)["base"]
    script.copy(frames[1])
    script.revoke(first + 1)
    script.invoke(frames[1], "FRAME_ADDRESS", error="INVALID_CAPABILITY")
    assert [script.cap_of(frame + 1).kind for frame in (frames[0], frames[2])] == ["frame"] * 2
    _make(script, first + 1, "FRAME_4K", count=2)
    script.delete(whole)
    _make(script, SMALL, "FRAME_4K", error="NO_MEMORY")
    script.revoke(SMALL)
    _make(script, SMALL, "FRAME_64K")


def what_no_region_gives(script: Script) -> None:
    for kind, size in (
        ("CNODE", 8), ("TCB", 0), ("ENDPOINT", 0), ("NOTIFICATION", 0), ("PAGE_TABLE", 0),
        ("PAGE_DIRECTORY", 0), ("UNTYPED", 11), ("UNTYPED", 4), ("UNTYPED", 3), ("UNTYPED", 27),
        ("CNODE", 12),
    ):  # fmt: skip
        _make(script, MIDDLE, kind, size, error="INVALID_ARGUMENT")
    _make(script, SMALL, "UNTYPED", 17, error="NO_MEMORY")
    _make(script, SMALL, "UNTYPED", 12, count=17, error="NO_MEMORY")
    _make(script, SMALL, "FRAME_4K", count=0, error="RANGE")
    script.copy(SMALL, error="ILLEGAL_OPERATION")
    script.mint(SMALL, 1, error="ILLEGAL_OPERATION")
    script.recycle(SMALL, error="ILLEGAL_OPERATION")
    script.invoke(SMALL, "FRAME_ADDRESS", error="ILLEGAL_OPERATION")
    words = [API["TYPE_FRAME_4K"], 0, 0, 0, script.slots(), 1]
    script.invoke(SMALL, "UNTYPED_RETYPE", words, [], "TRUNCATED")
    script.invoke(SMALL, "UNTYPED_RETYPE", words, [TCB], "INVALID_CAPABILITY")
    _make(script, SMALL, "UNTYPED", 12, count=16)


def a_device_is_mapped(script: Script) -> None:
    """Never to be executed, cleaned, or to be a message buffer; unmapped by revoking its region."""
    frame, thread = _make(script, SMALL, "FRAME_4K"), script.make("TCB")
    image = API["IMAGE_BASE"]
    page = image + 0x80000
    script.invoke(frame, "FRAME_MAP", [page, 3, API["MAP_EXECUTE"]], [DIRECTORY], "NO_RIGHT")
    script.invoke(frame, "FRAME_MAP", [page, 3, 0], [DIRECTORY])
    script.invoke(frame, "FRAME_CLEAN", [0, 32], error="ILLEGAL_OPERATION")
    script.invoke(thread, "TCB_CONFIGURE", [0, 0], [NODE, DIRECTORY, frame], "ILLEGAL_OPERATION")
    script.revoke(SMALL)
    other = script.make("FRAME_4K")
    script.invoke(other, "FRAME_MAP", [page, 3, 0], [DIRECTORY])


def a_region_is_moved_and_deleted(script: Script) -> None:
    """Objects made from it stay, and nobody can make more."""
    frame, to = _make(script, SMALL, "FRAME_4K"), script.slots()
    script.invoke(NODE, "CNODE_MOVE", [to, 32, SMALL, 32], [NODE])
    second = _make(script, to, "FRAME_4K")
    assert script.cap_of(second)["base"] == script.cap_of(frame)["base"] + 1
    script.delete(to)
    assert script.cap_of(frame)["device"]
    script.delete(frame)
    script.delete(second)
