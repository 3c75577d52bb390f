"""Branches that the results of calls exclude, in the costs of the paths from each start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipeline.costs import Costs, ExcludedEdges, LimitedCall
from quoll.assumptions import Assumption
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ANY, ValueSet
from quoll.preemption.edge_copies import EdgeCopies
from quoll.preemption.segments import PendingSegment
from quoll.value_analysis.value_results import ValueResults
from wcet.result_classes.result_paths import ResultPaths

__all__ = ["ExcludedBranches", "excluded_branches", "with_branches", "with_results"]


@dataclass(frozen=True, slots=True)
class ExcludedBranch:
    """No pass takes ``edge`` behind the edge ``call`` when the call has one of ``results``.

    A pass is an iteration of ``loop``, or the whole path (-1), and executes ``node``.
    """

    call: int
    results: frozenset[ValueSet]
    edge: int
    loop: int
    node: int


@dataclass(frozen=True, slots=True)
class ExcludedBranches:
    """The branches that results of calls exclude in a whole graph.

    ``assumptions``: those that only values behind calls with a certain result depend on.
    """

    found: tuple[ExcludedBranch, ...]
    assumptions: tuple[Assumption, ...]


def excluded_branches(values: ValueResults) -> ExcludedBranches:
    """The branches that results of calls exclude in the whole graph of ``values``."""
    known = _results(values.graph)
    if not known:
        return ExcludedBranches((), ())
    before = frozenset(values.assumptions)
    paths = ResultPaths.of(values)
    found = [one for call, results in known.items() for one in _behind(paths, call, results)]
    values.assume_constants()
    new = (assumption for assumption in values.assumptions if assumption not in before)
    return ExcludedBranches(tuple(found), tuple(new))


def _results(graph: Supergraph) -> dict[int, tuple[ValueSet, ...]]:
    """For each edge across calls of summarised functions, the result classes of these calls."""
    found = (
        (edge, dict.fromkeys(one.result for of in graph.passed(edge) for one in of.limited))
        for edge in range(len(graph.edges))
    )
    known = ((edge, tuple(r for r in of if r is not None and r != ANY)) for edge, of in found)
    return {edge: results for edge, results in known if results}


def _behind(paths: ResultPaths, call: int, results: Sequence[ValueSet]) -> Iterator[ExcludedBranch]:
    """The branches behind one call, with all results that exclude them."""
    by_edge: dict[int, set[ValueSet]] = {}
    for result, edges in zip(results, paths.excluded(call, results), strict=True):
        for edge in edges:
            by_edge.setdefault(edge, set()).add(result)
    for edge in sorted(by_edge):
        loop, node = paths.passes(call, edge)
        yield ExcludedBranch(call, frozenset(by_edge[edge]), edge, loop, node)


def with_branches(
    branches: ExcludedBranches, whole: Supergraph, part: PendingSegment, costs: Costs
) -> Costs:
    """``costs`` of the paths from one start, with the branches that results exclude there.

    A path from a start is part of an execution of ``whole``. So the first pass may begin behind
    the node that passes execute.
    """
    if not branches.found:
        return costs
    copies = EdgeCopies(part, whole)
    by_call: dict[int, list[ExcludedBranch]] = {}
    for one in branches.found:
        for call in copies.of(one.call):
            by_call.setdefault(call, []).append(one)
    rows = partial(_excluded, copies, whole)
    limited = tuple(
        replace(call, excluded=(*call.excluded, *rows(call, by_call.get(call.edge, ()))))
        if call.edge is not None
        else call
        for call in costs.limited
    )
    assumptions = (*costs.assumptions, *branches.assumptions)
    return replace(costs, limited=limited, assumptions=assumptions)


def _excluded(
    copies: EdgeCopies, whole: Supergraph, call: LimitedCall, branches: Iterable[ExcludedBranch]
) -> Iterator[ExcludedEdges]:
    """The edges that options of a call exclude."""
    for one in branches:
        edges = copies.of(one.edge)
        options = frozenset(o for o in (call.charged, *call.options) if o.result in one.results)
        if not edges or not options:
            continue
        if one.loop < 0:
            yield ExcludedEdges(options, edges, frozenset(), 1)
        else:
            passes = frozenset(copies.into(one.node))
            first = int(copies.begins_in(whole.loops[one.loop]))
            yield ExcludedEdges(options, edges, passes, first)


def with_results(
    values: ValueResults, parts: Sequence[PendingSegment], costs: Sequence[Costs]
) -> list[Costs]:
    """The costs of each of ``parts``, with the branches that results exclude.

    Results that exclude none are left out.
    """
    found = excluded_branches(values)
    each = (
        with_branches(found, values.graph, part, of) for part, of in zip(parts, costs, strict=True)
    )
    return [replace(of, limited=tuple(filter(_matters, of.limited))) for of in each]


def _matters(call: LimitedCall) -> bool:
    """Whether the options of a call exclude branches, or execute places that facts limit."""
    return bool(call.excluded) or any(option.counts for option in (call.charged, *call.options))
