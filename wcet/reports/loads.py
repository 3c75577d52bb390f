"""Executions and cycles of a worst path by function, over all contexts, for drawings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, sqrt

from ilp.paths.outline import PathOutline, outline
from ilp.paths.solution import IlpSolution, PathStep
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import SuperEdge, Supergraph
from wcet.analysis.result import EntryResult
from wcet.latency.summarised_calls import SummarisedCall, summarised_calls

__all__ = [
    "HEAT",
    "OFF",
    "CountedPath",
    "FunctionLoad",
    "counted_paths",
    "function_of",
    "heat",
    "within_functions",
]

# Colours of blocks by the square root of their share of the costliest block's cycles.
OFF = "#e3e6ea"  # off the path
HEAT = ("#ffffff", "#fff3e6", "#ffe3c4", "#ffcf9e", "#ffb977", "#ffa056", "#ff8640")


def heat(cycles: int, most: int) -> str:
    """The colour of a block with ``cycles``; ``most``: the cycles of the costliest block."""
    last = len(HEAT) - 1
    return HEAT[max(1, ceil(sqrt(cycles / most) * last))] if cycles else HEAT[0]


@dataclass(slots=True)
class FunctionLoad:
    """A function on a worst path, by addresses of blocks.

    ``blocks``: executions and cycles, including outgoing edges. ``edges``: counts between blocks of
    the function, from a call to its return, not into callees. ``loops``: the least and the greatest
    bound of all contexts, on the path or not.
    """

    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    edges: dict[tuple[int, int], int] = field(default_factory=dict)
    loops: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CountedPath:
    """A worst path with its counts: of an entry, or inside a summarised function.

    Inside a summarised function it has a ``call``: its cycles are for one call, and the entry's
    path has them on the edge over the call.
    """

    graph: Supergraph
    costs: Costs
    bounds: tuple[LoopBound, ...]
    solution: IlpSolution
    steps: tuple[PathStep, ...]
    call: SummarisedCall | None

    def outline(self) -> PathOutline:
        """The nested calls and loops of the path."""
        return outline(self.graph, self.costs, self.solution, self.steps)

    def loads(self, whole: PathOutline) -> dict[int, FunctionLoad]:
        """The loads of functions, by address; ``whole``: the outline."""
        graph = self.graph
        found: dict[int, FunctionLoad] = {}
        for _, section in whole.walk():
            for node, executions, cycles in section.blocks:
                blocks = found.setdefault(function_of(graph, node), FunctionLoad()).blocks
                addr = graph.nodes[node].block.addr
                before = blocks.get(addr, (0, 0))
                blocks[addr] = before[0] + executions, before[1] + cycles
        for number, source, target in within_functions(graph):
            if count := self.solution.edges[number]:
                exits = graph.nodes[source].block.addr, graph.nodes[target].block.addr
                edges = found[function_of(graph, source)].edges
                edges[exits] = edges.get(exits, 0) + count
        for loop, bound in zip(graph.loops, self.bounds, strict=True):
            iterations = bound.iterations(graph)
            if iterations is not None:
                function = found.setdefault(function_of(graph, loop.header), FunctionLoad())
                header = graph.nodes[loop.header].block.addr
                low, high = function.loops.get(header, (iterations, iterations))
                function.loops[header] = min(low, iterations), max(high, iterations)
        return found


def counted_paths(entry: EntryResult) -> Iterator[CountedPath]:
    """The worst path of an entry, then the relevant paths inside summarised functions.

    Empty if the solver gives no counts.
    """
    if not entry.solution.nodes:
        return
    yield CountedPath(
        entry.graph, entry.costs, entry.bounds, entry.solution, entry.path.steps, None
    )
    for call in summarised_calls(entry):
        paths = call.function.paths
        yield CountedPath(paths.graph, paths.costs, paths.bounds, call.function.solution, (), call)


def function_of(graph: Supergraph, node: int) -> int:
    """The address of a node's function."""
    return graph.contexts[graph.nodes[node].context].function & ~1


def within_functions(graph: Supergraph) -> Iterator[tuple[int, int, int]]:
    """The edges of a graph within its functions: (edge, from node, to node).

    An edge over the call replaces the edges into and out of a callee.
    """
    returns = _Returns.of(graph)
    for number, edge in enumerate(graph.edges):
        if edge.kind is EdgeKind.RETURN:
            source = returns.caller(edge)
            if source is not None:
                yield number, source, edge.dst
        elif edge.kind is not EdgeKind.CALL:
            yield number, edge.src, edge.dst


@dataclass(frozen=True, slots=True)
class _Returns:
    """Finds the calling node of a RETURN edge."""

    graph: Supergraph
    ending: dict[tuple[int, int], int]  # context and address of its last instruction -> node

    @classmethod
    def of(cls, graph: Supergraph) -> _Returns:
        return cls(graph, {(n.context, n.block.last.addr): i for i, n in enumerate(graph.nodes)})

    def caller(self, edge: SuperEdge) -> int | None:
        """The calling node for the RETURN ``edge``; None if it is unknown.

        A tail-called function returns for its caller.
        """
        graph = self.graph
        target = graph.nodes[edge.dst].context
        at: int | None = graph.nodes[edge.src].context
        site = None
        while at is not None and at != target:
            site, at = graph.contexts[at].call_site, graph.contexts[at].parent
        return None if site is None else self.ending.get((target, site))
