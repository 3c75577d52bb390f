"""The contract of a function with its callers: preserved registers, and places of its stores.

A callee may store into the frames of its callers: above its entry sp, or relative to an address in
a register. Such stores are at known places: they destroy a saved register or a return address there
(rule 35). Stores elsewhere are not recorded: S1 and F1 (``quoll.assumptions``) cover them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from quoll.arm.insn import SP

__all__ = [
    "ANY_ARGUMENTS",
    "CALLEE_SAVED",
    "STANDARD",
    "UNKNOWN",
    "ByteSpan",
    "CallContract",
    "ReadArguments",
    "contract_of_any",
    "spans",
]

CALLEE_SAVED = frozenset([*range(4, 12), SP])  # procedure call standard, AAPCS 6.1.1
SPANS = 64  # distinct places per base
UNEXAMINED = 64  # bytes above sp that may hold arguments of a function of unknown code
FAR = 1 << 16  # bytes: a store that reaches further, as in recursion, may reach everything
END = 1 << 31


class ByteSpan(NamedTuple):
    """Bytes from ``low`` to before ``high``, relative to a register's entry value."""

    base: int
    low: int
    high: int

    def moved(self, base: int, offset: int) -> ByteSpan:
        """The same bytes, where the register holds the entry value of ``base`` plus ``offset``."""
        return ByteSpan(base, self.low + offset, self.high + offset)


@dataclass(frozen=True, slots=True)
class CallContract:
    """``preserved``: the callee-saved registers that every return preserves.

    ``stores``: bytes of callers' memory that may be stored to; relative to sp, only bytes above it.
    ``elsewhere``: whether a store is not known to be in one of them.
    """

    preserved: frozenset[int] = CALLEE_SAVED
    stores: tuple[ByteSpan, ...] = ()
    elsewhere: bool = False

    @staticmethod
    def of_any(contracts: Iterable[CallContract]) -> CallContract:
        """The common guarantee of ``contracts``, of which there is at least one."""
        different = set(contracts)
        if len(different) == 1:
            return different.pop()
        return CallContract(
            frozenset.intersection(*(c.preserved for c in different)),
            spans(frozenset().union(*(c.stores for c in different))),
            any(c.elsewhere for c in different),
        )

    def widened(self, before: CallContract) -> CallContract:
        """The same contract, but with all reachable bytes of each base that has grown since
        ``before``.
        """
        grown = {span.base for span in set(self.stores) ^ set(before.stores)}
        return replace(self, stores=spans((*self.stores, *map(_whole, grown))))

    def preserving(self, preserved: frozenset[int]) -> CallContract:
        """The same contract with other preserved registers."""
        return replace(self, preserved=preserved)


class CallFrame(NamedTuple):
    """A frame at a call. ``depth``: from sp at the call to sp at entry, in bytes; ``saved``:
    distances from sp at the call of the words that hold saved registers.
    """

    depth: int
    saved: frozenset[int]


class ReadArguments(NamedTuple):
    """The words of its callers that a function may read: ``registers`` at its entry, and ``stack``
    bytes above sp at its entry.
    """

    registers: frozenset[int]
    stack: int

    def arguments(self, frame: CallFrame | None) -> frozenset[int]:
        """Distances from sp of the words above it that may hold arguments.

        They are the words it reads. A function that is not examined may read ``UNEXAMINED`` bytes,
        and any word of the caller's ``frame`` but saved registers.
        """
        if self.stack != END:
            return frozenset(range(0, min(self.stack, FAR), 4))
        first = frozenset(range(0, UNEXAMINED, 4))
        if frame is None:
            return first
        return first.union(set(range(UNEXAMINED, min(frame.depth, FAR), 4)) - frame.saved)

    @staticmethod
    def of_any(read: Iterable[ReadArguments]) -> ReadArguments:
        """The words that any of several functions may read."""
        both = list(read)
        registers = frozenset[int]().union(*(r.registers for r in both))
        return ReadArguments(registers, max((r.stack for r in both), default=0))


STANDARD = CallContract()  # a function that follows the procedure call standard
ANY_ARGUMENTS = ReadArguments(frozenset(range(16)), END)  # of a function that is not examined
UNKNOWN = CallContract(elsewhere=True)  # a function that is not examined


def contract_of_any(contracts: Mapping[int, CallContract], callees: Iterable[int]) -> CallContract:
    """The joint contract of ``callees``; without any, the standard's."""
    return CallContract.of_any((STANDARD, *(contracts.get(c, UNKNOWN) for c in callees)))


def _whole(base: int) -> ByteSpan:
    return ByteSpan(base, 0 if base == SP else -END, END)


def spans(found: Iterable[ByteSpan]) -> tuple[ByteSpan, ...]:
    """``found`` in order, joined where they touch, out of a finite number of possible results."""
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
