"""What bounded loops leave behind: values after a number of iterations, called ``trip``.

With a proved bound n, a loop has come round at most n - 1 times when its header runs for the last
time. What moves by a constant per iteration has then moved by ``trip`` of them, all such cells of
a loop by the same number; what takes over another cell's value is where that was one iteration
before. And in each of those iterations the condition to go on held (``progress.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopbounds.slicing.cell import SP, Cell, cell_width
from loopbounds.slicing.progress import Progress, went_on
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, add, const, eq, ite, scale, sub

if TYPE_CHECKING:
    from loopbounds.slicing.gated_ssa import Scope

__all__ = ["Trips"]

LARGE = 100  # terms in a condition, beyond which it is not taken


class Trips:
    """The bounded loops inside of one scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.counted: dict[Term, list[tuple[int, int]]] = {}  # registers found by a trip, where
        self._rounds: dict[Term, list[Term]] = {}
        self._asked: set[tuple[int, Cell]] = set()  # under way: in itself, not known

    def left(self, loop: int, header: int, cell: Cell) -> Term | None:
        """A cell that a bounded loop changes, when its header runs for the last time.

        None: not known.
        """
        bound, asked = self._scope.code.bounds.get(loop), (loop, cell)
        if bound is None or cell_width(cell) != 32 or asked in self._asked:
            return None
        trip = self._scope.input(header, "trip", 32, most=bound - 1)
        self._asked.add(asked)
        value = self._after(loop, header, cell, trip)
        if value is None:
            value = self._copied(loop, header, cell, trip)
        self._asked.remove(asked)
        if value is not None and isinstance(cell, int):
            self.counted.setdefault(trip, []).append((header, cell))
        return value

    def _after(self, loop: int, header: int, cell: Cell, trip: Term) -> Term | None:
        """Where a cell that moves by a constant is when ``trip`` iterations are over."""
        step = self._step(loop, header, cell)
        return None if step is None else add(self._start(header, cell), scale(trip, step))

    def _copied(self, loop: int, header: int, cell: Cell, trip: Term) -> Term | None:
        """The same for a cell to which each iteration assigns what another one was, and a constant.

        Before the first iteration it is whatever it was.
        """
        local = self.inside(loop, header, cell)
        if local is None:
            return None
        inner = self._scope.scopes.of_loop(loop)
        after = inner.after_iteration(local)
        self._scope.memory.used |= inner.memory.used
        for leaf in rewrite.symbols([after]) & inner.leaves.keys():
            offset = sub(after, leaf).constant
            source = self._outside(loop, header, inner.leaves[leaf])
            if offset is None or source is None or leaf.width != 32:
                continue
            before = self._after(loop, header, source, sub(trip, const(1, 32)))
            if before is not None:
                start, value = self._start(header, cell), add(before, const(offset, 32))
                first = rewrite.substitute(value, {trip: const(0, 32)})
                return value if first is start else ite(eq(trip, const(0, 32)), start, value)
        return None

    def _start(self, header: int, cell: Cell) -> Term:
        return self._scope.at_entries(header, self._scope.incoming(header), cell)

    def _step(self, loop: int, header: int, cell: Cell) -> int | None:
        """What each iteration of a loop adds to a cell, if that is a constant."""
        local = self.inside(loop, header, cell)
        if local is None:
            return None
        known = self._scope.code.steps.get((loop, local))
        if known is not None:
            self._scope.memory.used |= known.rests
            return known.amount
        inner = self._scope.scopes.of_loop(loop)
        step = sub(inner.after_iteration(local), inner.at(header, local)).constant
        self._scope.memory.used |= inner.memory.used
        return step

    def came_round(self, trip: Term) -> list[Term]:
        """What follows from a loop's having come round ``trip`` times: each time it went on.

        (That it did not go on in the end is the condition of its exit.)
        """
        known = self._rounds.get(trip)
        if known is None:
            known = self._rounds[trip] = self._came_round(trip)
        return known

    def _came_round(self, trip: Term) -> list[Term]:
        origin, code = self._scope.origin[trip], self._scope.code
        loop = code.acyclic.headers[origin.node]
        known = code.continued.get(loop)
        if known is None:
            return []
        self._scope.memory.used |= known.rests
        progress: Progress = {}
        for leaf, (local, step) in known.leaves.items():
            cell = self._outside(loop, origin.node, local)
            if cell is not None:
                progress[leaf] = self._start(origin.node, cell), step
        found = [
            part
            for c in known.conditions
            if rewrite.symbols([c]) <= progress.keys()
            for part in went_on(c, progress, trip, origin.most or 0)
        ]
        return [c for c in found if c is not TRUE and rewrite.size(c) <= LARGE]

    def inside(self, loop: int, header: int, cell: Cell) -> Cell | None:
        """A cell of this scope in the scope of a loop in it; None: its address is not known."""
        if isinstance(cell, int) or cell[0].constant is not None:
            return cell
        distance = sub(cell[0], self._scope.at(header, SP))
        if distance.constant is None or not self._scope.scopes.kept(loop, SP, self._scope):
            return None
        return add(self._scope.scopes.of_loop(loop).at(header, SP), distance), cell[1]

    def _outside(self, loop: int, header: int, cell: Cell) -> Cell | None:
        """A cell of the scope of a loop in this one as one of this scope; None: not known."""
        if isinstance(cell, int) or cell[0].constant is not None:
            return cell
        distance = sub(cell[0], self._scope.scopes.of_loop(loop).at(header, SP))
        if distance.constant is None or not self._scope.scopes.kept(loop, SP, self._scope):
            return None
        address = add(self._scope.at(header, SP), distance)
        known = rewrite.symbols([address]) <= self._scope.leaves.keys()
        return (address, cell[1]) if known else None
