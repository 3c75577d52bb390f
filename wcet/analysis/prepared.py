"""The results of the stages before the integer program for an entry, stored by content (rule 30).

Its key consists of the key of the request (``wcet.analysis.request_key``) and the entry. Facts that
only the integer program reads are not in it: after an edit of a constraint only that program is
solved again. Facts are compared by their meaning; their lines are updated when a record is read.

Costs may contain solutions of other integer programs: of functions with a summary, and of context
switches. Then the key has all facts with their lines, by which these solutions name them, and the
values of parameters.

A record is written only if every loop is bounded or has a parameter, and the clock cannot have cut
off a proof attempt or one of these solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ilp.counted_bounds import CountedBound
from ilp.paths.solution import IlpSolution
from loopbounds.execution.counts import ExecutionCounts, ExecutionPrefix
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.assumptions import Assumption
from quoll.facts.applied import LimitedCycles
from quoll.facts.count_facts import LoopParameter
from quoll.facts.fact import FactSource, FactSubject
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.inlining.sharing import NEVER
from quoll.inlining.supergraph import Supergraph
from quoll.results.cache_key import key_of
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.request_key import LEFT_OUT, matters, request_key, solutions_key
from wcet.platforms.platform_model import Platform
from wcet.result_classes.result_class import ResultClass

__all__ = [
    "InfeasibleEdge",
    "Prepared",
    "PreparedPaths",
    "PreparedRecord",
    "PreparedStore",
    "SummarisedFunction",
    "SummaryStart",
    "together",
    "worst_start",
]


@dataclass(frozen=True, slots=True)
class InfeasibleEdge:
    """An edge that no execution takes in its context; ``why``: the value that decides (rule 4)."""

    source: int  # address of its source block
    target: int
    context: int  # of the source; removing edges does not renumber contexts
    why: str


@dataclass(frozen=True, slots=True)
class PreparedPaths:
    """The paths of an entry from one start (rule 21): all that their integer program needs.

    ``start``: the address of the block that has just read the interrupt controller; None: the entry
    itself. ``execution``: the concrete execution, if known; ``prefix``: of all executions,
    if they are these paths.
    """

    start: int | None
    graph: Supergraph
    costs: Costs
    bounds: tuple[LoopBound, ...]
    execution: ExecutionCounts | None = None
    prefix: ExecutionPrefix | None = None

    @property
    def hides_tests(self) -> bool:
        """Whether tests for interrupts are in functions with a summary."""
        return any(one.tests for one in self.graph.guidance.replaced.values())

    @property
    def begins_inside(self) -> int | None:
        """The address of the function with a summary in which a test is the start, if it is one."""
        replaced = self.graph.guidance.replaced
        called = self.graph.nodes[self.graph.entry].block.passes if self.start is not None else ()
        return next((callee for callee in called if replaced[callee].behind), None)


@dataclass(frozen=True, slots=True)
class SummaryStart:
    """The paths of a function with a summary from one start, and their bound.

    ``counted``: the bound for ranges of counts; empty if they do not matter.
    """

    paths: PreparedPaths
    solution: IlpSolution
    counted: tuple[CountedBound, ...] = ()

    @property
    def behind(self) -> bool:
        """Whether the interrupt arrives behind a test in the function."""
        return self.paths.start is not None

    def most(self, counts: tuple[tuple[FactSource, int], ...]) -> CountedBound | None:
        """The bound of calls with these least counts; None if there are none."""
        if not self.counted:
            return LimitedCycles(counts, self.solution.cycles), self.solution
        given = dict(counts)
        found = [
            one
            for one in self.counted
            if all(n <= given.get(place, 0) for place, n in one[0].counts)
        ]
        return max(found, key=lambda one: one[0].cycles, default=None)


@dataclass(frozen=True, slots=True)
class SummarisedFunction:
    """A function with a summary, and its worst path.

    A recursive function appears once for each number of activations, and one with tests for
    interrupts once for each kind of arrival; ``behind`` as in ``FunctionReplacement``.
    ``by_counts``: the paths and the solution for each of ``limited``, which are as in
    ``FunctionReplacement``. ``classes``: the classes of its result. ``starts``: all starts of a
    function with tests; the paths from the call lead to the others.
    """

    address: int
    paths: PreparedPaths
    solution: IlpSolution
    by_counts: tuple[tuple[PreparedPaths, IlpSolution], ...] = ()
    behind: bool | None = None
    limited: tuple[LimitedCycles, ...] = ()
    starts: tuple[SummaryStart, ...] = ()
    classes: tuple[ResultClass, ...] = ()

    def at(self, level: int | None) -> SummarisedFunction:
        """The function in calls with the counts of this level."""
        if level is None or level >= len(self.by_counts):
            return self
        paths, solution = self.by_counts[level]
        return replace(self, paths=paths, solution=solution)


def worst_start(
    address: int,
    starts: tuple[SummaryStart, ...],
    *,
    behind: bool,
    counts: Callable[[SummaryStart], bool] | None = None,
) -> SummarisedFunction | None:
    """The function at ``address`` for arrivals before the call, or behind a test in it.

    Only starts that ``counts`` accepts, if given. None if no path starts there.
    """
    of_kind = [
        start for start in starts if start.behind == behind and (counts is None or counts(start))
    ]
    if not of_kind:
        return None
    worst = max(of_kind, key=lambda start: start.solution.cycles)
    limited = together(of_kind)
    return SummarisedFunction(
        address,
        worst.paths,
        worst.solution,
        tuple(solved for _, solved in limited),
        behind,
        tuple(cycles for cycles, _ in limited),
        starts,
    )


def together(
    starts: Sequence[SummaryStart],
) -> list[tuple[LimitedCycles, tuple[PreparedPaths, IlpSolution]]]:
    """The bounds for ranges of counts from all starts; empty if counts do not matter.

    A bound that one start lacks is covered by its bounds for fewer executions. Where counts do not
    matter, a path may execute none of the places.
    """
    keys = dict.fromkeys(limited.counts for start in starts for limited, _ in start.counted)
    if keys and not all(start.counted for start in starts):
        keys[()] = None
    found = []
    for counts in keys:
        each = [(start, bound) for start in starts if (bound := start.most(counts)) is not None]
        start, (limited, solution) = max(each, key=lambda one: one[1][0].cycles)
        found.append((LimitedCycles(counts, limited.cycles), (start.paths, solution)))
    return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """An entry before its integer programs, one for each start of paths.

    ``solved``: other programs were solved before, which read facts and parameters, too: its costs
    contain their solutions. ``cut_off``: the clock may have cut off one of these, or a proof for
    one. ``assumes_pending`` and ``acknowledges`` as in ``FunctionReplacement``.
    """

    paths: tuple[PreparedPaths, ...]
    infeasible: tuple[InfeasibleEdge, ...]
    assumptions: tuple[Assumption, ...]
    summaries: tuple[SummarisedFunction, ...] = ()  # callees before their callers
    unmasking: tuple[int, ...] = ()  # instructions after which interrupts may be unmasked
    never_returning: tuple[str, ...] = ()  # functions, each with its evidence
    solved: bool = False
    cut_off: bool = False
    assumes_pending: bool = False
    acknowledges: bool = False

    @property
    def hides_tests(self) -> bool:
        """Whether tests for interrupts are in functions with a summary."""
        return any(paths.hides_tests for paths in self.paths)


@dataclass(frozen=True, slots=True)
class PreparedRecord:
    """A record: an entry, and the places of its facts, by their subjects."""

    prepared: Prepared
    sources: Mapping[FactSubject, str]


class PreparedStore:
    """The records of one run; without storage if models are to be written."""

    def __init__(
        self,
        options: AnalysisOptions,
        image: Image,
        platform: Platform,
        facts: Facts,
        exits: Iterable[int],
    ) -> None:
        self._store = options.store
        self._sources = {f.subject(): str(f.source) for f in reversed(facts.facts) if matters(f)}
        self._parameters = bool(facts.of(LoopParameter))
        self._query = options.bounds.budget.limits.process.seconds
        self._models = options.bounds.models is not None
        self._shows_tests = options.summary_settings.preemptible >= NEVER.contexts
        self._request = self._solutions = ""
        if self._store.enabled:
            self._request = request_key(options, image, platform, facts, exits)
            self._solutions = solutions_key(options, facts)

    def key(self, name: str, address: int, *, solved: bool = False) -> str:
        """The cache key of an entry; ``solved``: other programs are before. Empty: no key."""
        key = "" if self._models else self.identity(name, address)
        return key and key_of("solved", key, self._solutions) if solved else key

    def identity(self, name: str, address: int) -> str:
        """The hash of all inputs of an entry's stages; empty: nothing is stored."""
        return self._request and key_of("entry", self._request, name, address)

    def get(self, name: str, address: int) -> Prepared | None:
        """The record of an entry, if there is one."""
        for solved in (False, True):
            key = self.key(name, address, solved=solved)
            record: PreparedRecord | None = self._store.load(key, PreparedRecord) if key else None
            if record is not None and not (self._shows_tests and record.prepared.hides_tests):
                return relocated(record.prepared, record.sources, self._sources)
        return None

    def put(self, name: str, address: int, prepared: Prepared) -> None:
        """Store the record of an entry, if it is final."""
        key = self.key_of(name, address, prepared)
        if key:
            self._store.save(key, PreparedRecord(prepared, self._sources))

    def key_of(self, name: str, address: int, prepared: Prepared) -> str:
        """The key of the results of an entry; empty: they are not final, so not stored."""
        bounds = [bound for paths in prepared.paths for bound in paths.bounds]
        final = not prepared.cut_off and all(map(self.is_final, bounds))
        return self.key(name, address, solved=prepared.solved) if final else ""

    def programs_key(self, name: str, address: int, prepared: Prepared) -> str:
        """The key of the costs in the integer programs of an entry; empty as for ``key_of``.

        Repeated proofs may give other bounds of loops, so it has the cycles of replaced functions.
        """
        key = self.key_of(name, address, prepared)
        if not key or not prepared.solved:
            return key
        replaced = [
            [(at, one.cycles, one.limited) for at, one in paths.graph.guidance.replaced.items()]
            for paths in prepared.paths
        ]
        return key_of("costs", key, replaced, left_out=LEFT_OUT)

    def is_final(self, bound: LoopBound) -> bool:
        """Whether a bound is settled, and there is one, or a parameter may give one."""
        return self.is_settled(bound) and (bound.bound is not None or self._parameters)

    def is_settled(self, bound: LoopBound) -> bool:
        """Whether a bound is proved, or its proof failed within its time limit, so finally."""
        return bound.final and (bound.method not in ("", "fact") or bound.seconds < self._query)


def relocated(
    prepared: Prepared, then: Mapping[FactSubject, str], now: Mapping[FactSubject, str]
) -> Prepared:
    """``prepared`` with the present files and lines of facts."""
    places = {old: now[subject] for subject, old in then.items() if now[subject] != old}
    if not places:
        return prepared
    return replace(
        prepared,
        paths=tuple(
            replace(
                p,
                graph=replace(p.graph, guidance=p.graph.guidance.moved(places)),
                bounds=tuple(bound.moved(places) for bound in p.bounds),
            )
            for p in prepared.paths
        ),
        assumptions=tuple(assumption.moved(places) for assumption in prepared.assumptions),
    )
