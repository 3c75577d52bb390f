"""The data cache along executions that are followed: the most misses of each instruction.

A set loses the line that was loaded from it last only to a load of another line of the set, under
every policy that evicts only to make room (``cache.policy``). So along an execution whose addresses
are known, a load misses at most where the load before it in its set was of another line, and a
store to the line of the last load hits. Nothing is known of the cache where the execution starts.

Where executions join, the sets in which they agree stay known, and each instruction has missed as
often as in the execution in which it missed most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Protocol

from cache.data_accesses import DataAccess, DataAccessModel
from cache.executed.data_misses import DataMisses, Place
from cache.executed.reached_addresses import ReachedAddresses, Transfer, first_byte
from cache.geometry import CacheGeometry, CacheHierarchy
from cache.lines import ANY_SET
from cache.maintenance import cache_operation
from cache.reference import UNCACHED
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import AccessKind, Insn
from quoll.image.memory_map import Cacheability
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet

__all__ = [
    "AccessTrace",
    "KnownAddresses",
    "TracedCode",
    "TransferRow",
    "concerns_data",
]


class KnownAddresses(Protocol):
    """The results of the value analysis about addresses."""

    def access(self, node: int, insn: int, /) -> ValueSet | None:
        """The addresses of the first byte that an instruction may access; None: any address."""


class TransferRow(NamedTuple):
    """An instruction of a block that makes some ``transfers``, of ``size`` bytes together.

    ``plain``: it changes no line if all of them hit. ``conditional``: it makes all or none.
    """

    insn: int
    transfers: int
    size: int
    plain: bool
    conditional: bool

    @staticmethod
    def of(index: int, insn: Insn, transfers: int, *, conditional: bool) -> TransferRow:
        """The row of the instruction at ``index``."""
        memory = insn.memory
        if memory is None:
            return TransferRow(index, transfers, 0, plain=False, conditional=conditional)
        kinds = (AccessKind.LOAD, AccessKind.STORE)
        plain = memory.access in kinds and not memory.exclusive and vector_role(insn) is None
        return TransferRow(index, transfers, memory.size * memory.count, plain, conditional)


class _LineAccess(NamedTuple):
    """One line of an access.

    ``known``: the set and the line, if it is cached memory of fixed translation. ``fills``: the
    line is in the cache afterwards. ``spoils``: sets of which nothing is known afterwards, besides
    that they hold a line of ``candidates``, if they held it before; None: all sets.
    """

    store: bool
    cached: bool  # in cached memory, by way of L1
    words: int
    known: tuple[int, int] | None
    fills: bool
    spoils: tuple[int, ...] | None
    candidates: frozenset[int]


EVERYTHING = (  # an operation on the cache
    _LineAccess(
        store=False, cached=False, words=0, known=None, fills=False, spoils=None,
        candidates=frozenset(),
    ),
)  # fmt: skip


class TracedCode:
    """The instructions of ``graph`` that concern the data cache."""

    def __init__(
        self, graph: Supergraph, addresses: KnownAddresses, hierarchy: CacheHierarchy
    ) -> None:
        self._graph, self._addresses, self._hierarchy = graph, addresses, hierarchy
        self._geometry: CacheGeometry = hierarchy.l1d
        self.line_bytes, self.sets = hierarchy.l1d.line_bytes, hierarchy.l1d.index_sets
        self._model = DataAccessModel(hierarchy)
        of_block: dict[int, tuple[int, ...]] = {}
        self._places: set[Place] = set()
        for n, node in enumerate(graph.nodes):
            if id(node.block) not in of_block:
                of_block[id(node.block)] = tuple(
                    i for i, insn in enumerate(node.block.insns) if concerns_data(insn)
                )
            self._places.update((n, i) for i in of_block[id(node.block)])
        self._exact: dict[tuple[int, int], tuple[_LineAccess, ...]] = {}
        self._within: dict[tuple[int, ValueSet], tuple[_LineAccess, ...]] = {}
        self._any: dict[Place, tuple[_LineAccess, ...]] = {}
        self._several: dict[Place, bool] = {}

    @property
    def modelled(self) -> bool:
        """Whether stores leave the lines of the cache as they are."""
        return not (self._geometry.write_allocate or self._geometry.write_through)

    def begin(self) -> AccessTrace:
        """The state of the cache where a path starts."""
        return AccessTrace(self)

    def concerns_data(self, node: int, insn: int) -> bool:
        """Whether an instruction concerns the data cache."""
        return (node, insn) in self._places

    def lines_at(self, node: int, insn: int, first: int) -> tuple[_LineAccess, ...]:
        """The lines of an instruction that surely accesses ``first`` and the bytes behind it."""
        what = self._graph.nodes[node].block.insns[insn]
        key = id(what), first
        if key not in self._exact:
            found = self._model.accesses(what, ValueSet(first, first, 0))
            self._exact[key] = tuple(self._line(a, executed=True) for a in found)
        return self._exact[key]

    def lines_within(self, node: int, insn: int, first: ValueSet) -> tuple[_LineAccess, ...]:
        """The lines of an instruction that accesses one of ``first`` and the bytes behind it.

        Those that are possible in its context, if they are not more.
        """
        known = self._addresses.access(node, insn)
        if known is not None and self._spread(known) <= self._spread(first):
            return self.lines(node, insn)
        what = self._graph.nodes[node].block.insns[insn]
        key = id(what), first
        if key not in self._within:
            found = self._model.accesses(what, first)
            self._within[key] = tuple(self._line(access, executed=False) for access in found)
        return self._within[key]

    def several_lines(self, node: int, insn: int) -> bool:
        """Whether value analysis leaves an access more than one line."""
        if (node, insn) not in self._several:
            what = self._graph.nodes[node].block.insns[insn]
            known = None if what.memory is None else self._addresses.access(node, insn)
            unknown = what.memory is not None and known is None
            self._several[node, insn] = unknown or bool(known and self._spread(known))
        return self._several[node, insn]

    def narrower(self, reached: ReachedAddresses) -> dict[Place, ValueSet]:
        """The addresses in fewer lines than value analysis knows."""
        return {
            (node, insn): found
            for (node, insn), found in reached.known().items()
            if (known := self._addresses.access(node, insn)) is None
            or self._spread(found) < self._spread(known)
        }

    def _spread(self, addresses: ValueSet) -> int:
        """The number of lines from the first to the last."""
        return addresses.high // self.line_bytes - addresses.low // self.line_bytes

    def lines(self, node: int, insn: int) -> tuple[_LineAccess, ...]:
        """The lines of an instruction by the addresses that are possible in its context."""
        if (node, insn) not in self._any:
            self._any[node, insn] = self._lines(node, insn)
        return self._any[node, insn]

    def _lines(self, node: int, insn: int) -> tuple[_LineAccess, ...]:
        what = self._graph.nodes[node].block.insns[insn]
        if what.memory is None:
            return EVERYTHING if cache_operation(what).forget_d else ()
        accesses = self._model.accesses(what, self._addresses.access(node, insn))
        return tuple(self._line(access, executed=False) for access in accesses)

    def may_be_skipped(self, node: int, insn: int) -> bool:
        """Whether an instruction accesses nothing, and changes no line, if its condition fails."""
        what = self._graph.nodes[node].block.insns[insn]
        memory = what.memory
        if memory is None or memory.exclusive or vector_role(what) is not None:
            return False
        return what.conditional and memory.access in (AccessKind.LOAD, AccessKind.STORE)

    def bytes_at(self, node: int, insn: int) -> int:
        """The bytes that an instruction accesses."""
        memory = self._graph.nodes[node].block.insns[insn].memory
        return 0 if memory is None else memory.size * memory.count

    def _line(self, access: DataAccess, *, executed: bool) -> _LineAccess:
        store = access.access is AccessKind.STORE
        known, sets = None, self._geometry.index_set_of
        lines = access.candidates
        if lines is not None and len(lines) == 1 and access.fixed and not access.may_bypass:
            known = sets(lines[0]), lines[0]
        loads = access.access is AccessKind.LOAD
        fills = known is not None and loads and (executed or access.certain)
        spoils: tuple[int, ...] | None = ()
        if access.vector and access.memory not in UNCACHED:
            known, spoils = None, None
        elif access.memory not in UNCACHED and not fills and (not store or access.may_bypass):
            spoils = self._spoiled(access)
        stays = frozenset(lines or ()) if not access.may_bypass else frozenset[int]()
        cached = access.memory is Cacheability.ALWAYS and not (access.may_bypass or access.vector)
        return _LineAccess(store, cached, access.words, known, fills, spoils, stays)

    def _spoiled(self, access: DataAccess) -> tuple[int, ...] | None:
        """The sets that an access may fill."""
        if access.sets == ANY_SET:
            return None
        return tuple(s for s in range(self._geometry.index_sets) if access.sets >> s & 1)


class AccessTrace:
    """The cache after some executions, and the most misses and words of each instruction in one."""

    def __init__(self, code: TracedCode) -> None:
        self.code = code
        self._resident: dict[int, int] = {}  # set -> the line that is surely in it
        self._filled, self._stored = Counter[Place](), Counter[Place]()  # lines and words
        self._elsewhere: frozenset[Place] = frozenset()
        self._shared = False  # these, with another execution
        self._reached = ReachedAddresses()  # of all executions that began together

    def fork(self) -> AccessTrace:
        """The same, of another execution."""
        self._shared = True
        return copy(self)

    def _own(self) -> None:
        """Copy the parts that another execution shares, before it changes."""
        if self._shared:
            self._resident, self._shared = dict(self._resident), False
            self._filled, self._stored = Counter(self._filled), Counter(self._stored)

    def join(self, other: AccessTrace) -> None:
        """Join another execution: nothing that it contradicts stays known."""
        self.count(other)
        if self._resident is not other._resident:
            self._resident = dict(self._resident.items() & other._resident.items())

    def count(self, other: AccessTrace) -> None:
        """Take the counts of another execution, where they are higher."""
        self._own()
        self._filled |= other._filled
        self._stored |= other._stored
        self._elsewhere |= other._elsewhere
        self._reached.join(other._reached)

    @property
    def misses(self) -> DataMisses:
        """The counts."""
        narrower = self.code.narrower(self._reached)
        return DataMisses(dict(self._filled), dict(self._stored), self._elsewhere, narrower)

    def execute(
        self, node: int, insn: int, touched: Sequence[object], *, transfers: bool = True
    ) -> None:
        """Execute an instruction.

        ``touched``: the addresses of its transfers, or sets of them; with ``Transfer.PERHAPS``, if
        it is not known whether it makes them; with any other object, if they are not known.
        ``transfers``: all of its transfers are there.
        """
        if not self.code.concerns_data(node, insn):
            return
        if transfers and not touched and self.code.may_be_skipped(node, insn):
            return
        for line in self._accesses(node, insn, touched):
            hits = line.known is not None and self._resident.get(line.known[0]) == line.known[1]
            if not line.cached and (node, insn) not in self._elsewhere:
                self._elsewhere |= {(node, insn)}
            if not hits:
                self._miss(node, insn, line)

    def execute_block(
        self, node: int, rows: Sequence[TransferRow], touched: Sequence[object]
    ) -> None:
        """Execute the instructions of a block, of which at most one is conditional.

        ``touched``: the addresses of all transfers; as many as are possible, or as without the
        conditional ones, if it is known which are executed.
        """
        missing = sum(row.transfers for row in rows) - len(touched)
        skipped = sum(row.transfers for row in rows if row.conditional)
        if missing not in (0, skipped):
            for row in rows:
                self.execute(node, row.insn, [None])
            return
        at, resident, code = 0, self._resident, self.code
        size, sets = code.line_bytes, code.sets
        for row in rows:
            if missing and row.conditional:
                if not row.plain:
                    self.execute(node, row.insn, [])
                continue
            first = touched[at]
            if row.plain and row.transfers == 1 and isinstance(first, int):
                line = first // size
                if resident.get(line % sets) == line == (first + row.size - 1) // size:
                    if code.several_lines(node, row.insn):
                        self._reached.add_exact((node, row.insn), first)
                    at += 1
                    continue
            self.execute(node, row.insn, touched[at : at + row.transfers])
            at, resident = at + row.transfers, self._resident

    def _miss(self, node: int, insn: int, line: _LineAccess) -> None:
        """Count an access that may miss, and forget the lines that it may evict."""
        self._own()
        if line.store:
            self._stored[node, insn] += line.words
        else:
            self._filled[node, insn] += 1
        if line.fills and line.known is not None:
            self._resident[line.known[0]] = line.known[1]
        elif line.spoils is None:
            self._resident.clear()
        else:
            for at in line.spoils:
                if self._resident.get(at) not in line.candidates:
                    self._resident.pop(at, None)

    def _accesses(self, node: int, insn: int, touched: Sequence[object]) -> tuple[_LineAccess, ...]:
        """The lines of an instruction; its addresses count as reached."""
        size, several = self.code.bytes_at(node, insn), self.code.several_lines(node, insn)
        known = [at for at in touched if isinstance(at, int)]
        if known and len(known) == len(touched):
            first = min(known)
            if max(known) - first < size:
                if several:
                    self._reached.add_exact((node, insn), first)
                return self.code.lines_at(node, insn, first)
        if not several:
            return self.code.lines(node, insn)
        within = first_byte(touched, size)
        if within is not None or list(touched) != [Transfer.PERHAPS]:
            self._reached.add((node, insn), within)
        if within is None:
            return self.code.lines(node, insn)
        return self.code.lines_within(node, insn, within)


def concerns_data(insn: Insn) -> bool:
    """Whether an instruction accesses the data cache, or may change it."""
    return insn.memory is not None or cache_operation(insn).touches_data
