"""One iteration of a loop: the condition under which it returns to the header.

All paths through the body are folded into one condition over the state at the header. A path goes
through the last iteration of an inner loop only, and takes none of its back edges.
"""

from __future__ import annotations

from loopbounds.budgets import table
from loopbounds.slicing.code import GraphCode
from loopbounds.slicing.gated_ssa import SsaScope
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, both, either
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import SuperLoop

__all__ = ["LoopIteration"]


class LoopIteration:
    """``again``: the condition to return to the header. ``exits``: its exits from inner loops."""

    def __init__(self, code: GraphCode, scope: SsaScope, loop: SuperLoop) -> None:
        self._code, self._scope, self._loop = code, scope, loop
        self.exits: list[Term] = []
        self.again = self._continues()

    def _continues(self) -> Term:
        """The condition under which an iteration returns to the header."""
        graph, order = self._code.graph, self._code.acyclic.order
        backs = frozenset(self._loop.backs)
        ahead: dict[int, Term | None] = {}  # None: in no last iteration
        for node in sorted(self._loop.nodes, key=lambda n: -order[n]):
            ways: list[tuple[int, Term | None]] = []
            for e in graph.successors[node]:
                target = graph.edges[e].dst
                if e in backs:
                    ways.append((e, TRUE))
                elif target not in self._loop.nodes:
                    ways.append((e, FALSE))
                else:
                    ways.append((e, ahead[target] if order[target] > order[node] else None))
            ahead[node] = self._choose(node, ways)
        return ahead[self._loop.header] or FALSE

    def _choose(self, node: int, ways: list[tuple[int, Term | None]]) -> Term | None:
        possible = [(e, term) for e, term in ways if term is not None]
        if ways and not possible:
            return None
        if all(term is FALSE for _, term in possible):
            return FALSE
        first = possible[0][1]
        if len(possible) == len(ways):
            if self._complete(node) and all(term is first for _, term in possible):
                return first
        elif len(possible) == 1 and self._always(node):
            self.exits.append(self._scope.gates.taken(possible[0][0]))
        going = [(e, term) for e, term in possible if term is not FALSE]
        if len(going) == 1 and self._is_recursive(node, going[0][0]):
            return self._scope.gates.leaving(node)
        result = FALSE
        for e, term in going:
            result = either(result, both(self._scope.gates.taken(e), term))
        if rewrite.size(result) <= table.LARGE_CONDITION:
            return result
        result = FALSE
        for e, term in going:
            result = either(result, both(self._scope.gates.choice(node, e), term))
        return result

    def _is_recursive(self, node: int, edge: int) -> bool:
        """Whether the only call of ``node``, by ``edge``, is a back edge to the header.

        The node always makes the call, so that an edge past the call is no alternative.
        """
        graph = self._code.graph
        calls = [e for e in graph.successors[node] if graph.edges[e].kind is EdgeKind.CALL]
        return calls == [edge] and edge in self._loop.backs

    def _always(self, node: int) -> bool:
        """Whether every iteration that returns to the header goes through ``node``."""
        acyclic, graph = self._code.acyclic, self._code.graph
        for e in self._loop.backs:
            at = graph.edges[e].src
            while acyclic.order[at] > acyclic.order[node]:
                at = acyclic.dominator[at]
            if at != node:
                return False
        return True

    def _complete(self, node: int) -> bool:
        """Whether the edges out of a node cover everything that can happen after it."""
        kinds = [self._code.graph.edges[e].kind for e in self._code.graph.successors[node]]
        leaves = self._code.effect(node).leaves
        stays = EdgeKind.FALLTHROUGH in kinds
        goes = any(kind is not EdgeKind.FALLTHROUGH for kind in kinds)
        return (stays or leaves is TRUE) and (goes or leaves is FALSE)
