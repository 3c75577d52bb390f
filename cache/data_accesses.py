"""Data accesses: the lines that a load or store may touch, by the known part of its address."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cache.geometry import CacheGeometry, CacheHierarchy
from cache.lines import ANY_SET, AccessedLines
from cache.reference import UNCACHED
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import AccessKind, Insn, MemoryAccess
from quoll.image.memory_map import Cacheability
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import SymbolicAddress

__all__ = ["DataAccess", "DataAccessModel"]

WORD = 4
REMEMBERED = 1 << 10  # cached sets of lines
MEMBERS = 256  # largest address set that is analysed member by member


class DataAccess(NamedTuple):
    """One line of a data access.

    ``candidates`` are the lines it may be, None for any line at all. ``certain``: the instruction
    surely executes the access, and its line is the only candidate or is named by a symbol; a
    candidate must also be in cached memory of fixed translation.
    """

    access: AccessKind
    low: int | None
    high: int | None
    words: int
    candidates: tuple[int, ...] | None
    memory: Cacheability
    fixed: bool  # cached memory whose translation never changes
    certain: bool
    executed: bool = True  # the instruction is not conditional
    exclusive: bool = False
    vector: bool = False  # by VFP or NEON
    symbol: int | None = None  # the address is this symbol plus a constant
    spans: tuple[tuple[int, int], ...] = ()  # offsets in bytes, each span in one line
    end: int | None = None  # the highest byte that may be accessed
    repeated: bool = False  # not the first of several indistinguishable lines
    alone: bool = False  # the only line of its instruction
    sets: int = ANY_SET  # sets that may hold its line, bit n for set n
    held: bool = False  # every line that it may be is locked

    @property
    def may_bypass(self) -> bool:
        """Whether the core may send the access past L1: to a monitor, or as a locked transfer.

        Then its line may be written back and leave L1: no manual says that it stays.
        """
        return self.exclusive or self.access is AccessKind.SWAP

    @property
    def target(self) -> AccessedLines:
        """The lines that the access may touch."""
        return AccessedLines(self.candidates, self.symbol, self.spans, self.sets)


class DataAccessModel:
    """Lines per instruction and address set."""

    def __init__(self, hierarchy: CacheHierarchy) -> None:
        self._hierarchy = hierarchy
        self._geometry: CacheGeometry = hierarchy.l1d
        self._line_cache: dict[int, tuple[Cacheability, bool]] = {}

    def accesses(
        self, insn: Insn, addresses: ValueSet | None, origin: SymbolicAddress | None = None
    ) -> tuple[DataAccess, ...]:
        """The accesses of ``insn`` in order, one per line; none if it does not access memory.

        ``addresses`` holds the possible addresses of the first byte; None: any. ``origin`` is the
        same address relative to a symbol, or None if it is relative to none.
        """
        memory = insn.memory
        if memory is None or memory.count == 0:
            return ()
        size = memory.size * memory.count
        exact = None if addresses is None else addresses.exact
        if exact is not None:
            return self._exact(insn, memory, exact, size)
        if addresses is None or addresses.high + size > 1 << 32:
            return self._one_line_each(insn, memory, None, None, origin)
        candidates = self._candidates(addresses, size)
        if candidates is not None and len(candidates) == 1:
            return self._one_line(insn, memory, addresses, candidates[0])
        return self._one_line_each(insn, memory, addresses, candidates, origin)

    def _exact(
        self, insn: Insn, memory: MemoryAccess, addr: int, size: int
    ) -> tuple[DataAccess, ...]:
        geometry, found = self._geometry, []
        for line in geometry.lines(addr, size):
            low = max(addr, line * geometry.line_bytes)
            high = min(addr + size, (line + 1) * geometry.line_bytes)
            words = (high - 1) // WORD - low // WORD + 1
            found.append(self._at(insn, memory, low, low, words, line))
        return tuple(found)

    def _one_line(
        self, insn: Insn, memory: MemoryAccess, addresses: ValueSet, line: int
    ) -> tuple[DataAccess, ...]:
        words = self._words(memory, addresses)
        return (self._at(insn, memory, addresses.low, addresses.high, words, line),)

    def _at(
        self, insn: Insn, memory: MemoryAccess, low: int, high: int, words: int, line: int
    ) -> DataAccess:
        kind, fixed = self._line(line)
        return DataAccess(
            memory.access, low, high, words, (line,), kind, fixed=fixed,
            certain=fixed and self._surely_fills(insn, memory),
            executed=not insn.conditional,
            exclusive=memory.exclusive,
            vector=vector_role(insn) is not None,
            end=(line + 1) * self._geometry.line_bytes - 1,
            sets=1 << self._geometry.index_set_of(line),
        )  # fmt: skip

    def _line(self, line: int) -> tuple[Cacheability, bool]:
        """Whether a line is cached, and whether its memory type and translation never change."""
        line_cache = self._line_cache.get(line)
        if line_cache is None:
            size, memory = self._geometry.line_bytes, self._hierarchy.memory
            kind = memory.cacheability(line * size, line * size + size - 1)
            fixed = kind is Cacheability.ALWAYS and memory.fixed(line * size)
            line_cache = self._line_cache[line] = (kind, fixed)
        return line_cache

    def _one_line_each(
        self,
        insn: Insn,
        memory: MemoryAccess,
        addresses: ValueSet | None,
        candidates: tuple[int, ...] | None,
        origin: SymbolicAddress | None,
    ) -> tuple[DataAccess, ...]:
        """As many accesses as lines the worst alignment touches, if several lines are possible."""
        low = high = None
        kind = Cacheability.MAYBE
        size = memory.size * memory.count
        if addresses is not None:
            low, high = addresses.low, addresses.high
            kind = self._hierarchy.memory.cacheability(low, high + size - 1)
        multiple, rest = self._alignment(memory, addresses)
        line = self._geometry.line_bytes
        first = rest if multiple == line else line - multiple + rest  # worst place in a line
        count = (first + size - 1) // line + 1
        left = self._words(memory, addresses)
        named = origin is not None and kind not in UNCACHED
        blocks = () if origin is None else self._blocks(origin.offset, size, multiple, rest)
        exactly = multiple == line and origin is not None
        found = []
        for n in range(count):
            here = max(1, min(line // WORD, left - (count - 1 - n)))
            if multiple == line:
                start, end = max(first, n * line), min(first + size, (n + 1) * line)
                here = (end - 1) // WORD - start // WORD + 1
            left -= here
            found.append(
                DataAccess(
                    memory.access, low, high, here, candidates, kind,
                    fixed=False,
                    certain=named and self._surely_fills(insn, memory),
                    executed=not insn.conditional,
                    exclusive=memory.exclusive,
                    vector=vector_role(insn) is not None,
                    end=None if high is None else high + size - 1,
                    symbol=None if origin is None else origin.symbol,
                    spans=(blocks[n],) if exactly else blocks,
                    repeated=n > 0 and not exactly and origin is not None,
                    alone=count == 1,
                    sets=self._sets(addresses, candidates, n if multiple == line else None),
                )
            )  # fmt: skip
        return tuple(found)

    def _sets(
        self, addresses: ValueSet | None, candidates: tuple[int, ...] | None, nth: int | None
    ) -> int:
        """The sets that may hold the ``nth`` line of an access; None: the sets of any of its lines.

        A stride of a whole number of lines fixes the low bits of every set number.
        """
        geometry, sets = self._geometry, ANY_SET
        if candidates is not None:
            sets = sum({1 << geometry.index_set_of(n) for n in candidates})
        if addresses is not None and nth is not None:
            apart = (addresses.stride & -addresses.stride) // geometry.line_bytes  # in lines
            first = geometry.line(addresses.low) + nth
            sets &= _progression(first, min(apart, geometry.index_sets), geometry.index_sets)
        return sets

    @staticmethod
    def _blocks(offset: int, size: int, multiple: int, rest: int) -> tuple[tuple[int, int], ...]:
        """Aligned blocks that hold ``size`` bytes at ``offset``, each within one line.

        The address ``offset`` is ``rest`` above a multiple of ``multiple``.
        """
        start = offset - rest
        starts = range(start, offset + size, multiple)
        return tuple((at, at + multiple) for at in starts)

    def _surely_fills(self, insn: Insn, memory: MemoryAccess) -> bool:
        """Whether the line is in the cache afterwards, if it is cached memory."""
        fills = (
            (AccessKind.LOAD, AccessKind.STORE)
            if self._geometry.write_allocate
            else (AccessKind.LOAD,)
        )
        return memory.access in fills and not insn.conditional and not memory.exclusive

    def _alignment(self, memory: MemoryAccess, addresses: ValueSet | None) -> tuple[int, int]:
        """A power of two up to a line, in bytes, and every address modulo it."""
        line = self._geometry.line_bytes
        # Lists and pairs are word-aligned by the architecture (ARM ARM A3.2.1).
        least = WORD if memory.count > 1 else memory.size if self._hierarchy.aligned else 1
        if addresses is None:
            return least, 0
        bits = addresses.stride | line
        known = bits & -bits
        return (known, addresses.low % known) if known >= least else (least, 0)

    def _words(self, memory: MemoryAccess, addresses: ValueSet | None) -> int:
        """Words written or read, at the worst alignment."""
        size = memory.size * memory.count
        offset = WORD - min(self._alignment(memory, addresses)[0], WORD)
        return (offset + size - 1) // WORD + 1

    def _candidates(self, addresses: ValueSet, size: int) -> tuple[int, ...] | None:
        """Lines that may be touched, ascending; None when they are too many to be persistent."""
        geometry = self._geometry
        if addresses.stride >= geometry.line_bytes and addresses.size <= MEMBERS:
            return tuple(sorted({n for a in addresses for n in geometry.lines(a, size)}))
        lines = geometry.lines(addresses.low, addresses.high - addresses.low + size)
        ways = self._hierarchy.policy.persistent(geometry.free_ways)
        return tuple(lines) if len(lines) <= ways * geometry.index_sets else None


@lru_cache(maxsize=REMEMBERED)
def _progression(first: int, step: int, count: int) -> int:
    """Bits ``first``, ``first`` + ``step``, ... modulo ``count``; ``step`` divides ``count``."""
    return sum(1 << n for n in range(first % step, count, step))
