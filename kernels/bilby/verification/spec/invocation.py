# SPDX-License-Identifier: BSD-2-Clause
"""The inputs of an operation: error codes, an invocation, capability addresses."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernels.bilby.verification.spec.layout import API
from kernels.bilby.verification.spec.state import Cap, Kernel, Slot, Thread

E = {name.removeprefix("ERROR_"): value for name, value in API.items() if "ERROR_" in name}


class Refused(Exception):
    """An operation ends with an error code and has changed nothing."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.code = E[error]


@dataclass(slots=True)
class Invocation:
    """A message to an object: its words, and the slots of the capabilities sent."""

    kernel: Kernel
    caller: Thread
    slot: Slot
    label: int
    length: int
    extra: list[Slot] = field(default_factory=list)
    answer: int = 0  # words of the result

    def word(self, index: int) -> int:
        return self.kernel.message_word(self.caller, index)

    @property
    def cap(self) -> Cap:
        assert self.slot.cap is not None
        return self.slot.cap

    def require(self, length: int, extra: int = 0) -> None:
        if self.length < length or len(self.extra) < extra:
            raise Refused("TRUNCATED")


def resolve(kernel: Kernel, root: Cap | None, address: int, bits: int) -> Slot | None:
    """The slot that the low ``bits`` bits of an address lead to."""
    slot: Slot | None = None
    node = root
    while bits:
        if node is None or node.kind != "cnode":
            return None
        level = node["radix"] + node["guard_size"]
        if level > bits:
            return None
        bits -= level
        rest = address >> bits
        if rest >> node["radix"] & (1 << node["guard_size"]) - 1 != node["guard"]:
            return None
        slot = kernel.cnode(node["object"]).slots[rest & (1 << node["radix"]) - 1]
        node = slot.cap
    return slot


def lookup(kernel: Kernel, thread: Thread, address: int) -> Slot | None:
    return resolve(kernel, thread.slots["cspace"].cap, address, 32)


def find(kernel: Kernel, root: Cap | None, index: int, depth: int) -> Slot:
    """A slot at an index of given depth below a CNode."""
    if root is None or root.kind != "cnode":
        raise Refused("INVALID_CAPABILITY")
    if not 1 <= depth <= 32:
        raise Refused("RANGE")
    slot = resolve(kernel, root, index, depth)
    if slot is None:
        raise Refused("LOOKUP_FAILED")
    return slot


def find_empty(kernel: Kernel, root: Cap | None, index: int, depth: int) -> Slot:
    slot = find(kernel, root, index, depth)
    if slot.cap is not None:
        raise Refused("SLOT_OCCUPIED")
    return slot
