# SPDX-License-Identifier: BSD-2-Clause
"""The capabilities of the first thread, before any operation."""

from __future__ import annotations

import os
import subprocess

from kernels.bilby.verification.fuzz.script import Script
from kernels.bilby.verification.spec.layout import API, RAM, SIZES, WINDOW, offset

INFO, BUFFER, IMAGE = (API[f"ROOT_{name}"] for name in ("INFO_FRAME", "BUFFER_FRAME", "IMAGE"))
LARGE = {API["ROOT_FRAME_1M"]: 1 << 20, API["ROOT_FRAME_16M"]: 1 << 24}
DEVICES = (API["ROOT_UART_FRAME"], API["ROOT_TIMER_FRAME"])
IMAGE_FRAMES, TEXT_FRAMES = 2, 1  # of the program that the host build loads
PC_OF_SVC = 0x00101000  # where it begins
UNTYPED_MAX = 16  # length of the table in struct boot_info
DEVICES_MAX = 32  # of these two
REGIONS_OF_DEVICES = [(0x43F80000, 16), (0x50000000, 20), (0xB6000000, 25)]  # check/host/board.h
USER_WRITES, NEVER = 0x30, 1  # in a descriptor of 4 KiB; never: to be executed
SYSTEM_MODE = 0x15F  # interrupts enabled, fast ones and imprecise aborts not


def programs_that_are_refused(script: Script) -> None:
    """No program at all, one with more text than bytes, and one that is too large."""
    for wrong in ("magic", "text", "bytes"):
        done = subprocess.run(
            [script.path, "5"], env=os.environ | {"BILBY_IMAGE": wrong}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1, wrong
        assert done.stderr.startswith("boot: "), done.stderr


def _address(script: Script, slot: int) -> int:
    """Where a frame is in the kernel window."""
    return (script.cap_of(slot)["base"] << 12) - RAM + WINDOW


def _descriptor(script: Script, address: int) -> int:
    """Of the page of the first thread at an address: all that boot maps is in one table."""
    table = script.object_of(API["ROOT_PAGE_TABLE"])
    return script.run.host.word(table + 4 * (address >> 12 & 0xFF))


def frames_of_the_first_thread(script: Script) -> None:
    """The first thread may write and execute certain frames, at their stated addresses."""
    image = [IMAGE + i for i in range(IMAGE_FRAMES)]
    for slot in (INFO, BUFFER, *image, *LARGE, *DEVICES):
        cap = script.cap_of(slot)
        is_text = slot in image[:TEXT_FRAMES]
        assert cap["can_write"] == (slot != INFO and not is_text), slot
        assert cap["device"] == (slot in DEVICES), slot
    places = {INFO: API["ROOT_INFO"], BUFFER: API["ROOT_BUFFER"]}
    places |= {slot: API["IMAGE_BASE"] + 4096 * i for i, slot in enumerate(image)}
    for slot, address in places.items():
        found = _descriptor(script, address)
        assert found & ~0xFFF == script.cap_of(slot)["base"] << 12, slot
        assert (found & USER_WRITES == USER_WRITES) == bool(script.cap_of(slot)["can_write"])
        assert bool(found & NEVER) == (slot == BUFFER or slot in image[TEXT_FRAMES:]), slot


def what_the_first_thread_is_told(script: Script) -> None:
    """How much memory there is, how many frames its program has, and where devices are."""
    told = script.run.host.words(_address(script, INFO), 3 + UNTYPED_MAX)
    regions = []
    for i in range(told[0]):
        cap = script.cap_of(API["ROOT_UNTYPED"] + i)
        regions.append(cap["size_bits"])
        assert (cap["free"] != 0) == (i == 0), "only of the first region may anything be used"
        assert cap.fields.get("copied", 0) == 0
    assert regions == told[1 : 1 + len(regions)] == [16, 21, 21], told
    assert told[1 + UNTYPED_MAX :] == [TEXT_FRAMES, IMAGE_FRAMES], told
    at = _address(script, INFO) + 4 * (3 + UNTYPED_MAX)
    devices = script.run.host.words(at, 1 + 2 * DEVICES_MAX)
    bases, bits = devices[1 : 1 + DEVICES_MAX], devices[1 + DEVICES_MAX :]
    for i, (base, size) in enumerate(REGIONS_OF_DEVICES):
        cap = script.cap_of(API["ROOT_DEVICE"] + i)
        assert (cap["base"] << 12, cap["size_bits"], cap["free"]) == (base, size, 0)
    rest = [0] * (DEVICES_MAX - len(REGIONS_OF_DEVICES))
    assert devices[0] == len(REGIONS_OF_DEVICES)
    assert bases == [base for base, _ in REGIONS_OF_DEVICES] + rest
    assert bits == [size for _, size in REGIONS_OF_DEVICES] + rest


def registers_of_the_first_thread(script: Script) -> None:
    host, thread = script.run.host, script.run.first_thread
    assert host.word(thread) == API["ROOT_INFO"]
    assert host.word(thread + 4 * 15) == PC_OF_SVC, "where its image says"
    cap = script.run.kernel.thread(thread).slots["buffer_frame"].cap
    assert cap is not None
    assert cap["buffer"] == 1
    assert host.word(thread + offset("tcb", "buffer")) == _address(script, BUFFER)


def the_idle_thread_waits_in_its_loop(script: Script) -> None:
    """Before anything is deleted, which sends it there, too; in system mode, to be interrupted."""
    host, table = script.run.host, script.run.table
    assert host.word(table["idle_thread"] + 4 * 15) == table["idle_loop"]
    assert host.word(table["idle_thread"] + 4 * 16) == SYSTEM_MODE


def memory_of_the_first_thread_is_clear(script: Script) -> None:
    """Large frames can be executed at once; boot's objects are zero except for their content."""
    for slot, size in LARGE.items():
        for at in (0, 4096, size // 2, size - 4096):
            assert script.run.host.is_published(_address(script, slot) + at, 4096), slot
    directory = script.object_of(API["ROOT_PAGE_DIRECTORY"])
    behind = range(directory + 4 * 4096, directory + SIZES["page_directory"], 4)
    used = [at for at in behind if script.run.host.word(at)]
    mapped = (API["IMAGE_BASE"] >> 20) * 4 + 4 * 4096 + directory
    assert set(used) <= {mapped, directory + offset("page_directory", "asid") & ~3}, used
    for i in range(1, 3):
        base = script.object_of(API["ROOT_UNTYPED"] + i)
        assert script.run.host.is_published(base, 4096)
