"""Counts that a user states and the loops alone imply: then the fact is proved, not assumed."""

from __future__ import annotations

from collections.abc import Sequence

from ilp.constraints.constraint import Constraint
from ilp.constraints.nest import LoopNest
from loopbounds.proof.bound import LoopBound
from quoll.facts import AtMost
from quoll.inlining.supergraph import Supergraph

__all__ = ["is_implied"]

UNLIMITED = 1 << 62  # rounds of a loop whose bound is not proved
PROVED = "nusmv"


def is_implied(constraint: Constraint, graph: Supergraph, bounds: Sequence[LoopBound]) -> bool:
    """Whether proved loop bounds let the places execute no more often than an ``AtMost`` says.

    Counted is the whole path, which no invocation exceeds. Of other constraints, and where facts
    took code out of the graph or put bounds in its place, nothing is claimed.
    """
    if not isinstance(constraint.fact, AtMost):
        return False
    if graph.guidance.removed or graph.guidance.replaced:
        return False
    numbers = [b.bound if b.method == PROVED and b.bound is not None else UNLIMITED for b in bounds]
    nest = LoopNest.build(graph, numbers)
    return sum(nest.most_node(node) for node in constraint.a) <= constraint.fact.count
