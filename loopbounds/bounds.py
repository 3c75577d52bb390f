"""The bound of every loop of a supergraph, with its evidence: proved, or stated by a fact.

Loops with the same slice and the same initial ranges are one question. A proved bound wins over
a looser fact; a tighter fact is an assumption, and refuted where the loop's only execution
exceeds it; a loop with neither is returned without a bound and says what to add.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from loopbounds.nusmv import query as nusmv
from loopbounds.part import GraphPart
from loopbounds.pieces import PieceValues, in_whole
from loopbounds.places import facts_of_loops, lists_of_loops
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.rounds import Progress
from loopbounds.slicing.code import KnownValues, NothingKnown
from quoll.facts import Facts
from quoll.image.image import Image
from quoll.inlining.merged_contexts import pieces
from quoll.inlining.supergraph import Supergraph

__all__ = ["BoundOptions", "Progress", "bound_loops"]

DEEP = 1_000_000  # frames: values are followed through paths of that many blocks


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def bound_loops(
    graph: Supergraph,
    image: Image,
    values: KnownValues | None,
    facts: Facts,
    options: BoundOptions | None = None,
    progress: Progress | None = None,
    only: frozenset[int] | None = None,
    called: bool = False,
) -> tuple[LoopBound, ...]:
    """One ``LoopBound`` per loop of ``graph``, in its order; ``only`` these are asked for.

    ``called``: callers decide what the entry begins with, so that no arguments refute a fact.

    Raises FactsError for a fact that names no loop or is refuted, ControlFlowError for code
    that has no semantics.
    """
    options = options or BoundOptions()
    values = values or NothingKnown()
    if not graph.merged:
        return _bound_part(graph, image, values, facts, options, progress, only, called)
    found: dict[int, LoopBound] = {}
    for piece in pieces(graph):
        if piece.loops:
            asked = None if only is None else piece.asked(only)
            known = PieceValues(values, piece)
            bounds = _bound_part(piece.graph, image, known, facts, options, progress, asked, True)
            found |= {loop: in_whole(b, loop) for loop, b in zip(piece.loops, bounds, strict=True)}
    return tuple(found[loop.index] for loop in graph.loops)


@_deep_recursion()
def _bound_part(
    graph: Supergraph,
    image: Image,
    values: KnownValues,
    facts: Facts,
    options: BoundOptions,
    progress: Progress | None,
    only: frozenset[int] | None,
    called: bool,
) -> tuple[LoopBound, ...]:
    stated = facts_of_loops(graph, image, facts)
    lists = lists_of_loops(graph, image, facts)
    solver = nusmv.any_solver()
    wanted = tuple(i for i in range(len(graph.loops)) if only is None or i in only)
    part = GraphPart(graph, image, values, options, progress, solver, wanted, lists, called)
    tightest = {i: found[0] for i in wanted if (found := stated[i])}
    return part.counted(tightest)
