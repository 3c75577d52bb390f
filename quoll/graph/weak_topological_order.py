"""Weak topological order: the iteration order of a fixed point, and its widening points.

Source: Bourdoncle, "Efficient chaotic iteration strategies with widenings", FMPA 1993. Computed
here by decomposing strongly connected components from the outside in, without recursion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.graph.components import components

__all__ = ["FlowGraph", "WeakOrder"]


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Nodes 0 to ``len(successors) - 1``; an edge is an index into ``sources`` and ``targets``."""

    entry: int
    sources: Sequence[int]
    targets: Sequence[int]
    successors: Sequence[Sequence[int]]  # node -> outgoing edges


@dataclass(frozen=True, slots=True)
class WeakOrder:
    """``nodes`` in order, reachable ones only; a component is contiguous and starts at its head.

    Every cycle passes the head of a component that contains the whole cycle; an edge goes
    backwards only to the head of a component that contains its source.
    """

    nodes: tuple[int, ...]
    position: tuple[int, ...]  # node -> index in ``nodes``, -1 when unreachable
    end: tuple[int, ...]  # node -> position after its component if a head, else -1

    def is_head(self, node: int) -> bool:
        """Whether ``node`` is the head of a component (a loop header)."""
        return self.end[node] >= 0

    def restricted(self, retained: Sequence[int]) -> WeakOrder:
        """The order of the subgraph of the nodes ``retained``, numbered as listed.

        Every cycle of it is a cycle of the whole graph, so the properties of the order still hold.
        """
        number = {old: new for new, old in enumerate(retained)}
        nodes = tuple(number[old] for old in self.nodes if old in number)
        before = [0]  # per position of the whole order, the number of retained nodes before it
        for old in self.nodes:
            before.append(before[-1] + (old in number))
        position = [-1] * len(retained)
        for at, node in enumerate(nodes):
            position[node] = at
        end = tuple(before[self.end[old]] if self.is_head(old) else -1 for old in retained)
        return WeakOrder(nodes, tuple(position), end)

    @staticmethod
    def of(graph: FlowGraph) -> WeakOrder:
        """The weak topological order of the nodes reachable from ``graph.entry``."""
        return _Decomposition(graph).run()


class _Decomposition:
    """Splits the graph into components, then each component without its head, and so on."""

    def __init__(self, graph: FlowGraph) -> None:
        self.graph = graph
        count = len(graph.successors)
        self.region = [0] * count  # node -> the component being split that contains it
        self.position = [-1] * count
        self.end = [-1] * count
        self.nodes: list[int] = []
        self.regions = 0

    def run(self) -> WeakOrder:
        # Work still to be emitted, last first: a component (root first), or a head to close.
        work: list[tuple[int, list[int]]] = [(-1, c) for c in self._components([self.graph.entry])]
        while work:
            head, component = work.pop()
            if head >= 0:
                self.end[head] = len(self.nodes)
                continue
            root = component[0]
            self.position[root] = len(self.nodes)
            self.nodes.append(root)
            if len(component) == 1 and not self._loops_to_itself(root):
                continue
            self.regions += 1
            for node in component[1:]:
                self.region[node] = self.regions
            self.region[root] = -1
            work.append((root, []))
            heads = [self.graph.targets[e] for e in self.graph.successors[root]]
            inside = [n for n in heads if self.region[n] == self.regions]
            work.extend((-1, c) for c in self._components(inside))
        return WeakOrder(tuple(self.nodes), tuple(self.position), tuple(self.end))

    def _loops_to_itself(self, node: int) -> bool:
        return any(self.graph.targets[e] == node for e in self.graph.successors[node])

    def _components(self, roots: Sequence[int]) -> list[list[int]]:
        """Components of the region of ``roots``, the last in topological order first."""
        region = self.region[roots[0]] if roots else 0
        targets, successors, member = self.graph.targets, self.graph.successors, self.region

        def inside(node: int) -> list[int]:
            return [n for e in successors[node] if member[n := targets[e]] == region]

        return components(roots, inside)
