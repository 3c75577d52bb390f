"""Data accesses: the lines that a load or store may touch, from what is known of its address."""

from __future__ import annotations

from dataclasses import dataclass

from cache.geometry import Geometry, Hierarchy
from cache.memory_map import Cacheability
from quoll.arm.insn import Access, Insn, Memory
from quoll.valueset import ValueSet

__all__ = ["DataAccess", "DataModel"]

WORD = 4
MEMBERS = 256  # of an address set that are looked at one by one


@dataclass(frozen=True, slots=True)
class DataAccess:
    """One line of a data access.

    ``candidates`` are the lines it may be, None for any line at all. ``certain``: it is the only
    candidate, in cached memory of fixed translation, and the access is executed for sure.
    """

    access: Access
    low: int | None
    high: int | None
    words: int
    candidates: tuple[int, ...] | None
    memory: Cacheability
    fixed: bool  # cached memory whose translation never changes
    certain: bool


class DataModel:
    """Lines per instruction and address set."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._geometry: Geometry = hierarchy.l1d
        self._lines_seen: dict[int, tuple[Cacheability, bool]] = {}

    def accesses(self, insn: Insn, addresses: ValueSet | None) -> tuple[DataAccess, ...]:
        """The accesses of ``insn`` in order, one per line; none if it does not access memory.

        ``addresses`` holds the possible addresses of the first byte; None: any.
        """
        memory = insn.memory
        if memory is None or memory.count == 0:
            return ()
        size = memory.size * memory.count
        exact = None if addresses is None else addresses.exact
        if exact is not None:
            return self._exact(insn, memory, exact, size)
        if addresses is None or addresses.high + size > 1 << 32:
            return self._spread(insn, memory, None, None, None)
        candidates = self._candidates(addresses, size)
        if candidates is not None and len(candidates) == 1:
            return self._one_line(insn, memory, addresses, candidates[0])
        return self._spread(insn, memory, addresses, candidates, addresses.high + size - 1)

    def _exact(self, insn: Insn, memory: Memory, addr: int, size: int) -> tuple[DataAccess, ...]:
        geometry, found = self._geometry, []
        for line in geometry.lines(addr, size):
            low = max(addr, line * geometry.line_bytes)
            high = min(addr + size, (line + 1) * geometry.line_bytes)
            words = (high - 1) // WORD - low // WORD + 1
            found.append(self._at(insn, memory, low, low, words, line))
        return tuple(found)

    def _one_line(
        self, insn: Insn, memory: Memory, addresses: ValueSet, line: int
    ) -> tuple[DataAccess, ...]:
        words = self._words(memory, addresses)
        return (self._at(insn, memory, addresses.low, addresses.high, words, line),)

    def _at(
        self, insn: Insn, memory: Memory, low: int, high: int, words: int, line: int
    ) -> DataAccess:
        kind, fixed = self._line(line)
        executed = memory.access is Access.LOAD and not insn.conditional and not memory.exclusive
        certain = fixed and executed
        return DataAccess(memory.access, low, high, words, (line,), kind, fixed, certain)

    def _line(self, line: int) -> tuple[Cacheability, bool]:
        """Whether a line is cached, and whether that and its translation never change."""
        seen = self._lines_seen.get(line)
        if seen is None:
            size, memory = self._geometry.line_bytes, self._hierarchy.memory
            kind = memory.cacheability(line * size, line * size + size - 1)
            fixed = kind is Cacheability.ALWAYS and memory.fixed(line * size)
            seen = self._lines_seen[line] = (kind, fixed)
        return seen

    def _spread(
        self,
        insn: Insn,
        memory: Memory,
        addresses: ValueSet | None,
        candidates: tuple[int, ...] | None,
        last_byte: int | None,
    ) -> tuple[DataAccess, ...]:
        """Several lines are possible: as many accesses as lines the worst alignment touches."""
        low = high = None
        kind = Cacheability.MAYBE
        if addresses is not None and last_byte is not None:
            low, high = addresses.low, addresses.high
            kind = self._hierarchy.memory.cacheability(low, last_byte)
        left = self._words(memory, addresses)
        count = self._lines(memory, addresses)
        per_line = self._geometry.line_bytes // WORD
        found = []
        for remaining in range(count, 0, -1):
            words = max(1, min(per_line, left - (remaining - 1)))
            left -= words
            found.append(
                DataAccess(memory.access, low, high, words, candidates, kind, False, False)
            )
        return tuple(found)

    def _alignment(self, memory: Memory, addresses: ValueSet | None) -> int:
        """Bytes, a power of two up to a line, that every possible address is a multiple of."""
        known = self._geometry.line_bytes
        if addresses is None:
            known = 1
        else:
            bits = addresses.low | addresses.stride | known
            known = bits & -bits
        # Lists and pairs are word-aligned by the architecture (ARM ARM A3.2.1).
        least = WORD if memory.count > 1 else memory.size if self._hierarchy.aligned else 1
        return max(known, least)

    def _words(self, memory: Memory, addresses: ValueSet | None) -> int:
        """Words written or read, at the worst alignment."""
        size = memory.size * memory.count
        offset = WORD - min(self._alignment(memory, addresses), WORD)
        return (offset + size - 1) // WORD + 1

    def _lines(self, memory: Memory, addresses: ValueSet | None) -> int:
        """Lines touched, at the worst alignment."""
        size = memory.size * memory.count
        line = self._geometry.line_bytes
        offset = line - self._alignment(memory, addresses)
        return (offset + size - 1) // line + 1

    def _candidates(self, addresses: ValueSet, size: int) -> tuple[int, ...] | None:
        """Lines that may be touched, ascending; None when they are too many to be of use."""
        geometry = self._geometry
        if addresses.stride >= geometry.line_bytes and addresses.size <= MEMBERS:
            return tuple(sorted({n for a in addresses for n in geometry.lines(a, size)}))
        lines = geometry.lines(addresses.low, addresses.high - addresses.low + size)
        return tuple(lines) if len(lines) <= geometry.sets else None
