"""The bound of every loop of a supergraph, with its evidence: proved, or stated by a fact.

Loops with the same slice and the same initial ranges are one question. A proved bound wins over
a looser fact; a tighter fact is an assumption, and refuted where the loop's only execution
exceeds it; a loop with neither is returned without a bound and says what to add.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from loopbounds import nusmv
from loopbounds.acyclic import Acyclic
from loopbounds.bound import LoopBound
from loopbounds.code import Code, KnownValues, NothingKnown
from loopbounds.keys import graph_key
from loopbounds.options import BoundOptions
from loopbounds.pieces import PieceValues, in_whole
from loopbounds.places import facts_of_loops, lists_of_loops
from loopbounds.prove import Outcome
from loopbounds.rounds import Progress, Rounds
from loopbounds.store import Answers, Store
from loopbounds.verdict import judge, not_asked, solver_failed
from quoll.errors import SolverError
from quoll.facts import Facts
from quoll.image import Image
from quoll.parts import pieces
from quoll.supergraph import Supergraph

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
    try:
        solver = nusmv.find_solver()
    except SolverError as error:
        return tuple(solver_failed(loop, str(error)) for loop in graph.loops)
    store = Store(options.cache)
    wanted = [i for i in range(len(graph.loops)) if only is None or i in only]
    on_stack = values.hands_on_a_stack_address(graph.entry)
    what = (options.budget, options.s1, wanted, on_stack, called, sorted(lists.items()))
    key = graph_key(graph, image, values, stated, what, solver)
    known = store.answers(key)
    if known is not None and store.copy_models(known.models, options.models):
        return known.bounds
    code = Code(graph, Acyclic.of(graph), image, values, s1=options.s1)
    code.lists = {loop: fact.most for loop, fact in lists.items()}
    rounds = Rounds(code, options.budget, solver, options.workers, store, options.models, progress)
    rounds.run(wanted)
    endless = _with_endless_loops_inside(graph, rounds.outcomes)
    bounds = tuple(
        judge(
            graph,
            image,
            loop,
            rounds.slices[loop.index],
            rounds.outcomes[loop.index],
            stated[loop.index],
            lists.get(loop.index),
            loop.index not in endless,
            called,
        )
        if loop.index in rounds.outcomes
        else not_asked(loop)
        for loop in graph.loops
    )
    bounds = rounds.with_totals(bounds)
    if not any(bound.failed for bound in bounds):
        store.put_answers(key, Answers(bounds, tuple(dict.fromkeys(rounds.keys.values()))))
    return bounds


def _with_endless_loops_inside(graph: Supergraph, outcomes: Mapping[int, Outcome]) -> set[int]:
    """Loops around a loop that is not proved to end."""
    found: set[int] = set()
    for loop in reversed(graph.loops):  # inner loops first
        outcome = outcomes.get(loop.index)
        ends = outcome is not None and outcome.bound is not None and loop.index not in found
        if loop.parent is not None and not ends:
            found.add(loop.parent)
    return found
