"""The earlier load that read the same word: at the same unknown address, with no store in between.

A size that was checked is often loaded again later: ``if (cap->bits > 12) return; ... clear(cap)``.
Both loads read one word if the address is of memory and no store on a path between them may hit it
(assumption S8: it is neither a device nor in the stack). A store hits it unless its address differs
for certain, or it goes into the stack. A loop between the loads is passed only if sp is the base of
all its stores: values in a scope are of the last iteration, and may depend on the very loads that
are searched for.

Values are computed by a deep recursion: no generator is between its calls, which would need room on
the stack of C.
"""

from __future__ import annotations

from collections.abc import Callable

from loopbounds.budgets import table
from loopbounds.slicing.cell import SP, MemoryCell
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.effects import LoadEffect, StoreEffect
from loopbounds.slicing.scope import ScopeValues

__all__ = ["EarlierLoad", "earlier_load", "is_pushed"]

EarlierLoad = tuple[int, LoadEffect]  # a node, and a load of its block
EVERY_EVENT = 1 << 30  # of a block


def earlier_load(
    scope: ScopeValues,
    found: EarlierLoad,
    cell: MemoryCell,
    hits: Callable[[int, StoreEffect], bool],
) -> EarlierLoad | None:
    """The load that reads the word of ``cell`` on every path to the load ``found``; None: unknown.

    ``hits``: whether a store of a node may hit the cell.
    """
    node, load = found
    return _Search(scope, cell, hits).only_load(node, load.position)


def is_pushed(code: GraphCode, node: int, store: StoreEffect) -> bool:
    """Whether the base of a store is sp."""
    memory = code.graph.nodes[node].block.insns[store.insn].memory
    return memory is not None and memory.base == SP and memory.index is None


class _Search:
    """A search backwards for one cell, which gives up after ``table.REPEATED_NODES``.

    ``_loads``: the loads at which it ends; ``_failed``: a way backwards has another end.
    """

    def __init__(
        self, scope: ScopeValues, cell: MemoryCell, hits: Callable[[int, StoreEffect], bool]
    ) -> None:
        self._scope, self._cell, self._hits = scope, cell, hits
        self._loads: list[EarlierLoad] = []
        self._failed = False
        self._seen: set[int] = set()  # nodes, at their beginnings
        self._pending: list[int] = []

    def only_load(self, node: int, position: int) -> EarlierLoad | None:
        """The load at which all ways backwards from event ``position`` of ``node`` end."""
        self._pass_events(node, position)
        while self._pending and not self._failed:
            if len(self._seen) > table.REPEATED_NODES:
                return None
            self._pass_edges(self._pending.pop())
        return None if self._failed or len(self._loads) != 1 else self._loads[0]

    def _pass_edges(self, node: int) -> None:
        """Go back from the beginning of a node."""
        if node == self._scope.start or not self._is_passed(node):
            self._failed = True
            return
        graph = self._scope.code.graph
        for edge in self._scope.incoming(node):
            if not all(callee.preserves for callee in graph.passed(edge)):
                self._failed = True
            if not self._failed:
                self._pass_events(graph.edges[edge].src, EVERY_EVENT)

    def _pass_events(self, node: int, position: int) -> None:
        """Go back over the loads and stores of a node before event ``position``."""
        effect = self._scope.code.effect(node)
        events: list[LoadEffect | StoreEffect] = [*effect.loads.values(), *effect.stores]
        events.sort(key=lambda event: event.position, reverse=True)
        for event in events:
            if event.position >= position:
                continue
            if isinstance(event, StoreEffect):
                if self._hits(node, event):
                    self._failed = True
                    return
            elif self._reads_it(node, event):
                if (node, event) not in self._loads:
                    self._loads.append((node, event))
                return
        if node not in self._seen:
            self._seen.add(node)
            self._pending.append(node)

    def _reads_it(self, node: int, load: LoadEffect) -> bool:
        address, size = self._cell.address, self._cell.size
        return load.size == size and self._scope.instance(node, load.address) is address

    def _is_passed(self, node: int) -> bool:
        """Whether no iteration of a loop that begins at ``node`` may store to the cell."""
        code = self._scope.code
        loop = code.acyclic.headers.get(node)
        if loop is None:
            return True
        for edge in code.passed_in(loop):
            if not all(callee.preserves for callee in code.graph.passed(edge)):
                return False
        return all(
            is_pushed(code, inside, store)
            for inside in code.graph.loops[loop].nodes
            for store in code.effect(inside).stores
        )
