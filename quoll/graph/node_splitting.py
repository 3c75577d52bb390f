"""Node splitting: an irreducible region becomes loops with one header each.

A strongly connected region that can be entered at several nodes keeps one of them, h, as its
header. The nodes that the other entries reach inside the region before h are copied, and control
from outside enters the copies, which lead to h. The same is then done inside the rest without h,
and inside the copies. The result and the original graph have the same walks (compare Janssen and
Corporaal, "Making Graphs Reducible with Controlled Node Splitting", 1997, which chooses among
splits with more care).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.graph.closure import closure
from quoll.graph.components import components
from quoll.graph.dominators import reverse_postorder

__all__ = ["SplitGraph", "TooManyCopies", "split_nodes"]


class TooManyCopies(Exception):
    """Splitting would exceed the limit; ``region`` holds the original nodes of the region."""

    def __init__(self, region: list[int]) -> None:
        super().__init__(f"irreducible region of {len(region)} nodes")
        self.region = region


@dataclass(frozen=True, slots=True)
class SplitGraph:
    """A reducible graph: node ``n`` is a copy of the original node ``origin[n]``.

    The first nodes are the original ones, in their order.
    """

    successors: tuple[tuple[int, ...], ...]
    origin: tuple[int, ...]


def split_nodes(successors: Sequence[Sequence[int]], root: int, limit: int) -> SplitGraph:
    """Make the graph reached from ``root`` reducible with at most ``limit`` copies.

    Raises TooManyCopies.
    """
    reached = set(reverse_postorder(successors, root))
    splitter = _Splitter(successors, root, reached, limit)
    splitter.reduce(reached)
    return SplitGraph(tuple(tuple(s) for s in splitter.successors), tuple(splitter.origin))


class _Splitter:
    """The graph while nodes are added to it."""

    def __init__(
        self, successors: Sequence[Sequence[int]], root: int, reached: set[int], limit: int
    ) -> None:
        self.successors = [list(s) for s in successors]
        self.origin = list(range(len(successors)))
        self._predecessors: list[set[int]] = [set() for _ in successors]
        for node in reached:
            for after in successors[node]:
                self._predecessors[after].add(node)
        self._root = root
        self._most = len(successors) + limit

    def reduce(self, nodes: set[int]) -> None:
        """Make the subgraph on ``nodes`` reducible."""
        work = [nodes]
        while work:
            for region in self._components(work.pop()):
                if len(region) == 1:
                    continue
                heads = {n for n in region if n == self._root or self._predecessors[n] - region}
                header = self._choose(region, heads)
                if len(heads) > 1:
                    work.append(self._copy(region, header, heads - {header}))
                work.append(region - {header})

    def _components(self, nodes: set[int]) -> list[set[int]]:
        """The strongly connected components of ``nodes``, each after its successors."""

        def inside(node: int) -> Iterator[int]:
            return (after for after in self.successors[node] if after in nodes)

        return list(map(set, components(sorted(nodes), inside)))

    def _choose(self, region: set[int], heads: set[int]) -> int:
        """The root if control starts here; else the node with the fewest copies, lowest first."""
        if self._root in heads or len(heads) == 1:
            return self._root if self._root in heads else min(heads)
        return min(sorted(heads), key=lambda h: len(self._reached(region - {h}, heads - {h})))

    def _reached(self, inside: set[int], start: set[int]) -> set[int]:
        return closure(start, lambda node: (n for n in self.successors[node] if n in inside))

    def _copy(self, region: set[int], header: int, heads: set[int]) -> set[int]:
        """Copy the nodes that ``heads`` reach before ``header``; control enters the copies."""
        originals = sorted(self._reached(region - {header}, heads))
        if len(self.successors) + len(originals) > self._most:
            raise TooManyCopies(sorted({self.origin[n] for n in region}))
        copy = {node: len(self.successors) + i for i, node in enumerate(originals)}
        for node in originals:
            self.origin.append(self.origin[node])
            self.successors.append([copy.get(after, after) for after in self.successors[node]])
            self._predecessors.append(set())
        for node in copy.values():
            for after in self.successors[node]:
                self._predecessors[after].add(node)
        for head in heads:
            for node in self._predecessors[head] - region - set(copy.values()):
                self.successors[node] = [
                    copy[head] if after == head else after for after in self.successors[node]
                ]
                self._predecessors[head].discard(node)
                self._predecessors[copy[head]].add(node)
        return set(copy.values())
