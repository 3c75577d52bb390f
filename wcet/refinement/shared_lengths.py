"""Two loops of a pass that share a length: the most that a pass returns to both headers together.

A pass enters each loop once at most, and leaves it by one edge, whose condition is a term over the
number of times t that it returned to the header. If the conditions of both, the conditions to enter
both, and t1 + t2 > s are unsatisfiable, a pass that enters both loops returns to their headers at
most s times together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations

from ilp.constraints.proved_exclusions import InfeasibleCore
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, add, const, ult
from quoll.inlining.supergraph import Supergraph
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass
from wcet.refinement.unsatisfiable_core import contradictory

__all__ = ["shared_lengths"]

LARGEST = 1 << 31  # sums do not wrap


def shared_lengths(conditions: PassConditions, one: Pass) -> Iterator[InfeasibleCore]:
    """The limits of pairs of loops directly inside a pass."""
    graph, bounds = conditions.code.graph, conditions.code.bounds
    exits = {loop: only_exit(graph, loop) for loop, count in one.counts if count > 1}
    known = {loop: edge for loop, edge in exits.items() if edge is not None and loop in bounds}
    if len(known) < 2:
        return
    [left] = conditions.taken([Pass(one.loop, tuple(known.values()))])
    about = {
        loop: rewrite.symbols([left[edge], *conditions.ranges(one.loop, [left[edge]])])
        for loop, edge in known.items()
    }
    for pair in combinations(known, 2):
        if about[pair[0]] & about[pair[1]]:
            headers = [graph.loops[loop].header for loop in pair]
            entered = conditions.arriving(one.loop, headers).values()
            yield from limited(conditions, one.loop, pair, [left[known[p]] for p in pair], entered)


def only_exit(graph: Supergraph, loop: int) -> int | None:
    """The only edge that leaves a loop; None if there are others, or a path may end in it."""
    nodes = graph.loops[loop].nodes
    if not nodes.isdisjoint((*graph.exits, *graph.stops)):
        return None
    leaving = [e for n in nodes for e in graph.successors[n] if graph.edges[e].dst not in nodes]
    return leaving[0] if len(leaving) == 1 else None


def limited(
    conditions: PassConditions,
    around: int | None,
    loops: Sequence[int],
    left: Sequence[Term],
    entered: Iterable[Term],
) -> Iterator[InfeasibleCore]:
    """The least limit that is proved, if it is less than the bounds together."""
    times = [t for loop in loops if (t := conditions.repeats(around, loop)) is not None]
    alone = [conditions.code.bounds[loop] - 1 for loop in loops]
    total = add(*times)

    def holds(most: int) -> bool:
        more = ult(const(most, total.width), total)
        return contradictory([*left, *entered, more], partial(conditions.ranges, around))

    low, high = 1, sum(alone) - 1
    if high < low or high >= LARGEST or not holds(high):
        return
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    about = conditions.common_words(around, list(left))
    counts = tuple((loop, 2) for loop in loops)
    yield InfeasibleCore(around, (), about, counts=counts, most=high)
