"""Bounds of loops by all executions of an entry, with proofs of the loops that need one.

All executions are followed together. If some loop has no end there, because an unknown word decides
it in a way that only a solver understands, its contexts are proved, and the executions are followed
again with these bounds. So a solver is not asked about the loops that executions bound. If that
does not help, all loops are proved, and executions are followed once more if the bounds end a loop
earlier than they did.

A proof may give less than followed executions where facts limit loops: then both are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Protocol

from loopbounds.bounds import narrowed
from loopbounds.budgets import table
from loopbounds.execution.counts import ExecutionCounts, UnfinishedCounts
from loopbounds.proof.bound import LoopBound
from quoll.inlining.supergraph import Supergraph

__all__ = ["BoundsAndExecution", "LoopProver", "followed_bounds"]

BoundsAndExecution = tuple[tuple[LoopBound, ...], ExecutionCounts | None]
Follow = Callable[[Mapping[int, int]], ExecutionCounts | UnfinishedCounts]


class LoopProver(Protocol):
    """Gives one bound for each loop of a graph."""

    def __call__(
        self, only: frozenset[int] | None, *, lower: bool = False
    ) -> tuple[LoopBound, ...]:
        """Prove some loops, or all if None; ``lower``: only to lower bounds that are known."""


def followed_bounds(
    graph: Supergraph,
    follow: Follow,
    prove: LoopProver,
    only: frozenset[int] | None,
    *,
    facts_limit: bool,
) -> BoundsAndExecution:
    """One bound for each loop, and the counts of all executions if they can be followed.

    ``follow``: with bounds of some loops. ``only``: the loops that are wanted; None: all.
    ``facts_limit``: whether facts about lists or words of memory may limit loops.
    """
    found = follow({})
    if isinstance(found, ExecutionCounts):
        tried = frozenset[int]()
        if facts_limit:
            tried = found.open if only is None else found.open & only
        return narrowed(graph, prove(tried, lower=True), found), found
    if not facts_limit:
        bounds, found = _with_needed(graph, follow, prove, found)
        if isinstance(found, ExecutionCounts):
            return narrowed(graph, bounds, found), found
    bounds = prove(only)
    wanted = [b for b in bounds if only is None or b.loop in only]
    known = _known(wanted)
    if len(known) < len(wanted) or not found.may_end(known):
        return bounds, None
    last = follow(known)
    if isinstance(last, UnfinishedCounts):
        return bounds, None
    return narrowed(graph, bounds, last), last


def _with_needed(
    graph: Supergraph, follow: Follow, prove: LoopProver, found: UnfinishedCounts
) -> tuple[tuple[LoopBound, ...], ExecutionCounts | UnfinishedCounts]:
    """Follow executions again with proofs of the loops that need them, a few times."""
    bounds: tuple[LoopBound, ...] = ()
    tried = frozenset[int]()
    last: ExecutionCounts | UnfinishedCounts = found
    for _ in range(table.FOLLOWED_AGAIN):
        if isinstance(last, ExecutionCounts) or last.endless <= tried:
            break
        tried |= _alike(graph, last.endless)
        bounds = prove(tried)
        known = _known(bounds)
        if not last.may_end(known):
            break
        last = follow(known)
    return bounds, last


def _alike(graph: Supergraph, loops: Set[int]) -> frozenset[int]:
    """All contexts of some loops, with the loops inside."""
    headers = {graph.nodes[graph.loops[i].header].block.addr for i in loops}
    alike = [one for one in graph.loops if graph.nodes[one.header].block.addr in headers]
    inside = set[int]().union(*(one.nodes for one in alike))
    return frozenset(loop.index for loop in graph.loops if loop.header in inside)


def _known(bounds: Sequence[LoopBound]) -> dict[int, int]:
    """The bounds that are proved."""
    return {b.loop: b.bound for b in bounds if b.bound is not None and not b.assumes}
