"""Edges that no execution takes together, as rows of the integer program (rule 41).

A *pass* is the whole path, or one iteration of a loop. A pass takes each edge of an exclusion at
most once, and never one of every decision. With k decisions and N passes, this is

    sum(x_e : e of a decision) <= (k - 1) * N

where N is 1 for the whole path, and the number of executions of the header for a loop. It limits
totals only: iterations that exclude each other's edges may still be in any order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ilp.solvers.integer_program import LinearRow

__all__ = ["EdgeExclusion", "exclusion_row"]


@dataclass(frozen=True, slots=True)
class EdgeExclusion:
    """``decisions``: each a set of edges; no pass takes one edge of each.

    ``passes``: edges with which a pass begins; ``first``: passes that begin without such an edge.
    """

    decisions: tuple[frozenset[int], ...]
    passes: frozenset[int]
    first: int
    reason: str


def exclusion_row(exclusion: EdgeExclusion, number: int) -> LinearRow:
    """The row of one exclusion; ``number`` names it."""
    most = len(exclusion.decisions) - 1
    terms: dict[int, int] = {}
    for edges in exclusion.decisions:
        for e in sorted(edges):
            terms[e] = terms.get(e, 0) + 1
    for e in sorted(exclusion.passes):
        terms[e] = terms.get(e, 0) - most
    return LinearRow(
        f"exclusion{number}",
        exclusion.reason,
        tuple((e, a) for e, a in terms.items() if a),
        equal=False,
        rhs=most * exclusion.first,
    )
