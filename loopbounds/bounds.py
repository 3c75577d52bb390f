"""The bound of every loop of a supergraph, with its evidence: proved, or stated by a fact.

Loops with the same slice and the same initial ranges share one proof. A proved bound replaces a
looser fact. A tighter fact counts as an assumption, unless an execution exceeds it: then it is
refuted. A loop with neither gets no bound, and its result names the fact to add. No slice is
computed for a fact that is no tighter than the proof, or that no execution can refute.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial

from loopbounds.budgets import table
from loopbounds.execution.counts import ExecutionCounts
from loopbounds.execution.loop_replay import ExecutionReplay, GraphReplay
from loopbounds.places import facts_of_loops, lists_of_loops
from loopbounds.proof.bound import CHECKERS, EITHER, SMT, LoopBound
from loopbounds.proof.checkers import any_checker
from loopbounds.proof.evidence import (
    assumed,
    better_proved,
    is_constant,
    judge,
    most_executed,
    not_tried,
    not_useful,
    of_execution,
    refute,
    refute_by_execution,
    solver_failed,
)
from loopbounds.proof.keys import graph_identity, graph_key
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.rounds import ModelProof, Progress, ProofRounds
from loopbounds.proof.store import GraphBounds, copy_models
from loopbounds.slicing.acyclic import AcyclicGraph
from loopbounds.slicing.code import GraphCode, KnownValues, UnknownValues
from loopbounds.slicing.gated_ssa import GatedSsa, OutOfEffort
from loopbounds.slicing.slice import RegisterDecidedLoop, Slice, slice_loops
from loopbounds.slicing.stacks import NO_STACKS, StackSpans
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker
from loopbounds.transition.model import LoopModel
from quoll.facts.count_facts import LoopFact
from quoll.facts.entry_invariants import LocatedInvariant
from quoll.facts.invariants import ListAtMostFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop

__all__ = [
    "BoundOptions",
    "Progress",
    "bound_loops",
    "bounds_by_counting",
    "deep_recursion",
    "narrowed",
]


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for calls that nest as deep as terms and graphs do."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, table.FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def bound_loops(
    graph: Supergraph,
    image: Image,
    values: KnownValues | None,
    facts: LocatedFacts,
    options: BoundOptions | None = None,
    progress: Progress | None = None,
    only: frozenset[int] | None = None,
    *,
    counted: frozenset[int] = frozenset(),
    called: bool = False,
    stacks: StackSpans = NO_STACKS,
    identity: Callable[[], str] | None = None,
    replay: ExecutionReplay | None = None,
    invariants: tuple[LocatedInvariant, ...] = (),
) -> tuple[LoopBound, ...]:
    """One ``LoopBound`` per loop of ``graph``, in its order.

    ``only``: the loops to be proved, if not None. ``counted``: loops whose bound no proof has to
    give; they are proved only if a fact states a bound, or with ``options.prove_stated``.
    ``called``: callers choose the arguments, so that no arguments refute a fact. ``stacks``:
    further stacks, to which code outside the graph switches. ``identity``: the hash of the graph
    and its values (``graph_identity``), if known already. ``replay``: the executions that may
    refute a fact; by default they start at the entry of the graph. ``invariants``: facts about
    words of memory at the entry of the graph.

    Raises FactsError for a fact that names no loop or is refuted, and ControlFlowError for an
    instruction without semantics.
    """
    options = options or BoundOptions()
    values = values or UnknownValues()
    stated = facts_of_loops(graph, image, facts)
    wanted = tuple(
        i
        for i in range(len(graph.loops))
        if only is None or i in only
        if i not in counted or stated[i] or options.prove_stated
    )
    if not wanted:
        return tuple(map(not_tried, graph.loops))
    tightest = {i: found[0] for i in wanted if (found := stated[i])}
    loops = _GraphLoops(
        graph,
        image,
        values,
        stacks.joined(StackSpans.of((node.block for node in graph.nodes), image)),
        options,
        progress,
        any_checker(options.checker),
        wanted,
        frozenset(tightest),
        lists_of_loops(graph, image, facts),
        called,
        identity or partial(graph_identity, graph, image, values),
        replay or GraphReplay(graph, image, values),
        invariants,
    )
    with deep_recursion():
        bounds = loops.counted(tightest)
        chosen = options.checker != EITHER or loops.checker.name == SMT
        if chosen or all(bound.final for bound in bounds):
            return bounds
        other = replace(loops, checker=SmtChecker())  # with the models that are proved
        return tuple(map(better_proved, bounds, other.counted(tightest)))


def bounds_by_counting(
    graph: Supergraph, image: Image, facts: LocatedFacts, execution: ExecutionCounts
) -> tuple[LoopBound, ...]:
    """One ``LoopBound`` per loop of a graph with one execution.

    Raises FactsError for a fact that names no loop or that the execution exceeds.
    """
    bounds = []
    for loop, stated in zip(graph.loops, facts_of_loops(graph, image, facts), strict=True):
        executed = execution.most[loop.index]
        for fact in stated:
            whole = executed + graph.apart(loop) if executed else 0
            refute_by_execution(fact, whole, execution.assumed)
        bounds.append(of_execution(loop, execution, _header_around(graph, loop, execution)))
    return tuple(bounds)


def _header_around(graph: Supergraph, loop: SuperLoop, execution: ExecutionCounts) -> int | None:
    """The header of the enclosing loop, if the total over it is less than the product."""
    around = loop.parent
    if around is None:
        return None
    product = execution.most[around] * execution.most[loop.index]
    less = execution.totals[loop.index] < product
    return graph.nodes[graph.loops[around].header].block.addr if less else None


def narrowed(
    graph: Supergraph, bounds: Sequence[LoopBound], execution: ExecutionCounts
) -> tuple[LoopBound, ...]:
    """The ``bounds``, with the counts of all executions where these are less."""
    assumed = tuple(sorted({*execution.assumed, *(a for b in bounds for a in b.assumed)}))
    execution = replace(execution, assumed=assumed)
    return tuple(
        _narrowed(b, of_execution(loop, execution, _header_around(graph, loop, execution)))
        for b, loop in zip(bounds, graph.loops, strict=True)
    )


def _narrowed(bound: LoopBound, counted: LoopBound) -> LoopBound:
    if bound.bound is None or counted.bound is None or counted.bound < bound.bound:
        return counted
    bound = replace(bound, assumed=counted.assumed)
    if counted.total is None or (bound.total is not None and bound.total <= counted.total):
        return bound
    return replace(bound, total=counted.total, around=counted.around)


def _alone(ssa: GatedSsa, cut: Slice) -> RegisterDecidedLoop | None:
    """``cut.alone()``, if it takes at most ``REFUTING_VALUES``."""
    with ssa.limited(table.REFUTING_VALUES):
        return cut.alone()


@dataclass(slots=True)
class _GraphLoops:
    """The bounds of the loops of one graph: by cached proofs and by facts.

    ``wanted``: the loops to be bounded; ``stated``: the wanted loops that facts count. ``lists``:
    facts about the list that a loop walks. ``called``: callers choose the arguments. ``stacks``:
    all stacks of the program. ``identity``: hashes the graph and its values. ``replay``: the
    executions that may refute a fact. ``proved``: the models at which no solver failed, perhaps
    with another checker.
    """

    graph: Supergraph
    image: Image
    values: KnownValues
    stacks: StackSpans
    options: BoundOptions
    progress: Progress | None
    checker: Checker
    wanted: Sequence[int]
    stated: frozenset[int]
    lists: Mapping[int, ListAtMostFact]
    called: bool
    identity: Callable[[], str]
    replay: ExecutionReplay
    invariants: tuple[LocatedInvariant, ...]
    proved: dict[LoopModel, ModelProof] = field(default_factory=dict)
    _acyclic: AcyclicGraph = field(init=False)
    _rounds: ProofRounds | None = field(init=False, default=None)
    _tried: Counter[int] = field(init=False, default_factory=Counter)  # sliced contexts, by header
    _ending: set[int] = field(init=False, default_factory=set)  # whose inner loops terminate

    def __post_init__(self) -> None:
        self._acyclic = AcyclicGraph.of(self.graph)

    def counted(self, facts: Mapping[int, LoopFact]) -> tuple[LoopBound, ...]:
        """The bound of each loop, by proof or, where ``facts`` says less, by assumption.

        Raises FactsError when a fact is refuted.
        """
        proved = self._graph_bounds()
        bounds = list(proved.bounds)
        for loop, fact in facts.items():
            known, apart = bounds[loop], self.graph.apart(self.graph.loops[loop])
            if known.bound is not None and known.bound + apart <= fact.bound:
                continue
            executed = proved.executed.get(loop, 0) + apart
            if executed > fact.bound:
                entry = self.graph.nodes[self.graph.entry].block.addr
                cut = self._slice(loop)
                assert cut is not None
                entered = self._entered_by_all(loop) and self._is_reached(loop, proved, facts)
                refute(fact, cut, entry, apart, self.replay, entered_by_all=entered)
            stated = assumed(known, fact, apart, executed)
            bounds[loop] = replace(stated, total=known.total, around=known.around)
        for loop, known in enumerate(bounds):
            if loop not in facts:
                bounds[loop] = self._if_useful(loop, known)
        for loop, known in enumerate(bounds):
            surely = loop in proved.constant or self._is_reached(loop, proved, facts)
            if known.exact:
                always = loop in proved.constant
                bounds[loop] = replace(known, exact=surely or None, always=always)
        return tuple(self._without_loose_total(b, bounds) for b in bounds)

    def _if_useful(self, loop: int, known: LoopBound) -> LoopBound:
        """``known``; no bound where the proof only gives the range of a word (``table.USEFUL``)."""
        counts = [n for n in (known.bound, known.total) if n is not None]
        if min(counts, default=0) <= table.USEFUL or known.method not in CHECKERS or known.assumes:
            return known
        cut = self._slice(loop)
        if cut is None or is_constant(cut):
            return known
        return not_useful(self.graph, self.image, self.graph.loops[loop], cut, known)

    def _is_reached(self, loop: int, proved: GraphBounds, facts: Mapping[int, LoopFact]) -> bool:
        """Whether control gets here: all earlier loops, except for enclosing ones, are bounded."""
        loops, order = self.graph.loops, self._acyclic.order
        header = loops[loop].header
        before = (
            i
            for i, other in enumerate(loops)
            if order[other.header] < order[header] and header not in other.nodes
        )
        return all(proved.bounds[i].bound is not None or i in facts for i in before)

    def _without_loose_total(self, bound: LoopBound, bounds: Sequence[LoopBound]) -> LoopBound:
        """``bound``, without a total that is no less than the product of the bounds."""
        parent = self.graph.loops[bound.loop].parent
        if bound.total is None or bound.bound is None or parent is None:
            return bound
        outer = bounds[parent].bound
        loose = outer is not None and bound.total >= outer * bound.bound
        return replace(bound, total=None, around=None) if loose else bound

    def _graph_bounds(self) -> GraphBounds:
        """The bounds before facts that count are applied; cached, or computed now."""
        lists = sorted(self.lists.items())
        given, stated = not self.options.prove_stated, sorted(self.stated)
        options = (self.options.budget, self.options.s1, given, self.called)
        read = (options, self.wanted, stated, lists, self.stacks, self.invariants)
        store = self.options.store
        key = graph_key(self.identity(), read, self.checker) if store.enabled else ""
        known: GraphBounds | None = store.load(key, GraphBounds)
        if known is not None and copy_models(store, known.models, self.options.models):
            return known
        of_checker = not self.proved
        rounds = self._proofs()
        bounds = rounds.with_totals([self._judged(i) for i in range(len(self.graph.loops))])
        executed = {
            i: most_executed(cut, entered_by_all=self._entered_by_all(i))
            for i in self.stated
            if (cut := self._slice(i)) is not None
        }
        constant = frozenset(i for i in rounds.outcomes if is_constant(rounds.slices[i]))
        models = tuple(dict.fromkeys(rounds.keys.values()))
        proved = GraphBounds(bounds, models, executed, constant)
        if of_checker and all(bound.final for bound in bounds):
            store.save(key, proved)
        return proved

    def _proofs(self) -> ProofRounds:
        if self._rounds is None:
            code = GraphCode(
                self.graph,
                self._acyclic,
                self.image,
                self.values,
                self.stacks,
                at_start=not self.called,
                s1=self.options.s1,
                lists={loop: fact.most for loop, fact in self.lists.items()},
                invariants=self.invariants,
            )
            self._rounds = ProofRounds(
                code, self.options, self.checker, self.progress, proved=self.proved
            )
            given = frozenset[int]() if self.options.prove_stated else self.stated
            tried = set(self.wanted) - given
            self._rounds.run(sorted(tried))
            while more := self._rounds.waited_for() & given - tried:
                tried |= more
                self._rounds.run(sorted(tried))
            self._ending = self._with_ending_loops_inside(self._rounds)
        return self._rounds

    def _slice(self, loop: int) -> Slice | None:
        """The slice of a loop; None for a loop without a proof whose slice would cost too much.

        Such a loop is sliced in at most ``REFUTING_CONTEXTS`` contexts, and in no further one after
        a slice has exceeded ``REFUTING_VALUES`` beyond the values that proofs have needed.
        """
        rounds = self._proofs()
        header = self.graph.nodes[self.graph.loops[loop].header].block.addr
        if loop not in rounds.slices and self._tried[header] < table.REFUTING_CONTEXTS:
            self._tried[header] += 1
            try:
                with rounds.ssa.limited(table.REFUTING_VALUES):
                    cut = slice_loops(rounds.ssa, [loop])[loop]
                rounds.slices[loop] = replace(cut, alone=cache(partial(_alone, rounds.ssa, cut)))
            except OutOfEffort:
                self._tried[header] = table.REFUTING_CONTEXTS
        return rounds.slices.get(loop)

    def _judged(self, loop: int) -> LoopBound:
        rounds, about = self._proofs(), self.graph.loops[loop]
        outcome = rounds.outcomes.get(loop)
        if outcome is None:
            return not_tried(about)
        failed = rounds.failed_before(loop) if outcome.bound is None else None
        if failed is not None and not outcome.failed:
            header = self.graph.nodes[self.graph.loops[failed].header].block.addr
            why = f"for the loop at {self.image.place(header)}, on which this one depends"
            return solver_failed(about, why)
        return judge(
            self.graph,
            self.image,
            about,
            rounds.slices[loop],
            outcome,
            self.lists.get(loop),
            inner_end=loop in self._ending,
        )

    def _entered_by_all(self, loop: int) -> bool:
        """Whether registers may hold any word at the entry, and the inner loops terminate."""
        return not self.called and loop in self._ending

    def _with_ending_loops_inside(self, rounds: ProofRounds) -> set[int]:
        """The loops whose inner loops all provably terminate."""
        found = {loop.index for loop in self.graph.loops}
        for loop in reversed(self.graph.loops):  # inner loops first
            outcome = rounds.outcomes.get(loop.index)
            ends = outcome is not None and outcome.bound is not None and loop.index in found
            if loop.parent is not None and not ends:
                found.discard(loop.parent)
        return found
