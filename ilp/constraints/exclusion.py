"""Edges that no execution takes together, as rows of the integer program (rule 41).

A *pass* is the whole path, or one iteration of a loop. A pass takes each edge of an exclusion at
most once, and never one of every decision. With k decisions and N passes, this is

    sum(x_e : e of a decision) <= (k - 1) * N

where N is 1 for the whole path, and the number of executions of the header for a loop. It limits
totals only: iterations that exclude each other's edges may still be in any order.

An exclusion may also name loops that a pass enters at most once, each with a number of executions
of its header that no pass reaches together with the rest. With the number c of a loop, its bound b,
its executions x and its entries E, at least (x - (c - 1) * E) / (b - c + 1) passes reach c. These
fractions are further summands of the sum above.

If at most one of any d consecutive iterations takes an edge, then n iterations of one entry take it
at most (n + d - 1) / d times. With E entries of the loop, this is

    d * x_e <= N + (d - 1) * E

and with the bound b of the loop in the integer program, x_e <= (b + d - 1) / d * E, rounded down.
The second row follows from the first one for integers of one entry; a solver needs fewer
subproblems with it.

If each entry of a loop takes an edge at most n times, x_e <= n * E.

Let a pass enter each of two loops at most once, and return to their headers at most s times
together if it enters both. With the greater bound b of the two, the headers' executions x and the
entries E, the sum of x - E is at most max(s, b - 1) * N, and the sum of x is at most max(s + 2, b)
* N: a pass that enters one of the loops executes its header at most b times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from ilp.solvers.integer_program import LinearRow

__all__ = ["EdgeDistance", "EdgeExclusion", "EdgeLimit", "LengthSum", "LoopCount", "ProvedRow"]


@dataclass(frozen=True, slots=True)
class LoopCount:
    """At least ``least`` executions of the header of a loop in one pass, which enters it once.

    ``passes``, ``entries``: edges with which an iteration begins, and the loop.
    """

    loop: int
    least: int
    passes: frozenset[int]
    entries: frozenset[int]

    def terms(self, factor: int) -> tuple[tuple[int, int], ...]:
        """``x - (least - 1) * E``, each times ``factor``."""
        fewer = -(self.least - 1) * factor
        return (*((e, factor) for e in self.passes), *((e, fewer) for e in self.entries))


@dataclass(frozen=True, slots=True)
class EdgeExclusion:
    """``decisions``: each a set of edges; no pass takes one edge of each, and has all ``counts``.

    ``passes``: edges with which a pass begins; ``first``: passes that begin without such an edge.
    """

    decisions: tuple[frozenset[int], ...]
    passes: frozenset[int]
    first: int
    counts: tuple[LoopCount, ...] = ()

    def rows(self, number: int, bounds: Sequence[int]) -> tuple[LinearRow, ...]:
        """The row, if the bounds allow all counts; ``number`` names it."""
        above = [bounds[one.loop] - one.least + 1 for one in self.counts]
        if min(above, default=1) < 1:
            return ()
        whole = prod(above)
        most = (len(self.decisions) + len(self.counts) - 1) * whole
        taken = [(e, whole) for edges in self.decisions for e in edges]
        counted = zip(self.counts, above, strict=True)
        taken += [term for one, part in counted for term in one.terms(whole // part)]
        begins = [(e, -most) for e in self.passes]
        return (proved(f"exclusion{number}", (*taken, *begins), most * self.first),)


@dataclass(frozen=True, slots=True)
class EdgeDistance:
    """Of any ``distance`` consecutive iterations of a loop, at most one takes one of ``edges``.

    ``passes``, ``entries``: edges with which an iteration begins, and the loop; ``first``: whether
    the path begins in the loop; ``loops``: the numbers of the loop in the graph, as the paths from
    a start may have several copies of it, or none.
    """

    edges: frozenset[int]
    distance: int
    passes: frozenset[int]
    entries: frozenset[int]
    first: int
    loops: tuple[int, ...]

    def rows(self, number: int, bounds: Sequence[int]) -> tuple[LinearRow, ...]:
        """The rows; ``number`` names them, ``bounds`` are of the graph's loops."""
        rest = self.distance - 1
        taken = [(e, self.distance) for e in self.edges]
        begins = [(e, -1) for e in self.passes]
        enters = [(e, -rest) for e in self.entries]
        most = self.distance * self.first
        all_iterations = proved(f"distance{number}", (*taken, *begins, *enters), most)
        if not self.loops:
            return (all_iterations,)
        each = (sum(bounds[loop] for loop in self.loops) + rest) // self.distance
        of_entries = (*((e, 1) for e in self.edges), *((e, -each) for e in self.entries))
        entry = proved(f"distance{number}.entry", of_entries, each * self.first)
        return (all_iterations, entry)


@dataclass(frozen=True, slots=True)
class EdgeLimit:
    """Each entry of a loop takes ``edges`` at most ``most`` times.

    ``entries``: edges into the loop; ``first``: whether the path begins in it.
    """

    edges: frozenset[int]
    most: int
    entries: frozenset[int]
    first: int

    def rows(self, number: int, bounds: Sequence[int]) -> tuple[LinearRow, ...]:
        """The row; ``number`` names it."""
        taken = (*((e, 1) for e in self.edges), *((e, -self.most) for e in self.entries))
        return (proved(f"limit{number}", taken, self.most * self.first),)


@dataclass(frozen=True, slots=True)
class LengthSum:
    """A pass that enters all ``lengths`` returns to their headers at most ``most`` times together.

    ``passes``: edges with which a pass begins; ``first``: passes that begin without such an edge.
    """

    lengths: tuple[LoopCount, LoopCount]
    most: int
    passes: frozenset[int]
    first: int

    def rows(self, number: int, bounds: Sequence[int]) -> tuple[LinearRow, ...]:
        """The rows; ``number`` names them, ``bounds`` are of the graph's loops."""
        bound = max(bounds[one.loop] for one in self.lengths)
        returns = [term for one in self.lengths for term in one.terms(1)]
        headers = [(e, 1) for one in self.lengths for e in one.passes]
        both = self.most + len(self.lengths)
        return (
            self._row(f"returns{number}", returns, max(self.most, bound - 1)),
            self._row(f"headers{number}", headers, max(both, bound)),
        )

    def _row(self, name: str, terms: Sequence[tuple[int, int]], most: int) -> LinearRow:
        begins = [(e, -most) for e in self.passes]
        return proved(name, (*terms, *begins), most * self.first)


ProvedRow = EdgeExclusion | EdgeDistance | EdgeLimit | LengthSum


def proved(name: str, terms: Iterable[tuple[int, int]], most: int) -> LinearRow:
    """The row ``sum(a * x_e) <= most``; an edge may be in several terms."""
    total: dict[int, int] = {}
    for e, a in sorted(terms):
        total[e] = total.get(e, 0) + a
    row = tuple((e, a) for e, a in total.items() if a)
    return LinearRow(name, "proved by refinement", row, equal=False, rhs=most)
