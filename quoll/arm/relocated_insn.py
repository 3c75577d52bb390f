"""Instructions decoded at address 0 and moved to their own address.

There are few encodings and millions of instructions, so moving dominates the time of decoding:
named tuples are made from tuples directly.
"""

from __future__ import annotations

from operator import concat

from quoll.arm.insn import Insn

__all__ = ["aimed", "branch_at", "moved"]

WORD = 1 << 32
CACHED = 1 << 12  # branches that differ in more than their distance
_tuple = tuple.__new__


def moved(rest: tuple[object, ...], addr: int) -> Insn:
    """An instruction without a direct target at ``addr``; ``rest`` are its other fields."""
    return _tuple(Insn, concat((addr,), rest))


def branch_at(insn: Insn, addr: int, raw: bytes, distance: int) -> Insn:
    """A branch, decoded at address 0 with distance 0, moved to ``addr``."""
    assert insn.target is not None
    return aimed(insn, addr, raw, insn.target + distance)


def aimed(insn: Insn, addr: int, raw: bytes, target: int) -> Insn:
    """``insn`` at ``addr``, with the target it would have at address 0."""
    aligned = insn.thumb and insn.mnemonic == "blx"  # A8.8.25: relative to Align(PC, 4)
    target = (target + (addr & ~3 if aligned else addr)) % WORD
    key = insn.raw, insn.thumb, insn.cond
    around = _around.get(key)
    if around is None:
        if len(_around) >= CACHED:
            _around.clear()
        around = _around[key] = _around_target(insn)
    before, name, between, after = around
    return _tuple(Insn, (addr, raw, *before, f"{name}{target:#x}", *between, target, *after))


_Around = tuple[tuple[object, ...], str, tuple[object, ...], tuple[object, ...]]
_around: dict[tuple[bytes, bool, int], _Around] = {}


def _around_target(insn: Insn) -> _Around:
    """The fields of a branch without address, bytes and target, and its text up to the target."""
    text, target = Insn._fields.index("text"), Insn._fields.index("target")
    name = insn.text.rpartition("#")[0]
    return insn[2:text], name, insn[text + 1 : target], insn[target + 1 :]
