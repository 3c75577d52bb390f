# SPDX-License-Identifier: BSD-2-Clause
"""One untyped region of the host build, and system calls on it."""

from __future__ import annotations

from kernels.bilby.verification.fuzz.host import Host
from kernels.bilby.verification.spec.layout import API, LIMITS, message

__all__ = ["DIRECTORY_BYTES", "FREE", "OK", "REGION", "Region"]

REGION = 0xB0800000  # of the second untyped capability (the host's board.h)
SLOT = 16
DIRECTORY_BYTES = 32768
KERNEL_PART = 4 * (4096 - LIMITS["KERNEL_DESCRIPTORS"])
STEP = 4 * LIMITS["KERNEL_DESCRIPTORS"] // LIMITS["KERNEL_MAPS_STEPS"]
FREE = API["ROOT_FREE"]
OK = 0


class Region:
    """One untyped region, with objects made from it."""

    def __init__(self, host: Host, table: dict[str, int]) -> None:
        self.host = host
        self.thread = host.syscall(API["SYS_YIELD"], [0] * 6).current
        self.buffer = host.word(self.thread + 112)
        self.word = host.word(table["root_slots"]) + SLOT * (API["ROOT_UNTYPED"] + 1) + 4
        self.directory = table["kernel_directory"]

    def invoke(self, cap: int, label: int, words: list[int], extra: list[int]) -> int:
        writes = {self.buffer + 4 * (1 + i): words[i] for i in range(4, len(words))}
        writes |= {self.buffer + 4 * (122 + i): cap for i, cap in enumerate(extra)}
        registers = [cap, message(len(words), len(extra), 0, label), *(words + [0] * 4)[:4]]
        self.host.syscall(API["SYS_CALL"], registers, True, writes)
        return self.host.word(self.thread + 4) >> 12

    def retype(self, kind: str, slot: int) -> int:
        words = [API[f"TYPE_{kind}"], 0, 0, 0, FREE + slot, 1]
        return self.invoke(API["ROOT_UNTYPED"] + 1, API["LABEL_UNTYPED_RETYPE"], words, [1])

    def delete(self, slot: int) -> int:
        return self.invoke(1, API["LABEL_CNODE_DELETE"], [FREE + slot, 32], [])

    @property
    def copied(self) -> int:
        return self.host.word(self.word) >> 5 & 15

    @property
    def free(self) -> int:
        return self.host.word(self.word) >> 9 << 4

    def begin(self, steps: int, *, really: bool = True) -> int:
        """As a preempted retype leaves it; the directory's address."""
        base = REGION + -(-self.free // DIRECTORY_BYTES) * DIRECTORY_BYTES
        for at in range(KERNEL_PART, KERNEL_PART + steps * STEP, 4):
            if really:
                self.host.write(base + at, self.host.word(self.directory + at))
        self.host.write(self.word, self.host.word(self.word) | steps << 5)
        return base

    def kernel_part(self, base: int) -> list[int]:
        return self.host.words(base + KERNEL_PART, LIMITS["KERNEL_DESCRIPTORS"])
