"""Instructions decoded at address 0, moved to where they stand.

There are few encodings and millions of instructions, so that this is what decoding costs.
"""

from __future__ import annotations

from quoll.arm.insn import Insn

__all__ = ["branch_at", "insn_at"]


class _Draft:
    """An ``Insn`` before it is frozen: it is filled eight times as fast, and there are millions."""

    __slots__ = Insn.__slots__

    def __init__(self, insn: Insn, addr: int) -> None:
        self.addr = addr
        self.raw = insn.raw
        self.thumb = insn.thumb
        self.mnemonic = insn.mnemonic
        self.text = insn.text
        self.cond = insn.cond
        self.flow = insn.flow
        self.target = insn.target
        self.target_thumb = insn.target_thumb
        self.sets_flags = insn.sets_flags
        self.reads_flags = insn.reads_flags
        self.reads = insn.reads
        self.writes = insn.writes
        self.shift = insn.shift
        self.memory = insn.memory
        self.transfers = insn.transfers
        self.sources = insn.sources

    def frozen(self) -> Insn:
        """The instruction, which is this object: the two classes have the same slots."""
        self.__class__ = Insn  # type: ignore[assignment]
        return self  # type: ignore[return-value]


def insn_at(insn: Insn, addr: int) -> Insn:
    """``insn``, decoded at address 0, moved to ``addr``."""
    draft = _Draft(insn, addr)
    if insn.target is not None:
        _aim(draft, insn.target, addr)
    return draft.frozen()


def branch_at(insn: Insn, addr: int, raw: bytes, distance: int) -> Insn:
    """A branch, decoded at address 0 with distance 0, moved to ``addr``."""
    draft = _Draft(insn, addr)
    draft.raw = raw
    assert insn.target is not None
    _aim(draft, insn.target + distance, addr)
    return draft.frozen()


def _aim(draft: _Draft, target: int, addr: int) -> None:
    aligned = draft.thumb and draft.mnemonic == "blx"  # A8.8.25: relative to Align(PC, 4)
    draft.target = (target + (addr & ~3 if aligned else addr)) & 0xFFFFFFFF
    draft.text = f"{draft.text.rpartition('#')[0]}{draft.target:#x}"
