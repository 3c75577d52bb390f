"""The decisions on a path that lead to a node of it: branches behind which it may be avoided.

Consider the graph without back edges of loops. A branch decides about a node if the node can be
reached from one of its targets, and not from another one. The compiler translates a switch into a
jump table, or into compares of one register: a *tree* of blocks, each with one predecessor, which
access no memory, and compare a register that their predecessor compares or branch by the same
comparison. Such a tree is one decision, among as many ways as it has targets.

Several ways may lead to the node. They meet at the latest in the *selected* node: the first one
behind the tree that every path to the node passes (Prosser, "Applications of Boolean matrices to
the analysis of flow diagrams", 1959: it dominates the node). From a way that avoids the node no
path leads to the selected one either.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from ilp.constraints.nest import topological_order
from ilp.paths.solution import IlpSolution
from quoll.graph.closure import closure
from quoll.graph.dominators import dominators
from quoll.inlining.supergraph import Supergraph

__all__ = ["Decision", "decisions"]

SWITCH = 3  # ways from which on a decision is a switch


@dataclass(frozen=True, slots=True)
class Decision:
    """A tree of branches, beginning at node ``branch``, with the node that it selects."""

    branch: int
    ways: int
    selected: int

    @property
    def is_switch(self) -> bool:
        """Whether it is among several cases, instead of a condition."""
        return self.ways >= SWITCH


def decisions(
    graph: Supergraph, solution: IlpSolution, node: int, contexts: Set[int]
) -> list[Decision]:
    """The decisions on the counted path that lead to ``node``, switches first, then the last first.

    Only those that are made in ``contexts``, and select a node there. Where none of them decides,
    those behind which further branches may avoid the selected node.
    """
    backs = frozenset(e for loop in graph.loops for e in loop.backs)
    leading = closure(
        [node], lambda n: (graph.edges[e].src for e in graph.predecessors[n] if e not in backs)
    )
    position = {n: at for at, n in enumerate(topological_order(graph))}
    inside = [n for n in _dominating(graph, node) if graph.nodes[n].context in contexts]
    strict: list[Decision] = []
    others: list[Decision] = []
    for root in sorted(leading - {node}, key=lambda n: -position[n]):
        if graph.nodes[root].context not in contexts or not solution.nodes[root]:
            continue
        tree = _tree(graph, root)
        ways = {target for n in tree for target in _targets(graph, n)} - tree
        behind = [n for n in inside if position[n] > position[root] and n not in tree]
        if tree and behind:
            decision = Decision(root, len(ways), min(behind, key=lambda n: position[n]))
            (others if ways <= leading else strict).append(decision)
    found = strict or [one for one in others if _avoids(graph, one)]
    return sorted(found, key=lambda decision: not decision.is_switch)


def _avoids(graph: Supergraph, decision: Decision) -> bool:
    """Whether a path from the branch to an end avoids the selected node."""
    reached = closure(
        [decision.branch], lambda n: (t for t in _targets(graph, n) if t != decision.selected)
    )
    return not reached.isdisjoint(graph.exits)


def _dominating(graph: Supergraph, node: int) -> Iterator[int]:
    """The nodes on every path from the entry to ``node``, itself first."""
    idom = dominators([_targets(graph, n) for n in range(len(graph.nodes))], graph.entry).idom
    yield node
    while idom[node] != node:
        node = idom[node]
        yield node


def _tree(graph: Supergraph, root: int) -> set[int]:
    """The tree of branches that begins at ``root``; none if ``root`` is inside of one."""
    if _continues(graph, root) or not _branches(graph, root):
        return set()
    return closure([root], lambda n: (t for t in _targets(graph, n) if _continues(graph, t)))


def _targets(graph: Supergraph, node: int) -> list[int]:
    return [graph.edges[e].dst for e in graph.successors[node]]


def _branches(graph: Supergraph, node: int) -> bool:
    return len(set(_targets(graph, node))) > 1


def _continues(graph: Supergraph, node: int) -> bool:
    """Whether ``node`` belongs to the tree of its one predecessor.

    It compares a register that the predecessor compares, or branches by the same comparison.
    """
    before = _branch_before(graph, node)
    if before is None or not _branches(graph, node):
        return False
    block = graph.nodes[node].block
    if graph.nodes[before].context != graph.nodes[node].context or any(
        insn.memory for insn in block.insns
    ):
        return False
    read = _read(graph, node)
    return not read or not _compared(graph, before).isdisjoint(read)


def _branch_before(graph: Supergraph, node: int) -> int | None:
    """The only predecessor of ``node``, if it branches."""
    into = graph.predecessors[node]
    before = graph.edges[into[0]].src if len(into) == 1 else None
    return before if before is not None and _branches(graph, before) else None


def _compared(graph: Supergraph, node: int) -> frozenset[int]:
    """The registers read by the block that makes the comparison by which ``node`` branches."""
    while not _read(graph, node):
        before = _branch_before(graph, node)
        if before is None:
            break
        node = before
    return _read(graph, node)


def _read(graph: Supergraph, node: int) -> frozenset[int]:
    return frozenset(r for insn in graph.nodes[node].block.insns for r in insn.reads)
