"""Decisions of a worst path that look exclusive, and the fact that each pair would need.

Two decisions of a pass look exclusive if their conditions exclude each other once words that look
the same are taken for one: the word of one address before and after a store that may hit it, and
words that are loaded on one source line, or with one offset and size. No proof follows: a person
has to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations

from ilp.constraints.constraint import resolve_constraints
from loopbounds.proof.bound import CHECKERS
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term
from quoll.errors import FactsError, InfeasibleError, UsageError
from quoll.facts.anchors import anchored
from quoll.facts.located import locate
from quoll.facts.read import Facts, parse
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.entry_stages import AnalysisTarget, divided
from wcet.analysis.integer_programs import (
    StartProgram,
    bound_of_paths,
    constraints_of,
    start_programs,
)
from wcet.analysis.preparation import valued
from wcet.analysis.run import AnalysisRun
from wcet.refinement.exclusions import SegmentEdges
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass, passes_of
from wcet.refinement.unsatisfiable_core import contradictory

__all__ = ["DoubtedDecision", "PathDoubt", "PathDoubts", "path_doubts"]

SHOWN = 10  # pairs that lower the bound
SOLVED = 40  # pairs for which the program is solved again
CHECKED = 2_000  # pairs that the SMT solver checks


@dataclass(frozen=True, slots=True)
class DoubtedDecision:
    """A transfer of control of the worst path: addresses of the instruction and of its target."""

    insn: int
    target: int
    text: str  # of the instruction


@dataclass(frozen=True, slots=True)
class PathDoubt:
    """Two decisions of one pass, the words that look the same, and the fact to be stated.

    ``loop``: address of the header of the loop of the pass; None: the whole path. ``cycles``: the
    bound with the fact. ``proved``: they exclude each other, which ``wcet refine`` finds.
    """

    first: DoubtedDecision
    second: DoubtedDecision
    loop: int | None
    about: tuple[str, ...]
    fact: str
    cycles: int
    proved: bool


@dataclass(frozen=True, slots=True)
class PathDoubts:
    """The doubts of an entry, the largest saving first; ``cycles``: its bound without them."""

    cycles: int
    doubts: tuple[PathDoubt, ...]
    decisions: int  # of the worst path that have code of their own


def path_doubts(run: AnalysisRun, seconds: float) -> PathDoubts:
    """The doubts of the one entry of ``run``, found within ``seconds`` of search.

    Raises as ``wcet.analysis.analysis.analyse`` does, and UsageError for a parametric bound.
    """
    ((name, address),) = run.entries.items()
    prepared = cached_or_prepared(run, name, address)
    programs = start_programs(run, name, address, prepared, constraints_of(run, name, prepared))
    if any(one.answer.parametric is not None for one in programs):
        raise UsageError("the bound is a function", hint="give numbers with --set NAME=N")
    with run.stages.stage("doubt", name):
        search = _Search.begin(run, name, address, programs)
        return search.run(time.monotonic() + seconds)


@dataclass(frozen=True, slots=True)
class _Decision:
    """An edge of the whole graph with code of its own behind it.

    ``weight``: cycles of the worst path in code that only this edge leads to. ``looks``: its words,
    by a key that is equal for words that look the same.
    """

    edge: int
    condition: Term
    weight: int
    looks: Mapping[Hashable, Term]


@dataclass(slots=True)
class _Search:
    """The programs of an entry, the worst of them, and the conditions of its passes."""

    analysed: AnalysisRun
    programs: Sequence[StartProgram]
    worst: int
    path: Sequence[int]  # edges of the whole graph
    conditions: PassConditions
    weights: Sequence[int]  # by node of the whole graph
    decisions: set[int] = field(default_factory=set)

    @staticmethod
    def begin(
        run: AnalysisRun, name: str, address: int, programs: Sequence[StartProgram]
    ) -> _Search:
        """The worst path as edges of the whole graph, with the cycles of its code."""
        entry = valued(AnalysisTarget(run, name, address), preemptible=True)
        segments = divided(entry)
        bounds: dict[int, int] = {}
        for segment, program in zip(segments, programs, strict=True):
            for bound in program.paths.bounds:
                if bound.method in CHECKERS and bound.bound is not None:
                    loop = segment.loops[bound.loop]
                    bounds[loop] = max(bound.bound, bounds.get(loop, 0))
        cycles = [one.answer.worst.solution.cycles for one in programs]
        worst = cycles.index(max(cycles))
        steps = programs[worst].answer.worst.path.steps
        taken = [step.edge for step in steps if step.edge is not None]
        weights = [0] * len(entry.graph.nodes)
        for step in steps:
            node = segments[worst].nodes[step.node]
            weights[node] += programs[worst].paths.costs.node_cycles(step.node)
        conditions = PassConditions.of(entry, bounds)
        path = SegmentEdges(segments[worst], entry.graph).path(taken)
        return _Search(run, programs, worst, path, conditions, dominated(conditions, weights))

    @property
    def graph(self) -> Supergraph:
        """All paths of the entry."""
        return self.conditions.code.graph

    @property
    def image(self) -> Image:
        """The kernel."""
        return self.analysed.image

    def run(self, end: float) -> PathDoubts:
        """The doubts that are found by the time ``end``."""
        bound = self.programs[self.worst].answer.worst.solution.cycles
        found: dict[str, PathDoubt] = {}
        if self.conditions.code.acyclic.innermost[self.graph.entry] < 0:
            for number, (loop, first, second) in enumerate(self._pairs()):
                lower = sum(one.cycles < bound for one in found.values())
                over = number == CHECKED or len(found) == SOLVED or lower == SHOWN
                if over or time.monotonic() > end:
                    break
                doubt = self._doubt(loop, first, second, bound)
                if doubt is not None and doubt.fact not in found:
                    found[doubt.fact] = self._solved(doubt)
        saving = (one for one in found.values() if one.cycles < bound)
        ordered = sorted(saving, key=lambda one: one.cycles)
        return PathDoubts(bound, tuple(ordered), len(self.decisions))

    def _pairs(self) -> list[tuple[int | None, _Decision, _Decision]]:
        """Pairs of decisions of one pass with words that look the same, the heaviest first."""
        found = []
        passes = dict.fromkeys(passes_of(self.conditions.code.acyclic, self.path))
        for one in passes:
            of_pass = self._decisions(one)
            self.decisions.update(decision.edge for decision in of_pass)
            for first, second in combinations(of_pass, 2):
                if first.looks.keys() & second.looks.keys():
                    found.append((one.loop, first, second))
        return sorted(found, key=lambda pair: -min(pair[1].weight, pair[2].weight))

    def _decisions(self, one: Pass) -> list[_Decision]:
        """The decisions of a pass with code of their own that takes time."""
        edges = tuple(e for e in one.edges if self._has_code(e))
        [taken] = self.conditions.taken([Pass(one.loop, edges)])
        found = []
        for edge, condition in taken.items():
            weight = self.weights[self.graph.edges[edge].dst]
            if condition is not TRUE and weight:
                looks = self.conditions.looks(one.loop, condition)
                found.append(_Decision(edge, condition, weight, looks))
        return found

    def _has_code(self, edge: int) -> bool:
        """Whether only ``edge`` leads to its target, of whose block a fact can count executions."""
        taken = self.graph.edges[edge]
        block = self.graph.nodes[taken.dst].block
        alone = self.graph.predecessors[taken.dst] == (edge,)
        decides = len(self.graph.successors[taken.src]) > 1
        return alone and decides and block.always_runs(block.insns[0])

    def _doubt(
        self, loop: int | None, first: _Decision, second: _Decision, bound: int
    ) -> PathDoubt | None:
        """The doubt about a pair; None if it does not look exclusive, or no fact states it."""
        fact = self._fact(loop, first.edge, second.edge)
        if fact is None:
            return None
        ranges = partial(self.conditions.ranges, loop)
        proved = contradictory([first.condition, second.condition], ranges)
        same = first.looks.keys() & second.looks.keys()
        one_word = {second.looks[key]: first.looks[key] for key in same}
        unified = rewrite.substitute(second.condition, one_word)
        if not proved and not contradictory([first.condition, unified], ranges):
            return None
        words = self.conditions.words(loop, [first.condition, second.condition])
        pairs = ((first.looks[key], second.looks[key]) for key in same)
        about = dict.fromkeys(words[word] for pair in pairs for word in pair)
        header = None if loop is None else self._address(self.graph.loops[loop].header)
        return PathDoubt(
            self._shown(first.edge), self._shown(second.edge), header, tuple(about), fact, bound,
            proved,
        )  # fmt: skip

    def _shown(self, edge: int) -> DoubtedDecision:
        taken = self.graph.edges[edge]
        last = self.graph.nodes[taken.src].block.last
        return DoubtedDecision(last.addr, self._address(taken.dst), last.text)

    def _address(self, node: int) -> int:
        return self.graph.nodes[node].block.addr

    def _fact(self, loop: int | None, first: int, second: int) -> str | None:
        """The fact that excludes both decisions in an invocation that is part of the pass."""
        nodes = [self.graph.edges[e].dst for e in (first, second)]
        chains = [list(self._chain(self.graph.nodes[n].context)) for n in nodes]
        common = next(c for c in chains[0] if c in chains[1])
        if loop is not None:
            header = self.graph.nodes[self.graph.loops[loop].header].context
            if header == common or header not in self._chain(common):
                return None
        a, b = (self._place(self._address(n)) for n in nodes)
        function = self._function(self.graph.contexts[common].function)
        return None if a == b else f"{a} conflicts with {b} in {function}"

    def _function(self, address: int) -> str:
        found = self.image.symbol_at(address)
        if found is None or found[1] or self.image.only_symbol(found[0].name) != found[0]:
            return hex(address)
        return found[0].name

    def _chain(self, context: int | None) -> Iterator[int]:
        """A context and its callers."""
        while context is not None:
            yield context
            context = self.graph.contexts[context].parent

    def _place(self, address: int) -> str:
        return anchored(self.image, address) or hex(address)

    def _solved(self, doubt: PathDoubt) -> PathDoubt:
        """``doubt`` with the bound of all starts when its fact is stated."""
        facts = locate(Facts(parse(doubt.fact, "--doubt").facts), self.image)
        cycles = 0
        for program in self.programs:
            try:
                more = resolve_constraints(program.paths.graph, facts)
                inputs = replace(program.inputs, constraints=(*program.inputs.constraints, *more))
                answer = bound_of_paths(self.analysed, program.paths, inputs)
            except InfeasibleError:
                continue
            except FactsError:  # a place is in several blocks
                return doubt
            cycles = max(cycles, answer.worst.solution.cycles)
        return replace(doubt, cycles=cycles)


def dominated(conditions: PassConditions, weights: Sequence[int]) -> list[int]:
    """By node, the sum of the weights of all nodes that it dominates."""
    acyclic = conditions.code.acyclic
    total = list(weights)
    nodes: Iterable[int] = (n for n in range(len(total)) if acyclic.order[n] > 0)
    key: Callable[[int], int] = acyclic.order.__getitem__
    for node in sorted(nodes, key=key, reverse=True):
        total[acyclic.dominator[node]] += total[node]
    return total
