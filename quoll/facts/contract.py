"""The contract of a function with its callers: preserved registers, and the places of its stores.

A callee may store into the frames of its callers: above sp as it was handed over, or relative to
an address that a register held. Such stores are known places: they destroy a saved register or a
return address there (rule 35). Stores elsewhere are not recorded: S1 and F1 (``quoll.assumptions``)
are about that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from quoll.arm.insn import SP

__all__ = ["CALLEE_SAVED", "STANDARD", "UNKNOWN", "ByteSpan", "CallContract", "spans"]

CALLEE_SAVED = frozenset([*range(4, 12), SP])  # procedure call standard, AAPCS 6.1.1
SPANS = 64  # places told apart, by base
FAR = 1 << 16  # bytes: what reaches further, as in recursion, reaches everything
END = 1 << 31


class ByteSpan(NamedTuple):
    """Bytes from ``low`` to before ``high``, counted from what a register held at entry."""

    base: int
    low: int
    high: int

    def moved(self, base: int, offset: int) -> ByteSpan:
        """The same bytes where the register held what ``base`` holds plus ``offset``."""
        return ByteSpan(base, self.low + offset, self.high + offset)


@dataclass(frozen=True, slots=True)
class CallContract:
    """``preserved``: the callee-saved registers that every return preserves.

    ``stores``: bytes of callers' memory that may be stored to, of sp those above it only.
    ``elsewhere``: whether something is stored that is not known to be in one of them.
    """

    preserved: frozenset[int] = CALLEE_SAVED
    stores: tuple[ByteSpan, ...] = ()
    elsewhere: bool = False

    @staticmethod
    def of_any(contracts: Iterable[CallContract]) -> CallContract:
        """What can be counted on if one of ``contracts`` holds, which must not be none."""
        different = set(contracts)
        if len(different) == 1:
            return different.pop()
        return CallContract(
            frozenset.intersection(*(c.preserved for c in different)),
            spans(frozenset().union(*(c.stores for c in different))),
            any(c.elsewhere for c in different),
        )

    def widened(self, before: CallContract) -> CallContract:
        """The same, but of a base where more is stored than ``before``: all that it can reach."""
        grown = {span.base for span in set(self.stores) ^ set(before.stores)}
        return replace(self, stores=spans((*self.stores, *map(_whole, grown))))

    def preserving(self, preserved: frozenset[int]) -> CallContract:
        """The same with other preserved registers."""
        return replace(self, preserved=preserved)


STANDARD = CallContract()  # what a function leaves that keeps to the procedure call standard
UNKNOWN = CallContract(elsewhere=True)  # the same of one that is not examined


def _whole(base: int) -> ByteSpan:
    return ByteSpan(base, 0 if base == SP else -END, END)


def spans(found: Iterable[ByteSpan]) -> tuple[ByteSpan, ...]:
    """``found`` in order, joined where they meet; a finite number of different results."""
    by_base: dict[int, list[ByteSpan]] = {}
    for span in sorted(found):
        low = max(span.low, 0) if span.base == SP else span.low
        if low >= span.high:
            continue
        known = by_base.setdefault(span.base, [])
        if known and low <= known[-1].high:
            known[-1] = ByteSpan(span.base, known[-1].low, max(known[-1].high, span.high))
        else:
            known.append(ByteSpan(span.base, low, span.high))
    joined: list[ByteSpan] = []
    for base, known in sorted(by_base.items()):
        low, high = known[0].low, max(span.high for span in known)
        if low < -FAR or high > FAR:
            joined.append(_whole(base))
        else:
            joined += known if len(known) <= SPANS else [ByteSpan(base, low, high)]
    return tuple(joined)
