"""Values after bounded loops: after a number of iterations, called ``trip``.

With a proved bound n, a loop has iterated at most n - 1 times when its header runs for the last
time. A cell that moves by a constant per iteration has then moved ``trip`` times, with the same
``trip`` for all such cells of a loop. A cell that copies another cell holds the value that the
other one had an iteration before. A cell whose next value depends on itself alone, from a known
start, holds one listed word for each ``trip``. In each of these iterations the condition to repeat
held. A loop that is not bounded yet may be known to have left where its only exit equates a cell
with a word that the loop does not change.

With t completed iterations, a cell that moves by s was x0 + s*k at the header's visit number k = 0
.. t, and it satisfied the condition for every k < t. This is stated for the last k, for the first
few, and for a word d that the condition requires to differ from 0 for every k:

    d0 + k != 0, k < t            t <= -d0
    d0 - k != 0, k < t            t <= d0
    d0 + 2**j * k != 0, k < t     t <= -d0 >> j    where the low j bits of d0 are 0

because d would be 0 at the first k that the right side excludes. All numbers are unsigned.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopbounds.budgets import table
from loopbounds.slicing.cell import Cell, cell_width
from loopbounds.slicing.memo import MemoTable
from loopbounds.slicing.scope import ScopeValues
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import (
    TRUE,
    Term,
    add,
    const,
    either,
    eq,
    ite,
    neg,
    negate,
    operation,
    scale,
    sub,
    ule,
)

__all__ = ["Progress", "TripCounts", "went_on"]


Progress = dict[Term, tuple[Term, int]]  # leaf -> its value at the first visit, and its step


class TripCounts:
    """The values after bounded loops in one scope."""

    def __init__(self, scope: ScopeValues) -> None:
        self._scope = scope
        self.counted: dict[Term, dict[tuple[int, int], None]] = {}  # trip -> (header, register)
        self._rounds = MemoTable[Term, list[Term]](scope.unbounded)
        self._pending: set[tuple[int, Cell]] = set()  # in progress: unknown to itself

    def renewed(self, scope: ScopeValues) -> TripCounts:
        """The trips for a scope without the values that depend on unbounded loops."""
        trips = TripCounts(scope)
        trips.counted = {trip: dict(found) for trip, found in self.counted.items()}
        trips._rounds = self._rounds.for_good()
        return trips

    def left(self, loop: int, header: int, cell: Cell) -> Term | None:
        """A cell that a bounded loop changes, at the last execution of the loop's header.

        None: unknown.
        """
        bound, query = self._scope.code.bounds.get(loop), (loop, cell)
        if cell_width(cell) != 32:
            return None
        if bound is None or query in self._pending:
            self._scope.unbounded.met += 1
            return None if query in self._pending else self._at_only_exit(loop, header, cell)
        trip = self.symbol(header, bound)
        if (proved := self._scope.code.continued.get(loop)) is not None:
            self._scope.used |= proved.assumed
        self._pending.add(query)
        value = self._after(loop, header, cell, trip)
        if value is None:
            value = self._shifted(loop, header, cell, trip, bound)
        if value is None:
            value = self._copied(loop, header, cell, trip)
        if value is None:
            value = self._listed(loop, header, cell, trip, bound)
        self._pending.remove(query)
        if value is not None and isinstance(cell, int):
            self.counted.setdefault(trip, {})[header, cell] = None
        return value

    def symbol(self, header: int, bound: int) -> Term:
        """The completed iterations when the header of a loop runs for the last time."""
        return self._scope.symbols.input(header, "trip", 32, most=bound - 1)

    def _after(self, loop: int, header: int, cell: Cell, trip: Term) -> Term | None:
        """A cell that moves by a constant, after ``trip`` iterations; None for any other cell."""
        step = self._step(loop, header, cell)
        return (
            None if step is None else add(self._scope.before_loop(header, cell), scale(trip, step))
        )

    def _shifted(self, loop: int, header: int, cell: Cell, trip: Term, bound: int) -> Term | None:
        """A cell that each iteration shifts right by a constant, after ``trip`` iterations.

        A shift by 32 bits or more gives 0.
        """
        local = self._scope.inside(loop, header, cell)
        if local is None:
            return None
        inner = self._scope.inner(loop)
        after, before = inner.after_iteration(local), inner.at(header, local)
        self._scope.used |= inner.used
        if after.op != "lshr" or after.args[0] is not before or before.width != 32:
            return None
        bits = after.args[1].constant
        if bits is None or bits * bound >= 1 << 32:
            return None
        return operation("lshr", self._scope.before_loop(header, cell), scale(trip, bits))

    def _copied(self, loop: int, header: int, cell: Cell, trip: Term) -> Term | None:
        """A cell to which iterations assign another one plus a constant, after ``trip`` of them.

        With ``trip`` = 0 it has its initial value.
        """
        local = self._scope.inside(loop, header, cell)
        if local is None:
            return None
        inner = self._scope.inner(loop)
        after = inner.after_iteration(local)
        self._scope.used |= inner.used
        for leaf in rewrite.symbols([after]) & inner.symbols.leaves.keys():
            offset = sub(after, leaf).constant
            source = self._scope.outside(loop, header, inner.symbols.leaves[leaf])
            if offset is None or source is None or leaf.width != 32:
                continue
            before = self._after(loop, header, source, sub(trip, const(1, 32)))
            if before is not None:
                start, value = self._scope.before_loop(header, cell), add(before, const(offset, 32))
                first = rewrite.substitute(value, {trip: const(0, 32)})
                return value if first is start else ite(eq(trip, const(0, 32)), start, value)
        return None

    def _listed(self, loop: int, header: int, cell: Cell, trip: Term, bound: int) -> Term | None:
        """A cell whose next value depends on itself alone, from a known start: one word a visit."""
        local = self._scope.inside(loop, header, cell)
        start = self._scope.before_loop(header, cell)
        if local is None or start.constant is None or bound > table.LISTED_VISITS:
            return None
        inner = self._scope.inner(loop)
        after, leaf = inner.after_iteration(local), inner.at(header, local)
        self._scope.used |= inner.used
        if rewrite.symbols([after]) != {leaf}:
            return None
        visits = [start]
        for _ in range(bound - 1):
            visits.append(rewrite.substitute(after, {leaf: visits[-1]}))
        value = visits[-1]
        for k in reversed(range(bound - 1)):
            value = ite(eq(trip, const(k, 32)), visits[k], value)
        return value

    def _at_only_exit(self, loop: int, header: int, cell: Cell) -> Term | None:
        """A cell that the only exit of a loop equates with a word that the loop does not change.

        This needs no bound: in an iteration of a loop around it, the exit was taken last. Where the
        whole graph is the scope, the loop may be one that is not left yet. Unlike the other terms,
        it tells nothing of earlier iterations, so no store in the loop may use the cell.
        """
        if self._scope.loop is None:
            return None
        graph, query = self._scope.code.graph, (loop, cell)
        nodes = graph.loops[loop].nodes
        exits = [e for n in nodes for e in graph.successors[n] if graph.edges[e].dst not in nodes]
        if len(exits) != 1:
            return None
        source = graph.edges[exits[0]].src
        local = self._scope.inside(loop, header, cell)
        if local is None or next(self._scope.code.acyclic.around(source), loop) != loop:
            return None
        self._pending.add(query)
        value = self._equated(loop, header, local, exits[0])
        self._pending.remove(query)
        return value

    def _equated(self, loop: int, header: int, local: Cell, edge: int) -> Term | None:
        """The word, seen from outside, that an exit equates with a cell at the header."""
        inner = self._scope.inner(loop)
        condition, leaf = inner.taken(edge), inner.at(header, local)
        self._scope.used |= inner.used
        if condition.op != "eq" or condition.args[0].width != 32:
            return None
        if self._places_stores(loop, leaf):
            return None
        distance = sub(*condition.args)
        for other in (sub(leaf, distance), add(leaf, distance)):
            symbols = rewrite.symbols([other])
            if leaf in symbols or not symbols <= inner.symbols.leaves.keys():
                continue
            outside = {s: self._unchanged(loop, header, inner.symbols.leaves[s]) for s in symbols}
            known = {s: word for s, word in outside.items() if word is not None}
            if len(known) == len(outside):
                return rewrite.substitute(other, known)
        return None

    def _places_stores(self, loop: int, leaf: Term) -> bool:
        """Whether places of stores in a loop may depend on a cell at its header.

        So do unknown words: they may have been loaded from where the cell points.
        """
        code, inner = self._scope.code, self._scope.inner(loop)
        if code.passed_in(loop):
            return True
        places = [
            inner.instance(node, store.address)
            for node in code.storing_in(loop)
            for store in code.effect(node).stores
        ]
        self._scope.used |= inner.used
        return not rewrite.symbols(places) <= inner.symbols.leaves.keys() - {leaf}

    def _unchanged(self, loop: int, header: int, local: Cell) -> Term | None:
        """A cell of the header before the loop, if the loop does not change it."""
        inner = self._scope.inner(loop)
        cell = self._scope.outside(loop, header, local)
        if cell is None or inner.after_iteration(local) is not inner.at(header, local):
            return None
        return self._scope.before_loop(header, cell)

    def _step(self, loop: int, header: int, cell: Cell) -> int | None:
        """The constant that each iteration of a loop adds to a cell; None if there is none."""
        local = self._scope.inside(loop, header, cell)
        if local is None:
            return None
        known = self._scope.code.steps.get((loop, local))
        if known is not None:
            self._scope.used |= known.assumed
            return known.amount
        inner = self._scope.inner(loop)
        step = sub(inner.after_iteration(local), inner.at(header, local)).constant
        self._scope.used |= inner.used
        return step

    def came_round(self, trip: Term) -> list[Term]:
        """Conditions that follow from ``trip`` iterations, each of which repeated the loop.

        (The exit condition covers the last iteration.)
        """
        known = self._rounds.get(trip)
        if known is None:
            since = self._scope.unbounded.met
            known = self._rounds.keep(trip, self._came_round(trip), since)
        return known

    def _came_round(self, trip: Term) -> list[Term]:
        origin, code = self._scope.symbols.origin[trip], self._scope.code
        loop = code.acyclic.headers[origin.node]
        known = code.continued.get(loop)
        if known is None:
            return []
        self._scope.used |= known.assumed
        progress: Progress = {}
        for leaf, (local, step) in known.leaves.items():
            cell = self._scope.outside(loop, origin.node, local)
            if cell is not None:
                progress[leaf] = self._scope.before_loop(origin.node, cell), step
        found = [
            part
            for c in known.conditions
            if rewrite.symbols([c]) <= progress.keys()
            for part in went_on(c, progress, trip, origin.most or 0)
        ]
        return [c for c in found if c is not TRUE and rewrite.size(c) <= table.TRIP_CONDITION]


def went_on(condition: Term, progress: Progress, trip: Term, most: int) -> Iterator[Term]:
    """Terms that ``condition`` implies for the ``trip`` <= ``most`` completed iterations."""
    for k in range(min(most, table.FIRST_VISITS)):
        yield either(ule(trip, const(k, 32)), _at(condition, progress, const(k, 32)))
    if most > table.FIRST_VISITS:
        last = _at(condition, progress, sub(trip, const(1, 32)))
        yield either(eq(trip, const(0, 32)), last)
        if condition.op == "not" and condition.args[0].op == "eq":
            yield from _never_equal(condition.args[0], progress, trip)


def _at(term: Term, progress: Progress, k: Term) -> Term:
    """A term over leaves, at visit ``k`` of the header."""
    return rewrite.substitute(
        term, {leaf: add(start, scale(k, step)) for leaf, (start, step) in progress.items()}
    )


def _never_equal(equal: Term, progress: Progress, trip: Term) -> Iterator[Term]:
    distance = sub(*equal.args)
    if distance.width != 32:
        return
    start = _at(distance, progress, const(0, 32))
    step = sub(_at(distance, progress, const(1, 32)), start).constant
    if step is None:
        return
    size = min(step, neg(const(step, 32)).value)
    if size.bit_count() != 1:
        return
    left = neg(start) if step == size else start
    between = operation("and", left, const(size - 1, 32))
    iterations = operation("lshr", left, const(size.bit_length() - 1, 32))
    yield either(negate(eq(between, const(0, 32))), ule(trip, iterations))
