"""Recursion depth: the largest number of activations of a function at a time.

Recursive calls are the back edges of a graph (``quoll.inlining.recursive_loops``), so a depth is
proved like a loop bound: n executions of the entry of a function, per entry from outside, are n
activations of it. Where the functions of a cycle call each other in several orders, loops are
nested, and the product of the bounds of all loops around a function's entry, summed over its
contexts, bounds its activations. A stated depth counts where it is less than the proved one, and an
execution may refute it like a loop fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from loopbounds.bounds import bound_loops
from loopbounds.budgets import table
from loopbounds.execution.activations import ActivationCounts, activated
from loopbounds.execution.loop_replay import ExecutionReplay, NoReplay, RecursionReplay
from loopbounds.proof.bound import LoopBound, NoBoundKind
from loopbounds.proof.options import BoundOptions
from loopbounds.slicing.stacks import StackSpans
from quoll.assumptions import Assumption
from quoll.cfg.call_graph import call_graph, cutting, refuse_recursion
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError, FactsError
from quoll.facts.applied import RecursionDepth
from quoll.facts.count_facts import LoopFact
from quoll.facts.guidance import RecursionFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.expand import reached_from, without_edges
from quoll.inlining.recursive_loops import (
    RecursiveActivations,
    TooManyContexts,
    activations,
    outer_calls,
)
from quoll.value_analysis.value_results import ValueResults, analyse

__all__ = ["RecursionDepths", "find_depths", "with_depths"]


@dataclass(frozen=True, slots=True)
class RecursionDepths:
    """Depths of recursive functions, by entry address; ``reasons``: why others have none."""

    depths: Mapping[int, RecursionDepth]
    reasons: Mapping[int, str]
    assumed: tuple[Assumption, ...] = ()  # the named assumptions of the proofs


def with_depths(program: Program, entry: int, image: Image, found: RecursionDepths) -> Program:
    """``program`` with a depth for the recursion that the function at ``entry`` reaches.

    Raises ControlFlowError for recursion without one.
    """
    if not found.depths and not found.reasons:
        return program
    reached = reached_from(program, entry & ~1)
    part = {f: cfg for f, cfg in program.functions.items() if f in reached}
    depths = {**program.guidance.depths, **found.depths}
    refuse_recursion(replace(program, functions=part), image, depths.keys(), found.reasons)
    assumptions = (*program.assumptions, *found.assumed)
    guidance = replace(program.guidance, depths=depths)
    return replace(program, guidance=guidance, assumptions=tuple(dict.fromkeys(assumptions)))


def find_depths(
    program: Program,
    entry: int,
    image: Image,
    facts: LocatedFacts,
    options: BoundOptions | None = None,
    *,
    called: bool = False,
) -> RecursionDepths:
    """The depths of recursion that ``entry`` reaches: proved, or stated and not refuted.

    ``called``: callers choose the arguments, so that no arguments refute a fact.
    Raises FactsError if a stated depth is refuted.
    """
    try:
        found = activations(program, entry, image)
        if found is None:
            return RecursionDepths({}, {})
        executed = None if called else activated(program, entry, image)
        if executed is not None:
            return _counted(program, facts, found, executed)
        found, values = _valued(found, image, facts)
    except TooManyContexts:
        return _from_any_caller(program, entry, image, facts, options)
    except ControlFlowError:  # reported when contexts are built
        return RecursionDepths({}, {})
    replay = NoReplay() if called else _replay(program, entry, image, found)
    return _proved(program, found, values, image, facts, options, replay)


def _from_any_caller(
    program: Program,
    entry: int,
    image: Image,
    facts: LocatedFacts,
    options: BoundOptions | None,
) -> RecursionDepths:
    """The depths of recursion if any caller calls into each component of recursive functions.

    No call of a function outside a component leads back into it, so that the chains of each are
    followed by themselves. Of functions each of which is on all cycles, the least depth suffices.
    """
    image = image.starting_with(())  # callers may store
    graph = call_graph(program)
    depths: dict[int, RecursionDepth] = {}
    reasons: dict[int, str] = {}
    assumed: dict[Assumption, None] = {}
    for members, calls in outer_calls(program, entry).items():
        found = _of_component(program, calls, members, image, facts, options)
        cuts = [f for f in cutting(graph, members) if f in found.depths]
        least = min(cuts, key=lambda f: found.depths[f].activations, default=None)
        stated = members & program.guidance.depths.keys()
        wanted = found.depths.keys() if least is None else {least, *stated}
        depths |= {f: found.depths[f] for f in sorted(wanted & found.depths.keys())}
        reasons |= found.reasons
        assumed |= dict.fromkeys(found.assumed)
    return RecursionDepths(depths, reasons, tuple(assumed))


def _of_component(
    program: Program,
    called: Sequence[int],
    members: frozenset[int],
    image: Image,
    facts: LocatedFacts,
    options: BoundOptions | None,
) -> RecursionDepths:
    """The depths of ``members``: the largest ones when any caller calls one of ``called``.

    Calls of functions outside of ``members`` are steps past them. No depths if one is missing.
    """
    each = []
    for function in called:
        try:
            found = activations(program, function, image, members)
            assert found is not None, "it is recursive"
            found, values = _valued(found, image, facts)
        except (ControlFlowError, TooManyContexts):  # reported when contexts are built
            return RecursionDepths({}, {})
        each.append(_proved(program, found, values, image, facts, options, NoReplay()))
        if each[-1].reasons:
            return RecursionDepths({}, each[-1].reasons)
    return RecursionDepths(
        {f: _largest([one.depths[f] for one in each]) for f in sorted(members)},
        {},
        tuple(dict.fromkeys(a for one in each for a in one.assumed)),
    )


def _largest(depths: Sequence[RecursionDepth]) -> RecursionDepth:
    """The largest of depths, with the evidence of all."""
    return RecursionDepth(
        max(one.activations for one in depths),
        tuple(dict.fromkeys(fact for one in depths for fact in one.facts)),
        "; ".join(dict.fromkeys(one.evidence for one in depths if one.evidence)),
    )


def _valued(
    found: RecursiveActivations, image: Image, facts: LocatedFacts
) -> tuple[RecursiveActivations, ValueResults]:
    """The graph without edges that values exclude, and its values."""
    regions = facts.regions
    infeasible = analyse(found.graph, image, regions=regions, returning=False).dead_edges
    found = replace(found, graph=without_edges(found.graph, infeasible, image))
    return found, analyse(found.graph, image, regions=regions, returning=False)


def _proved(
    program: Program,
    found: RecursiveActivations,
    values: ValueResults,
    image: Image,
    facts: LocatedFacts,
    options: BoundOptions | None,
    replay: ExecutionReplay,
) -> RecursionDepths:
    """The depths, from the bounds of the loops of recursive calls."""
    stated = facts.stating(_as_loops(facts, found))
    only = _with_loops_inside(found)
    image = image.changing(values.changed)
    bounds = bound_loops(
        found.graph,
        image,
        values,
        stated,
        options,
        only=only,
        called=isinstance(replay, NoReplay),
        stacks=StackSpans.of_program(program, image),
        replay=replay,
    )
    return _Counting(program, found, bounds).depths()


def _with_loops_inside(found: RecursiveActivations) -> frozenset[int]:
    """The loops around entries of recursive functions, and all loops inside them.

    A loop inside leaves values behind with which a recursive call is made.
    """
    entries, loops = set(found.entries().values()), found.graph.loops
    around = {x.index for x in loops if x.nodes & entries}
    inside = {x.index for x in loops if x.parent is not None}
    while more := {i for i in inside - around if loops[i].parent in around}:
        around |= more
    return frozenset(around)


def _counted(
    program: Program,
    facts: LocatedFacts,
    found: RecursiveActivations,
    executed: ActivationCounts,
) -> RecursionDepths:
    """Depths of an entry with one execution. Raises FactsError if it exceeds a stated depth."""
    for address, fact in facts.addressed(RecursionFact):
        most = executed.most.get(address, 0)
        if most > fact.activations:
            raise FactsError.contradicted(
                f"{fact.function} has {most} activations at a time in the concrete execution of "
                "its "
                f"entry, not at most {fact.activations}",
                about=fact.key,
                hint=f"state at least {most}, or remove the fact",
            )
    evidence = (
        f"counted in the concrete execution of the entry, {executed.instructions:,} instructions"
    )
    depths: dict[int, RecursionDepth] = {}
    reasons: dict[int, str] = {}
    for function in sorted(found.components):
        most = max(1, executed.most.get(function, 0))
        if most > table.ACTIVATIONS:
            reasons[function] = f"in the concrete execution of the entry the depth is {most:,}"
        else:
            depths[function] = RecursionDepth(most, (), evidence)
    stated = {f: depth for f, depth in program.guidance.depths.items() if f in reasons}
    return RecursionDepths(depths | stated, reasons, executed.assumed)


def _replay(
    program: Program, entry: int, image: Image, found: RecursiveActivations
) -> ExecutionReplay:
    graph = found.graph
    heads = {loop.index: graph.nodes[loop.header] for loop in graph.loops}
    functions = {loop: graph.contexts[node.context].function for loop, node in heads.items()}
    return RecursionReplay(program, entry, image, functions)


def _as_loops(facts: LocatedFacts, found: RecursiveActivations) -> Iterator[LoopFact]:
    """Stated depths, as bounds of the loops whose headers are the entries of the functions."""
    headers = {found.graph.nodes[x.header].block.addr for x in found.graph.loops}
    for address, fact in facts.addressed(RecursionFact):
        if address in found.components and address in headers:
            yield LoopFact(fact.source, fact.function, fact.activations)


class _Counting:
    """Computes numbers of activations from bounds of loops."""

    def __init__(
        self, program: Program, found: RecursiveActivations, bounds: tuple[LoopBound, ...]
    ) -> None:
        self._found, self._bounds = found, bounds
        self._graph = found.graph
        self._stated = program.guidance.depths
        self._entries = found.entries()

    def depths(self) -> RecursionDepths:
        depths: dict[int, RecursionDepth] = {}
        reasons: dict[int, str] = {}
        used: list[LoopBound] = []
        for function in sorted(self._found.components):
            around = self._around(function)
            given, proved = self._stated.get(function), self._depth(function, around)
            if isinstance(proved, str):
                reasons[function] = proved
            elif given is None or (not proved.facts and proved.activations <= given.activations):
                depths[function] = proved
                used += around
                continue
            if given is not None:
                depths[function] = given
        return RecursionDepths(
            depths, reasons, tuple(dict.fromkeys(a for b in used for a in b.assumed))
        )

    def _around(self, function: int) -> list[LoopBound]:
        """The bounds of all loops around the entries of ``function``."""
        nodes = {n for c, n in self._entries.items() if self._function(c) == function}
        return [self._bounds[x.index] for x in self._graph.loops if x.nodes & nodes]

    def _depth(self, function: int, around: list[LoopBound]) -> RecursionDepth | str:
        """The depth of a function, or the reason why there is none."""
        for bound in around:
            if bound.bound is None:
                return _no_depth(bound)
        counts: dict[int, int] = {}  # by outermost context
        for context, node in self._entries.items():
            if self._function(context) == function:
                outermost = self._found.outermost(context)
                counts[outermost] = counts.get(outermost, 0) + self._executions(node)
        depth = max(counts.values(), default=1)
        if depth > table.ACTIVATIONS:
            return f"the proved depth, {depth:,}, is too large"
        facts = dict.fromkeys(b.fact for b in around if b.fact is not None)
        return RecursionDepth(depth, tuple(facts), "; ".join(b.explained for b in around))

    def _executions(self, node: int) -> int:
        """Most executions of an entry on a path, per call from outside the recursion."""
        return prod(self._bounds[x.index].bound or 1 for x in self._graph.loops if node in x.nodes)

    def _function(self, context: int) -> int:
        return self._graph.contexts[context].function


def _no_depth(bound: LoopBound) -> str:
    """The reason why there is no depth, because a loop has no bound."""
    reason = bound.reason
    assert reason is not None
    return reason.why if reason.kind is NoBoundKind.NOT_PROVED else str(reason)
