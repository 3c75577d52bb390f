"""Conditions under which control takes the edges of a scope: the gates of gated SSA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopbounds.budgets import table
from loopbounds.slicing.memo import MemoTable
from loopbounds.slicing.scope import ScopeValues
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, both, either, negate
from quoll.cfg.cfg import EdgeKind

__all__ = ["PathGates"]


class PathGates:
    """The conditions of a scope, as terms of one bit, on demand."""

    def __init__(self, scope: ScopeValues) -> None:
        self._scope = scope
        self._edges = MemoTable[int, Term](scope.unbounded)
        self._reach = MemoTable[tuple[int, tuple[int, ...]], dict[int, Term]](scope.unbounded)
        self.ways: dict[Term, int] = {}  # free choice -> the edge among several branch targets

    def renewed(self, scope: ScopeValues) -> PathGates:
        """The gates for a scope without the values that depend on unbounded loops."""
        gates = PathGates(scope)
        gates._edges, gates._reach = self._edges.for_good(), self._reach.for_good()
        gates.ways = self.ways
        return gates

    def entered(self, node: int) -> Term:
        """The condition under which ``node`` is reached after its dominator."""
        edges = self._scope.incoming(node)
        if len(edges) == 1:
            return self.taken(edges[0])
        guards = self.guards(node, edges)
        condition = FALSE
        for guard in guards:
            condition = either(condition, guard)
        return condition

    def choice(self, node: int, edge: int) -> Term:
        """A free choice of an edge out of ``node``."""
        way = self._scope.symbols.input(node, f"way{edge}", 1)
        self.ways[way] = edge
        return way

    def guards(self, node: int, edges: Sequence[int]) -> list[Term]:
        """The condition of each edge into a join, from its dominator on; else a free choice."""
        key = node, tuple(edges)
        reach = self._reach.get(key)
        if reach is None:
            since = self._scope.unbounded.met
            reach = self._reach.keep(key, self._reached(node, edges), since)
        if not reach:
            return [self._scope.symbols.input(node, f"choice{e}", 1) for e in edges]
        graph, acyclic = self._scope.code.graph, self._scope.code.acyclic
        top = acyclic.common_dominator([graph.edges[e].src for e in edges])
        return [self._passed(e, top, reach) for e in edges]

    def arrived(self, edge: int) -> Term:
        """The condition to come to a join along ``edge``, as far as the join is a free choice.

        TRUE where ``guards`` has conditions, which follow from the edges before the join.
        """
        node = self._scope.code.graph.edges[edge].dst
        edges = self._scope.incoming(node)
        if len(edges) < 2 or edge not in edges:
            return TRUE
        guards = dict(zip(edges, self.guards(node, edges), strict=True))
        if self._reach.get((node, tuple(edges))):
            return TRUE
        condition = guards.pop(edge)
        for other in guards.values():
            condition = both(condition, negate(other))
        return condition

    def _reached(self, node: int, edges: Sequence[int]) -> dict[int, Term]:
        """For each node between the common dominator of ``edges`` and ``node``: its condition.

        Empty if there are more than ``JOINED_NODES`` nodes.
        """
        acyclic, graph = self._scope.code.acyclic, self._scope.code.graph
        stack = [graph.edges[e].src for e in edges]
        top = acyclic.common_dominator(stack)
        between = set(stack)
        stack = [n for n in between if n != top]
        while stack:
            for e in self._scope.incoming(stack.pop()):
                source = graph.edges[e].src
                if source not in between:
                    between.add(source)
                    if source != top:
                        stack.append(source)
                if len(between) > table.JOINED_NODES:
                    return {}
        reach = {top: TRUE}
        for n in sorted(between - {top}, key=lambda n: acyclic.order[n]):
            condition = FALSE
            for e in self._scope.incoming(n):
                condition = either(condition, self._passed(e, top, reach))
            reach[n] = condition
        return reach

    def _passed(self, edge: int, top: int, reach: Mapping[int, Term]) -> Term:
        """The condition to take ``edge`` after ``top``, on the way to an executed join.

        With ``GraphCode.arrived`` it is known that the way led on: the last iteration of a loop
        takes no back edge, and a loop with one way out is left by it.
        """
        code = self._scope.code
        source = code.graph.edges[edge].src
        if not code.arrived:
            return both(reach[source], self.taken(edge))
        left = self._left(edge)
        if left is not None:
            return (
                TRUE
                if top in code.graph.loops[left].nodes
                else reach[code.graph.loops[left].header]
            )
        ways = [e for e in code.graph.successors[source] if not self._repeats(e)]
        return reach[source] if ways == [edge] else both(reach[source], self.taken(edge))

    def _left(self, edge: int) -> int | None:
        """The outermost loop in the scope that only ``edge`` leaves; None: there is none."""
        code, taken = self._scope.code, self._scope.code.graph.edges[edge]
        found = None
        for loop in code.acyclic.around(taken.src):
            inside = taken.dst in code.graph.loops[loop].nodes
            if loop == self._scope.loop or inside or not code.has_one_way_out(loop):
                break
            found = loop
        return found

    def _repeats(self, edge: int) -> bool:
        """Whether an edge is a back edge of a loop inside the scope."""
        code = self._scope.code
        loop = code.acyclic.headers.get(code.graph.edges[edge].dst)
        return (
            loop is not None and loop != self._scope.loop and edge in code.graph.loops[loop].backs
        )

    def taken(self, edge: int) -> Term:
        """The condition of ``edge`` out of its node; among several branch targets a free choice."""
        known = self._edges.get(edge)
        if known is None:
            since = self._scope.unbounded.met
            known = self._edges.keep(edge, self._taken(edge), since)
        return known

    def _taken(self, edge: int) -> Term:
        graph = self._scope.code.graph
        source = graph.edges[edge].src
        leaves = self.leaving(source)
        if graph.edges[edge].kind is EdgeKind.FALLTHROUGH:
            return negate(leaves)
        others = [
            e for e in graph.successors[source] if graph.edges[e].kind is not EdgeKind.FALLTHROUGH
        ]
        if len(others) == 1:
            return leaves
        return both(leaves, self.choice(source, edge))

    def leaving(self, node: int) -> Term:
        """The condition to continue elsewhere than at the next instruction in memory."""
        return self._scope.instance(node, self._scope.code.effect(node).leaves)
