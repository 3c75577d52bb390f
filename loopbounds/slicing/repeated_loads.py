"""The earlier load that read the same word: at the same unknown address, with no store in between.

A size that was checked is often loaded again later: ``if (cap->bits > 12) return; ... clear(cap)``.
Both loads read one word if the address is of memory and no store on a path between them may hit it
(assumption S8: it is neither a device nor in the stack). A store hits it unless its address differs
for certain, or it goes into the stack. A loop between the loads is passed only if all its stores
go into the stack, because the addresses of earlier iterations are not the last one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loopbounds.budgets import table
from loopbounds.slicing.cell import MemoryCell
from loopbounds.slicing.effects import LoadEffect, StoreEffect
from loopbounds.slicing.scope import ScopeValues

__all__ = ["EarlierLoad", "earlier_load"]

EarlierLoad = tuple[int, LoadEffect]  # a node, and a load of its block
EVERY_EVENT = 1 << 30  # of a block
MayHit = Callable[[int, StoreEffect], bool]


def earlier_load(
    scope: ScopeValues,
    found: EarlierLoad,
    cell: MemoryCell,
    hits: MayHit,
    leaves_stack: MayHit,
) -> EarlierLoad | None:
    """The load that reads the word of ``cell`` on every path to the load ``found``; None: unknown.

    ``hits``: whether a store may hit the cell; ``leaves_stack``: whether it may go elsewhere than
    into the stack.
    """
    node, load = found
    return _Search(scope, cell, hits, leaves_stack).before(node, load.position)


class _Search:
    """A search backwards for one cell, which gives up after ``table.REPEATED_NODES``."""

    def __init__(
        self, scope: ScopeValues, cell: MemoryCell, hits: MayHit, leaves_stack: MayHit
    ) -> None:
        self._scope, self._cell = scope, cell
        self._hits, self._leaves_stack = hits, leaves_stack
        self._known: dict[int, EarlierLoad | None] = {}  # at the beginning of a node

    def before(self, node: int, position: int) -> EarlierLoad | None:
        """The last load of the cell before event ``position`` of ``node``."""
        effect = self._scope.code.effect(node)
        events: list[LoadEffect | StoreEffect] = [*effect.loads.values(), *effect.stores]
        for event in sorted(events, key=lambda e: e.position, reverse=True):
            if event.position >= position:
                continue
            if isinstance(event, StoreEffect):
                if self._hits(node, event):
                    return None
            elif self._reads_it(node, event):
                return node, event
        return self._at(node)

    def _reads_it(self, node: int, load: LoadEffect) -> bool:
        address, size = self._cell.address, self._cell.size
        return load.size == size and self._scope.instance(node, load.address) is address

    def _at(self, node: int) -> EarlierLoad | None:
        if node not in self._known:
            self._known[node] = None  # where the search gives up
            if len(self._known) <= table.REPEATED_NODES:
                self._known[node] = self._find(node)
        return self._known[node]

    def _find(self, node: int) -> EarlierLoad | None:
        """The load that all ways to ``node`` come from."""
        if node == self._scope.start or not self._is_passed(node):
            return None
        found = set(self._along_edges(node))
        return found.pop() if len(found) == 1 else None

    def _along_edges(self, node: int) -> Iterator[EarlierLoad | None]:
        graph = self._scope.code.graph
        for edge in self._scope.incoming(node):
            source = graph.edges[edge].src
            preserved = all(callee.preserves for callee in graph.passed(edge))
            yield self.before(source, EVERY_EVENT) if preserved else None

    def _is_passed(self, node: int) -> bool:
        """Whether no iteration of a loop that begins at ``node`` may store to the cell."""
        code = self._scope.code
        loop = code.acyclic.headers.get(node)
        if loop is None:
            return True
        if any(not c.preserves for e in code.passed_in(loop) for c in code.graph.passed(e)):
            return False
        return not any(
            self._leaves_stack(inside, store)
            for inside in code.graph.loops[loop].nodes
            for store in code.effect(inside).stores
        )
