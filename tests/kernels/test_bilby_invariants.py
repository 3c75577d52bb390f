# SPDX-License-Identifier: BSD-2-Clause
"""The kernel's data after its user-level tests, looked at from outside.

`linger.elf` runs the whole suite and then waits. QEMU saves the memory, and the
invariants that the kernel's files state are checked on it, with the layout read
from `objects.layout`.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

from tests.testing.bilby.build import BILBY, BUILD, RUN, symbols, tables

WINDOW, RAM, RAM_BYTES = 0xF0000000, 0x80000000, 0x08000000
SLOT = 16
KERNEL_DESCRIPTORS = 256
INACTIVE, RUNNING, SEND, RECEIVE, WAIT, REPLY = range(6)  # kernel.h


def load_layout() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bilby_layout", BILBY / "tools" / "layout.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bilby_layout"] = module
    spec.loader.exec_module(module)
    return module


class Kernel:
    """Memory by window address; fields of capabilities and objects by name."""

    def __init__(self, memory: bytes, table: dict[str, int]) -> None:
        text = "".join(table.read_text(encoding="utf-8") for table in tables())
        records = load_layout().parse(text)
        self.memory = memory
        self.symbols = table
        self.caps = {r.number: r for r in records if r.kind == "capability"}
        self.objects = {r.name: r for r in records if r.kind == "object"}
        self.cap_fields = {(n, f.name): f for n, r in self.caps.items() for f in r.fields}
        self.offsets = {(k, f.name): f.offset for k, r in self.objects.items() for f in r.fields}
        bytes_of = load_layout().field_bytes
        self.bytes = {(k, f.name): bytes_of(f) for k, r in self.objects.items() for f in r.fields}
        self.slots = set(self.find_slots())

    def word(self, address: int) -> int:
        assert address % 4 == 0
        assert WINDOW <= address < WINDOW + RAM_BYTES, hex(address)
        (value,) = struct.unpack_from("<I", self.memory, address - WINDOW)
        return int(value)

    def get(self, kind: str, address: int, name: str) -> int:
        place = address + self.offsets[kind, name]
        if self.bytes[kind, name] == 1:
            return int(self.memory[place - WINDOW])
        return self.word(place)

    def offset(self, kind: str, name: str) -> int:
        return int(self.offsets[kind, name])

    def kind(self, slot: int) -> str:
        return str(self.caps[self.word(slot) & 0x1F].name)

    def field(self, slot: int, name: str) -> int:
        item = self.cap_fields[self.word(slot) & 0x1F, name]
        value = int((self.word(slot + 4 * item.word) & item.mask) >> item.low)
        if item.window is not None:
            return int(WINDOW | value << item.window)
        return int(value + item.plus)

    def find_slots(self) -> Iterator[int]:
        """Every slot that a capability or the derivation list leads to, and the kernel's own."""
        irq = self.symbols["irq_slots"]
        work = [irq + SLOT * i for i in range(64)]
        root = self.word(self.symbols["root_slots"])
        work += [root + SLOT * i for i in range(1 << 15)]
        seen: set[int] = set()
        while work:
            slot = work.pop()
            if slot in seen:
                continue
            seen.add(slot)
            yield slot
            kind = self.kind(slot)
            work += [at for link in (8, 12) if (at := self.word(slot + link) & ~0xF)]
            if kind == "cnode":
                base = self.field(slot, "object")
                work += [base + SLOT * i for i in range(1 << self.field(slot, "radix"))]
            elif kind in ("tcb", "reply"):
                base = self.field(slot, "object")
                work += [
                    base + self.offset("tcb", name)
                    for name in ("cspace", "vspace", "reply", "caller", "buffer_frame")
                ]

    def of_kind(self, kind: str) -> list[int]:
        return sorted(slot for slot in self.slots if self.kind(slot) == kind)

    def all(self, kind: str) -> list[int]:
        return sorted({self.field(slot, "object") for slot in self.of_kind(kind)})


def monitor(path: Path, *commands: str) -> None:
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(str(path))
        received = b""
        for command in ("", *commands):
            if command:
                channel.sendall(command.encode() + b"\n")
            while not received.endswith(b"(qemu) "):
                received += channel.recv(65536)
            received = b""
        channel.sendall(b"quit\n")
        while channel.recv(65536):
            pass


@pytest.fixture(scope="module")
def kernel(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    folder = tmp_path_factory.mktemp("memory")
    channel, image = folder / "monitor", folder / "image"
    process = subprocess.Popen(
        [str(RUN), "kzm-after", "linger", "-monitor", f"unix:{channel},server,nowait"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BILBY_TIMEOUT": "60"},
    )
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith("# lingering"):
            break
    assert seen[-1].strip() == "# lingering", "".join(seen)
    time.sleep(0.2)  # until the first thread waits
    monitor(channel, "stop", f'pmemsave {RAM:#x} {RAM_BYTES:#x} "{image}"')
    process.communicate(timeout=30)
    memory = image.read_bytes()
    image.unlink()
    assert len(memory) == RAM_BYTES
    return Kernel(memory, symbols(BUILD / "kernel.elf"))


def test_there_is_something_to_check(kernel: Kernel) -> None:
    assert len(kernel.all("tcb")) > 300
    assert len(kernel.all("page_directory")) > 300
    assert len([slot for slot in kernel.slots if kernel.kind(slot) != "null"]) > 5000
    assert kernel.of_kind("irq_handler")
    states = {kernel.get("tcb", thread, "state") for thread in kernel.all("tcb")}
    assert {INACTIVE, SEND, RECEIVE, REPLY, WAIT} <= states


def test_derivation_list_is_doubly_linked(kernel: Kernel) -> None:
    for slot in kernel.slots:
        before = kernel.get("slot", slot, "prev") & ~0xF
        after = kernel.get("slot", slot, "next") & ~0xF
        if kernel.kind(slot) == "null":
            assert kernel.get("slot", slot, "prev") == 0, hex(slot)
            assert after == 0, hex(slot)
            continue
        if after:
            assert after in kernel.slots
            assert kernel.kind(after) != "null"
            assert kernel.get("slot", after, "prev") & ~0xF == slot, hex(slot)
        if before:
            assert before in kernel.slots
            assert kernel.get("slot", before, "next") & ~0xF == slot, hex(slot)


def test_each_list_begins_with_what_boot_or_a_thread_gave(kernel: Kernel) -> None:
    root = kernel.word(kernel.symbols["root_slots"])
    for slot in kernel.slots:
        if kernel.kind(slot) == "null" or kernel.get("slot", slot, "prev") & ~0xF:
            continue
        master = kernel.kind(slot) == "reply" and kernel.field(slot, "master")
        assert master or root <= slot < root + SLOT * 256, hex(slot)


def test_each_list_ends(kernel: Kernel) -> None:
    heads = [
        slot
        for slot in kernel.slots
        if kernel.kind(slot) != "null" and not kernel.get("slot", slot, "prev") & ~0xF
    ]
    visited: set[int] = set()
    for slot in heads:
        while slot:
            assert slot not in visited
            visited.add(slot)
            slot = kernel.get("slot", slot, "next") & ~0xF
    assert visited == {slot for slot in kernel.slots if kernel.kind(slot) != "null"}


def region(kernel: Kernel, slot: int) -> tuple[int, int] | None:
    """First and last byte (exclusive) of an object made from RAM; None for others."""
    kind = kernel.kind(slot)
    if kind == "frame":
        if kernel.field(slot, "device"):
            return None
        base = (kernel.field(slot, "base") << 12) - RAM + WINDOW
        return base, base + (1 << 12 + 4 * kernel.field(slot, "size"))
    if kind in ("null", "irq_control", "irq_handler", "reply", "device"):
        return None
    if kind == "untyped":
        size = 1 << kernel.field(slot, "size_bits")
    elif kind == "cnode":
        size = SLOT << kernel.field(slot, "radix")
    else:
        size = kernel.objects[kind].size
    base = kernel.field(slot, "object")
    return base, base + size


def test_objects_are_aligned_and_do_not_overlap(kernel: Kernel) -> None:
    regions = {
        (kernel.kind(slot), *found)
        for slot in kernel.slots
        if (found := region(kernel, slot)) is not None and kernel.kind(slot) != "untyped"
    }
    ordered = sorted(regions, key=lambda r: r[1:])
    assert len(ordered) > 3000
    for kind, first, end in ordered:
        assert first % (end - first) == 0, (kind, hex(first))
    for (_, _, end), (kind, first, _) in pairwise(ordered):
        assert end <= first, (kind, hex(first))


def test_objects_lie_in_the_used_part_of_their_untyped_region(kernel: Kernel) -> None:
    parents = [(*(region(kernel, p) or (0, 0)), p) for p in kernel.of_kind("untyped")]
    checked = 0
    for slot in kernel.slots:
        if (found := region(kernel, slot)) is None:
            continue
        first, end = found
        for start, stop, parent in parents:
            if start <= first < stop and end - first < stop - start:
                assert end <= start + 16 * kernel.field(parent, "free"), hex(slot)
                checked += 1
    assert checked > 3000


def test_threads_and_notifications_are_bound_to_each_other(kernel: Kernel) -> None:
    bound = [t for t in kernel.all("tcb") if kernel.get("tcb", t, "bound")]
    assert bound
    for thread in bound:
        notification = kernel.get("tcb", thread, "bound")
        assert notification in kernel.all("notification")
        assert kernel.get("notification", notification, "bound") == thread


def queue(kernel: Kernel, head: int, tail: int, following: str, previous: str) -> list[int]:
    threads, before = [], 0
    while head:
        assert head not in threads
        threads.append(head)
        assert kernel.get("tcb", head, previous) == before
        before, head = head, kernel.get("tcb", head, following)
    assert tail == before
    return threads


def test_scheduler(kernel: Kernel) -> None:
    """Bitmaps <=> queues; queued <=> in a queue => runnable; all asleep now."""
    queued = set()
    for priority in range(256):
        at = kernel.symbols["ready"] + 8 * priority
        threads = queue(kernel, kernel.word(at), kernel.word(at + 4), "sched_next", "sched_prev")
        queued |= set(threads)
        for thread in threads:
            assert kernel.get("tcb", thread, "state") == RUNNING
            assert kernel.get("tcb", thread, "priority") == priority
        bits = kernel.word(kernel.symbols["ready_bits"] + 4 * (priority // 32))
        assert bits >> priority % 32 & 1 == bool(threads)
        words = kernel.word(kernel.symbols["ready_words"])
        assert words >> priority // 32 & 1 == (bits != 0)
    for thread in kernel.all("tcb"):
        assert kernel.get("tcb", thread, "queued") == (thread in queued)
    assert kernel.word(kernel.symbols["woken"]) == 0
    assert kernel.word(kernel.symbols["current_thread"]) == kernel.symbols["idle_thread"]
    assert not queued


def test_waiting_threads_and_what_they_wait_on(kernel: Kernel) -> None:
    waiting = {}
    for endpoint in kernel.all("endpoint"):
        head, tail, state = (kernel.get("endpoint", endpoint, n) for n in ("head", "tail", "state"))
        threads = queue(kernel, head, tail, "wait_next", "wait_prev")
        assert (state == 0) == (not threads)
        for thread in threads:
            assert kernel.get("tcb", thread, "state") == {1: SEND, 2: RECEIVE}[state]
            waiting[thread] = endpoint
    for notification in kernel.all("notification"):
        head, tail = (kernel.get("notification", notification, n) for n in ("head", "tail"))
        threads = queue(kernel, head, tail, "wait_next", "wait_prev")
        signalled = kernel.get("notification", notification, "signalled")
        assert not (signalled and threads)
        assert signalled or not kernel.get("notification", notification, "pending")
        for thread in threads:
            assert kernel.get("tcb", thread, "state") == WAIT
            waiting[thread] = notification
    for thread in kernel.all("tcb"):
        blocked = kernel.get("tcb", thread, "state") in (SEND, RECEIVE, WAIT)
        assert blocked == (thread in waiting)
        if blocked:
            assert kernel.get("tcb", thread, "waits_on") == waiting[thread]


def test_replies_belong_to_waiting_callers(kernel: Kernel) -> None:
    answering = [slot for slot in kernel.of_kind("reply") if not kernel.field(slot, "master")]
    callers = [kernel.field(slot, "object") for slot in answering]
    assert len(set(callers)) == len(callers)
    assert len(callers) >= 3
    for slot, caller in zip(answering, callers, strict=True):
        assert kernel.get("tcb", caller, "state") == REPLY
        master = caller + kernel.offset("tcb", "reply")
        assert kernel.get("slot", master, "next") & ~0xF == slot
    for thread in kernel.all("tcb"):
        reply = thread + kernel.offset("tcb", "reply")
        configured = kernel.word(thread + kernel.offset("tcb", "cspace")) & 0x1F != 0
        if configured or kernel.word(reply):
            assert kernel.field(reply, "master") == 1


def test_hardware_address_space_numbers(kernel: Kernel) -> None:
    owners = [kernel.word(kernel.symbols["owner"] + 4 * number) for number in range(256)]
    assert owners[0] == 0
    assert all(owners[1:]), "the suite does not use all numbers"
    for number, directory in enumerate(owners[1:], 1):
        assert kernel.get("page_directory", directory, "asid") == number
    for directory in kernel.all("page_directory"):
        number = kernel.get("page_directory", directory, "asid")
        assert number == 0 or owners[number] == directory


def test_mappings_and_shadows_agree(kernel: Kernel) -> None:
    mapped: dict[int, int] = {}  # descriptor -> slot of the capability
    for slot in kernel.of_kind("frame"):
        entry = kernel.field(slot, "entry")
        if not entry:
            continue
        size = kernel.field(slot, "size")
        shadow = entry + (1024 if size < 2 else 16384)
        assert kernel.word(shadow) & ~0xF == slot
        for i in range(16 if size in (1, 3) else 1):
            assert entry + 4 * i not in mapped
            mapped[entry + 4 * i] = slot
            descriptor = kernel.word(entry + 4 * i)
            assert (
                descriptor & -(1 << 12 + 4 * size) & 0xFFFFFFFF == kernel.field(slot, "base") << 12
            )
            assert descriptor == kernel.word(entry)
    tables = kernel.all("page_table")
    held: dict[int, int] = {}
    for table in tables:
        nibbles = [kernel.word(table + 1024 + 4 * i) & 0xF for i in range(8)]
        entry = sum(nibble << 4 * i for i, nibble in enumerate(nibbles))
        if entry:
            assert kernel.word(entry) == table - WINDOW + RAM | 1
            assert kernel.kind(kernel.word(entry + 16384)) == "page_table"
            held[entry] = table
        for i in range(256):
            assert (kernel.word(table + 4 * i) != 0) == (table + 4 * i in mapped)
    base = kernel.symbols["kernel_directory"]
    for directory in kernel.all("page_directory"):
        for i in range(4096 - KERNEL_DESCRIPTORS):
            entry = directory + 4 * i
            assert (kernel.word(entry) != 0) == (entry in mapped or entry in held)
        for i in range(4096 - KERNEL_DESCRIPTORS, 4096):
            assert kernel.word(directory + 4 * i) == kernel.word(base + 4 * i)
    assert len(mapped) > 3000
    assert len(held) > 300


def test_user_registers_are_user_registers(kernel: Kernel) -> None:
    for thread in kernel.all("tcb"):
        if kernel.word(thread + kernel.offset("tcb", "reply")):  # it was ever configured
            assert kernel.word(thread + 64) & 0x1DF == 0x150  # user mode, FIQ and aborts masked


def test_message_buffers_are_inside_their_frames(kernel: Kernel) -> None:
    for thread in kernel.all("tcb"):
        buffer = kernel.get("tcb", thread, "buffer")
        slot = thread + kernel.offset("tcb", "buffer_frame")
        assert (buffer != 0) == (kernel.kind(slot) == "frame")
        if buffer:
            first, end = region(kernel, slot) or (0, 0)
            assert first <= buffer <= end - 512
            assert kernel.field(slot, "can_write")
