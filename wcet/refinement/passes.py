"""Passes of a path: the whole path, and each iteration of each loop, with the edges in it.

An edge belongs to the passes of a loop if it begins in the loop and each iteration takes it at most
once: its source is in no inner loop, or the edge leaves all of them. In an iteration that leaves an
inner loop by an edge, the last iteration of the inner loop takes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loopbounds.slicing.acyclic import AcyclicGraph

__all__ = ["Pass", "passes_of", "scopes_of"]


@dataclass(frozen=True, slots=True)
class Pass:
    """``loop``: of the iteration, None for the whole path. ``edges``: in their order.

    ``counts``: the loops directly inside that the pass enters, with the executions of each header.
    """

    loop: int | None
    edges: tuple[int, ...]
    counts: tuple[tuple[int, int], ...] = ()


def scopes_of(acyclic: AcyclicGraph, edge: int) -> Iterator[int | None]:
    """The loops whose iterations take ``edge`` at most once, innermost first; None: the path."""
    taken, loops = acyclic.graph.edges[edge], acyclic.graph.loops
    for loop in acyclic.around(taken.src):
        yield loop
        if taken.dst in loops[loop].nodes:
            return
    yield None


def passes_of(acyclic: AcyclicGraph, path: Iterable[int]) -> list[Pass]:
    """The passes of a path, given as its edges from the entry on, in the order of their ends."""
    graph = acyclic.graph
    found: list[Pass] = []
    under_way: dict[int | None, list[int]] = {None: []}
    counts: dict[int | None, Counter[int]] = {}

    def ended(scope: int | None) -> Pass:
        edges, inside = under_way.pop(scope, []), counts.pop(scope, Counter())
        return Pass(scope, tuple(edges), tuple(inside.items()))

    for edge in path:
        for scope in scopes_of(acyclic, edge):
            under_way.setdefault(scope, []).append(edge)
        loop = acyclic.headers.get(graph.edges[edge].dst)
        if loop is not None:
            found.append(ended(loop))
            counts.setdefault(graph.loops[loop].parent, Counter())[loop] += 1
    found += [ended(scope) for scope in list(under_way)]
    return [one for one in found if one.edges]
