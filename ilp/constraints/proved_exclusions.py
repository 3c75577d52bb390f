"""The constraints that ``wcet refine`` has proved for an entry, stored by content (rules 30, 31).

Their key covers the whole request but for solutions (``wcet.analysis.request_key``): the bytes of
the kernel, every fact that a stage before the integer program reads, the platform, the options, and
the versions of the code that proves. It also covers the graphs whose edges the rows name. So rows
are read only where the proofs would be repeated as they are. Facts about counts are not in the key:
no proof reads them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from ilp.constraints.exclusion import ProvedRow
from quoll.assumptions import Assumption
from quoll.inlining.supergraph import Supergraph
from quoll.results.cache_key import key_of
from quoll.results.results_store import ResultsStore

__all__ = [
    "NOTHING_PROVED",
    "CoreKey",
    "InfeasibleCore",
    "PathDecision",
    "ProvedExclusion",
    "ProvedExclusions",
    "exclusions_key",
    "stored_exclusions",
]


CoreKey = tuple[int | None, frozenset[int], frozenset[tuple[int, int]], bool, bool]


@dataclass(frozen=True, slots=True)
class InfeasibleCore:
    """Edges of the whole graph that no pass of ``loop`` takes together; None: the whole path.

    A single edge with a ``distance`` above 1: at most one of so many consecutive iterations takes
    it. ``about``: descriptions of the words that several of the decisions test. ``counts``: loops
    with the least number of executions of their headers that no such pass has. ``most`` above 0:
    each entry of the loop takes the single edge at most so often. With two ``counts``
    and no edges, a pass that enters both loops returns to their headers at most so often.
    """

    loop: int | None
    edges: tuple[int, ...]
    about: tuple[str, ...]
    distance: int = 1
    counts: tuple[tuple[int, int], ...] = ()
    most: int = 0

    @property
    def key(self) -> CoreKey:
        """Equal for cores with the same meaning, except for the distance and the limit."""
        counts = frozenset(self.counts)
        return self.loop, frozenset(self.edges), counts, self.distance > 1, self.most > 0


@dataclass(frozen=True, slots=True)
class PathDecision:
    """A transfer of control that is excluded together with others."""

    place: str  # of the instruction that decides
    insn: str
    target: str


@dataclass(frozen=True, slots=True)
class ProvedExclusion:
    """Decisions that no execution takes together, or no iteration of the loop at ``loop``.

    ``distance`` above 1: no two of so many consecutive iterations take the decision. ``about``: the
    words that the decisions have in common. ``counts``: loops, each with the executions of its
    header that are excluded together with the decisions. ``most`` above 0: each entry of the loop
    takes the decision at most so often; without decisions, the loops of ``counts`` repeat together
    at most so often.
    """

    decisions: tuple[PathDecision, ...]
    loop: str | None
    distance: int
    about: tuple[str, ...]
    counts: tuple[tuple[str, int], ...] = ()
    most: int = 0


@dataclass(frozen=True, slots=True)
class ProvedExclusions:
    """A record: all exclusions of an entry. ``cores`` and ``shown`` are of equal length.

    ``rows``: for each start of paths. ``assumptions``: the named ones on which the proofs rest.
    """

    cores: tuple[InfeasibleCore, ...]
    shown: tuple[ProvedExclusion, ...]
    rows: tuple[tuple[ProvedRow, ...], ...]
    assumptions: tuple[Assumption, ...]

    def of_start(self, number: int) -> tuple[ProvedRow, ...]:
        """The rows for the paths from a start."""
        return self.rows[number] if self.rows else ()


NOTHING_PROVED = ProvedExclusions((), (), (), ())


def exclusions_key(entry: str, graphs: Iterable[Supergraph]) -> str:
    """The key of the exclusions of an entry.

    ``entry``: the hash of its inputs, empty without a store. ``graphs``: of each start of paths.
    """
    return entry and key_of("exclusions", entry, list(map(identity, graphs)))


def identity(graph: Supergraph) -> str:
    """The hash of the numbers that rows use: of nodes, edges and loops with their places."""
    numbers = array("q", (graph.entry,))
    for node in graph.nodes:
        numbers.extend((node.context, node.block.addr, node.block.end))
    for edge in graph.edges:
        numbers.extend((edge.src, edge.dst))
    kinds = " ".join(edge.kind.name for edge in graph.edges)
    contexts = [(one.parent, one.call_site, one.function) for one in graph.contexts]
    loops = [(one.header, one.entries, one.backs) for one in graph.loops]
    return key_of("graph", numbers.tobytes(), kinds, contexts, loops)


def stored_exclusions(store: ResultsStore, key: str, starts: int) -> ProvedExclusions:
    """The exclusions under ``key`` of an entry with so many starts of paths, if there are any."""
    found: ProvedExclusions | None = store.load(key, ProvedExclusions) if key else None
    return found if found is not None and len(found.rows) == starts else NOTHING_PROVED
