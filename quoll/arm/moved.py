"""Instructions decoded at address 0, moved to where they stand.

There are few encodings and millions of instructions, so that this is what decoding costs.
"""

from __future__ import annotations

from quoll.arm.insn import Insn

__all__ = ["branch_at", "insn_at"]


def insn_at(insn: Insn, addr: int) -> Insn:
    """``insn``, decoded at address 0, moved to ``addr``."""
    if insn.target is not None:
        return _aimed(insn, addr, insn.raw, insn.target)
    return Insn._make((addr, *insn[1:]))


def branch_at(insn: Insn, addr: int, raw: bytes, distance: int) -> Insn:
    """A branch, decoded at address 0 with distance 0, moved to ``addr``."""
    assert insn.target is not None
    return _aimed(insn, addr, raw, insn.target + distance)


def _aimed(insn: Insn, addr: int, raw: bytes, target: int) -> Insn:
    aligned = insn.thumb and insn.mnemonic == "blx"  # A8.8.25: relative to Align(PC, 4)
    target = (target + (addr & ~3 if aligned else addr)) & 0xFFFFFFFF
    text = f"{insn.text.rpartition('#')[0]}{target:#x}"
    return insn._replace(addr=addr, raw=raw, target=target, text=text)
