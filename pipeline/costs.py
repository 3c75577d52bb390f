"""Cycles per node and edge of a supergraph, by cause: the objective of the ILP."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from quoll.assumptions import Assumption
from quoll.facts.fact import FactSource
from quoll.intervals.strided_interval import ValueSet

__all__ = [
    "CallOption",
    "CostCause",
    "Costs",
    "ExcludedEdges",
    "LimitedCall",
    "OptionCount",
    "WriteBackPool",
]


class CostCause(IntEnum):
    """The cause of cycles; its value indexes the tuples in ``Costs``."""

    ISSUE = 0
    STALL = 1  # waiting for a result or a unit
    BRANCH = 2
    FETCH_MISS = 3
    LOAD_MISS = 4
    STORE = 5
    OTHER = 6  # exception entry, drain at exit, write-backs of maintenance operations
    TLB = 7  # refills and table walks, where the platform charges them


@dataclass(frozen=True, slots=True)
class WriteBackPool:
    """Write-backs that are charged on a path, and the dirty lines that may be there.

    ``cycles``: of a write-back. By node, the write-backs that ``Costs`` have in each execution:
    ``maintained`` by maintenance, ``evicted`` of victims of loads; ``dirtied``: the lines that one
    execution makes dirty. At most ``start`` lines are dirty where the path starts, and ``every``
    line behind an edge of ``restarts``. ``pipeline.write_backs`` has the argument.
    """

    cycles: int
    start: int
    every: int
    maintained: Mapping[int, int]
    evicted: Mapping[int, int]
    dirtied: Mapping[int, int]
    restarts: frozenset[int]

    @property
    def charging(self) -> frozenset[int]:
        """The nodes that are charged write-backs."""
        return frozenset(self.maintained) | frozenset(self.evicted)

    def charged(self, node: int) -> int:
        """Write-backs charged in an execution of ``node``."""
        return self.maintained.get(node, 0) + self.evicted.get(node, 0)

    def balance(self, node: int) -> int:
        """Write-backs charged in an execution of ``node``, less the lines that it makes dirty."""
        return self.charged(node) - self.dirtied.get(node, 0)

    def without_line(self, nodes: Mapping[int, int], edges: Mapping[int, int]) -> int:
        """The charged write-backs of a path that find no dirty line, from its counts."""
        found = self.start + self.every * sum(edges.get(e, 0) for e in self.restarts)
        at = self.charging | self.dirtied.keys()
        return max(0, sum(self.balance(n) * nodes.get(n, 0) for n in at) - found)


@dataclass(frozen=True, slots=True)
class CallOption:
    """A call of ``function`` in ``cycles``, which executes places at least ``counts`` times.

    ``counts``: by the fact that limits the place. ``level``: the index of the bound in
    ``FunctionReplacement.limited``; None if the function has one bound. ``result``: the possible
    words of r0 afterwards; None if they are not known.
    """

    function: int
    level: int | None
    cycles: int
    counts: tuple[tuple[FactSource, int], ...]
    result: ValueSet | None = None


@dataclass(frozen=True, slots=True)
class ExcludedEdges:
    """No pass executes a call as one of ``options`` and takes one of ``edges``.

    A pass is the whole path, or an iteration of a loop; it executes the call at most once, and
    takes at most one of ``edges``, once. ``passes``: edges with which a pass begins; ``first``:
    passes that begin without such an edge.
    """

    options: frozenset[CallOption]
    edges: frozenset[int]
    passes: frozenset[int]
    first: int


@dataclass(frozen=True, slots=True)
class LimitedCall:
    """A call made by ``node`` along ``edge``, or at an end of the path (None).

    ``Costs`` have the cycles of ``charged``; no execution takes more. Each execution is as charged,
    or as one of ``options``; ``excluded`` tells the edges that some of them exclude.
    """

    node: int
    edge: int | None
    charged: CallOption
    options: tuple[CallOption, ...]
    excluded: tuple[ExcludedEdges, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionCount:
    """``count`` executions of a call of ``Costs.limited``, by index, take an option, by index."""

    call: int
    option: int
    count: int


@dataclass(frozen=True, slots=True)
class Costs:
    """``nodes[n][cause]`` and ``edges[e][cause]`` in cycles, for every node and edge index.

    A path costs ``start[cause]`` once and the sum over its nodes and edges, less the write-backs
    that find no dirty line (``pool``), and less the cycles that ``limited`` calls save;
    no other charge exists. ``start`` holds the cycles of an exception before its first instruction;
    exit nodes include the cycles of leaving. Costs of one path have ``less`` instead of
    ``limited``: by node, the cycles that all its executions together take less.
    """

    nodes: tuple[tuple[int, ...], ...]
    edges: tuple[tuple[int, ...], ...]
    assumptions: tuple[Assumption, ...] = ()
    start: tuple[int, ...] = (0,) * len(CostCause)
    pool: WriteBackPool | None = None  # None: no write-backs are charged
    limited: tuple[LimitedCall, ...] = ()
    less: Mapping[int, int] = field(default_factory=dict)

    def node_cycles(self, node: int) -> int:
        """All cycles of one execution of ``node``."""
        return sum(self.nodes[node])

    def edge_cycles(self, edge: int) -> int:
        """All cycles of one traversal of ``edge``."""
        return sum(self.edges[edge])

    def excess(self, nodes: Mapping[int, int], edges: Mapping[int, int]) -> int:
        """The cycles that a path with these counts costs less than the sum, for clean lines."""
        return 0 if self.pool is None else self.pool.cycles * self.pool.without_line(nodes, edges)

    def saved(self, calls: Iterable[OptionCount]) -> Mapping[int, int]:
        """By node, the cycles that limited calls take less than they are charged."""
        found: dict[int, int] = {}
        for one in calls:
            call = self.limited[one.call]
            cycles = call.charged.cycles - call.options[one.option].cycles
            found[call.node] = found.get(call.node, 0) + one.count * cycles
        return found

    def without_exclusions(self) -> Costs:
        """The same costs, where results of calls exclude no edges."""
        return replace(self, limited=tuple(replace(call, excluded=()) for call in self.limited))

    def on_path(
        self, nodes: Sequence[int], edges: Sequence[int], calls: Sequence[OptionCount] = ()
    ) -> Costs:
        """Costs of a path with these counts per node and edge, without pool and limited calls.

        If some write-backs find no dirty line, the last nodes that are charged for any are charged
        for none, and the start for as many of theirs as do find one.
        """
        if calls:
            less = self.saved(calls)
            return replace(self, limited=(), less=less).on_path(nodes, edges)
        if self.pool is None or not nodes:
            return self
        counts = dict(enumerate(nodes))
        without = self.pool.without_line(counts, dict(enumerate(edges)))
        if not without:
            return self
        cheaper, start, left = list(self.nodes), self.start, without
        for node in sorted(self.pool.charging, reverse=True):
            of_loads = self.pool.evicted.get(node, 0)
            others = self.pool.maintained.get(node, 0)
            if left <= 0 or not counts[node]:
                continue
            cheaper[node] = self._with_write_backs(cheaper[node], -of_loads, -others)
            left -= (of_loads + others) * counts[node]
            if left < 0:
                found = min(-left, of_loads * counts[node])
                start = self._with_write_backs(start, found, -left - found)
        return replace(self, nodes=tuple(cheaper), start=start, pool=None)

    def _with_write_backs(
        self, causes: tuple[int, ...], of_loads: int, others: int
    ) -> tuple[int, ...]:
        """``causes`` with the cycles of more write-backs: for loads, and by maintenance."""
        assert self.pool is not None
        more = dict.fromkeys(CostCause, 0)
        more[CostCause.LOAD_MISS] = of_loads * self.pool.cycles
        more[CostCause.OTHER] = others * self.pool.cycles
        return tuple(cycles + more[cause] for cycles, cause in zip(causes, CostCause, strict=True))
