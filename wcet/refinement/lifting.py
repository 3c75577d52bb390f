"""A core in other contexts: the same decisions of the same code, called from elsewhere.

A core's contexts have a nearest common one, an activation of some function. Every other activation
of that function is a candidate: the decisions are found there by the call sites that lead to them.
The proof need not hold there, as another caller may pass other values. So it is made again, over
all code of the pass of that context, as for a core of a worst path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from ilp.constraints.proved_exclusions import InfeasibleCore
from loopbounds.slicing.acyclic import AcyclicGraph
from quoll.inlining.supergraph import Supergraph
from wcet.refinement.exclusions import proved_distance
from wcet.refinement.limited_edges import most_per_entry
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass, scopes_of
from wcet.refinement.unsatisfiable_core import contradictory

__all__ = ["ContextCopies", "lifted", "proved_again"]


def lifted(
    conditions: PassConditions, copies: ContextCopies, core: InfeasibleCore
) -> Iterator[InfeasibleCore]:
    """The cores with the same decisions in other contexts, each proved there; none with counts."""
    if core.counts:
        return
    for edges in copies.of(core.edges):
        for loop in innermost(conditions.code.acyclic, edges):
            if core.most:
                yield from limited(conditions, loop, edges, core)
                continue
            distance = proved(conditions, loop, edges, core.distance)
            if distance is not None:
                yield InfeasibleCore(loop, edges, core.about, distance)


def proved_again(conditions: PassConditions, core: InfeasibleCore) -> InfeasibleCore | None:
    """A core of another build of the program with its proof in this one; None: there is none."""
    graph, acyclic = conditions.code.graph, conditions.code.acyclic
    if any(core.loop not in scopes_of(acyclic, edge) for edge in core.edges):
        return None
    if any(graph.loops[inner].parent != core.loop for inner, _ in core.counts):
        return None
    if core.most:
        found = next(limited(conditions, core.loop, core.edges, core), None)
    elif core.distance > 1:
        distance = proved(conditions, core.loop, core.edges, core.distance)
        found = None if distance is None else replace(core, distance=distance)
    else:
        found = core if excluded(conditions, core.loop, core.edges, core.counts) else None
    if found is None:
        return None
    [taken] = conditions.taken([Pass(core.loop, core.edges)])
    return replace(found, about=conditions.common_words(core.loop, list(taken.values())))


def limited(
    conditions: PassConditions, loop: int | None, edges: tuple[int, ...], core: InfeasibleCore
) -> Iterator[InfeasibleCore]:
    """The limit of a single edge for each entry of another loop, as far as it is proved."""
    most = None if loop is None else most_per_entry(conditions, loop, edges[0])
    if most is not None:
        yield InfeasibleCore(loop, edges, core.about, most=most)


def proved(
    conditions: PassConditions, loop: int | None, edges: Sequence[int], distance: int
) -> int | None:
    """The distance of a core of these edges; None: there is no proof."""
    if distance == 1:
        return 1 if excluded(conditions, loop, edges) else None
    if loop is None:
        return None
    found = proved_distance(conditions, loop, edges[0])
    return found if found > 1 else None


def excluded(
    conditions: PassConditions,
    loop: int | None,
    edges: Sequence[int],
    counts: Sequence[tuple[int, int]] = (),
) -> bool:
    """Whether it is proved that no pass of ``loop`` takes all of ``edges`` and has ``counts``."""
    [taken] = conditions.taken([Pass(loop, tuple(edges))])
    repeated = conditions.repeated(loop, counts)
    decisions = [*taken.values(), *repeated.values()]
    counted = len(repeated) == len(counts)
    return counted and contradictory(decisions, partial(conditions.ranges, loop))


def innermost(acyclic: AcyclicGraph, edges: Sequence[int]) -> list[int | None]:
    """The innermost pass to which all edges belong, a loop or None for the path; none: empty."""
    first, *others = (list(scopes_of(acyclic, edge)) for edge in edges)
    return [one for one in first if all(one in scopes for scopes in others)][:1]


class ContextCopies:
    """The copies of the edges of a graph in other contexts."""

    def __init__(self, graph: Supergraph) -> None:
        self._graph = graph

    def of(self, edges: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The same edges below each other activation of their nearest common function."""
        graph = self._graph
        strings = [self._string(graph.nodes[graph.edges[edge].src].context) for edge in edges]
        common = nearest(strings)
        for context in self._activations[graph.contexts[common[-1]].function]:
            if context == common[-1]:
                continue
            found = [
                self._copy(edge, common, context, string[len(common) :])
                for edge, string in zip(edges, strings, strict=True)
            ]
            known = tuple(edge for edge in found if edge is not None)
            if len(known) == len(edges):
                yield known

    def _string(self, context: int | None) -> tuple[int, ...]:
        """The contexts around a context, outermost first, itself last."""
        found: list[int] = []
        while context is not None:
            found.append(context)
            context = self._graph.contexts[context].parent
        return tuple(reversed(found))

    def _copy(
        self, edge: int, common: Sequence[int], context: int, below: Sequence[int]
    ) -> int | None:
        """The copy of an edge whose context is ``below`` the common one; None: none, or several."""
        graph, taken = self._graph, self._graph.edges[edge]
        for step in below:
            one = graph.contexts[step]
            calls = self._calls.get((context, one.call_site, one.function), [])
            if len(calls) != 1:
                return None
            [context] = calls
        sources = self._nodes.get((context, graph.nodes[taken.src].block.addr), [])
        target = graph.nodes[taken.dst].block.addr
        found = [
            e
            for source in sources
            for e in graph.successors[source]
            if graph.edges[e].kind is taken.kind
            and graph.nodes[graph.edges[e].dst].block.addr == target
        ]
        return found[0] if len(sources) == len(found) == 1 else None

    @cached_property
    def _activations(self) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for index, context in enumerate(self._graph.contexts):
            found[context.function].append(index)
        return found

    @cached_property
    def _calls(self) -> Mapping[tuple[int | None, int | None, int], list[int]]:
        found: dict[tuple[int | None, int | None, int], list[int]] = defaultdict(list)
        for index, context in enumerate(self._graph.contexts):
            found[context.parent, context.call_site, context.function].append(index)
        return found

    @cached_property
    def _nodes(self) -> Mapping[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, node in enumerate(self._graph.nodes):
            found[node.context, node.block.addr].append(index)
        return found


def nearest(strings: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The contexts that all strings begin with."""
    first = strings[0]
    length = min(map(len, strings))
    same = [at for at in range(length) if all(one[at] == first[at] for one in strings)]
    return tuple(first[: len(same)])
