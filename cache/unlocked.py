"""The code behind operations that may drop locked lines: nothing counts as locked there.

Lines are locked before the first entry. An operation that invalidates lines of a cache, or writes
its lockdown register, may drop locked ones; so may a function that is not examined. Lines that are
fetched again go to free ways. Where no such operation was executed before, since the entry, they
are still there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cache.geometry import CacheHierarchy
from cache.locked import NOT_LOCKED
from cache.maintenance import cache_operation
from quoll.arm.floating_point import vector_role
from quoll.arm.insn import AccessKind, Insn
from quoll.inlining.supergraph import Supergraph

__all__ = ["UnlockedNodes", "unlocked_nodes", "unlocking", "unlocks_code", "unlocks_data"]


def unlocks_code(insn: Insn) -> bool:
    """Whether an instruction may drop locked lines of the instruction cache."""
    operation = cache_operation(insn)
    return bool(operation.forget_i or operation.drop_i)


def unlocks_data(insn: Insn) -> bool:
    """The same of the data cache.

    Accesses of the vector unit may have any effect on it, and those past L1 may drop their line.
    """
    memory = insn.memory
    if memory is None:
        return cache_operation(insn).forget_d
    past_l1 = memory.exclusive or memory.access is AccessKind.SWAP
    return past_l1 or vector_role(insn) is not None


def unlocking(graph: Supergraph, unlocks: Callable[[Insn], bool]) -> tuple[int, ...]:
    """The addresses of such instructions and of code that is not examined, in ascending order."""
    found = {i.addr for node in graph.nodes for i in node.block.insns if unlocks(i)}
    passing = (edge.src for at, edge in enumerate(graph.edges) if graph.passed(at))
    found |= {graph.nodes[node].block.last.addr for node in passing}
    return tuple(sorted(found))


def unlocked_nodes(graph: Supergraph, unlocks: Callable[[Insn], bool]) -> frozenset[int]:
    """The nodes that may be executed after such an operation, or that contain one."""
    passing = (edge.dst for at, edge in enumerate(graph.edges) if graph.passed(at))
    blocks = {id(node.block): node.block for node in graph.nodes}  # contexts share them
    dropping = {at for at, block in blocks.items() if any(map(unlocks, block.insns))}
    found = {*passing, *(n for n, node in enumerate(graph.nodes) if id(node.block) in dropping)}
    waiting = list(found)
    while waiting:
        for edge in graph.successors[waiting.pop()]:
            target = graph.edges[edge].dst
            if target not in found:
                found.add(target)
                waiting.append(target)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class UnlockedNodes:
    """The nodes of ``graph`` behind operations that may drop locked lines of either cache."""

    graph: Supergraph
    code: frozenset[int]
    data: frozenset[int]

    @staticmethod
    def of(graph: Supergraph) -> UnlockedNodes:
        """Follow all paths from these operations."""
        both = (unlocked_nodes(graph, unlocks) for unlocks in (unlocks_code, unlocks_data))
        return UnlockedNodes(graph, *both)

    def before(self, hierarchy: CacheHierarchy, start: int) -> CacheHierarchy:
        """The caches where paths start at the block at ``start``, after a path through the graph.

        ``hierarchy``: with all lines that are locked before the first entry.
        """
        starts = {n for n, node in enumerate(self.graph.nodes) if node.block.addr == start}
        if starts & self.code:
            hierarchy = replace(hierarchy, locked_i=NOT_LOCKED)
        if starts & self.data:
            hierarchy = replace(hierarchy, locked_d=NOT_LOCKED)
        return hierarchy
