"""Instruction fetches: the lines a block enters, and the lines that may be fetched past its end.

Instructions are fetched in address order from where control arrives, so a block makes one
reference per line it enters. When it ends in a transfer of control, up to ``fetch_ahead`` bytes
behind it may have been requested before the transfer took effect (rule 8).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cache.geometry import Hierarchy
from cache.maintenance import cache_operation
from quoll.arm.insn import Flow, Insn
from quoll.cfg.cfg import Block, EdgeKind
from quoll.image.memory_map import Cacheability
from quoll.inlining.supergraph import Supergraph

__all__ = ["BlockFetches", "Fetch", "FetchModel", "redirects"]


class Fetch(NamedTuple):
    """A line entered at instruction ``insn`` of a block, or fetched past its end.

    ``certain``: afterwards it is the line used last in its set. It is not where the fetch may
    not happen, where the memory may be uncached, or where a copy fetched before a maintenance
    operation took effect may serve instead. ``dropped``: a fetch whose line the operation drops.
    ``forget``: no line at all but an operation that leaves nothing known, or, if it ``empties`` the
    cache, nothing there. ``drop``: no line at
    all but an operation after which one line at most, any line, may be gone.
    """

    insn: int
    line: int
    words: int  # instructions executed from the line (uncached code is fetched one by one)
    memory: Cacheability
    fixed: bool  # cached memory whose translation never changes
    certain: bool
    dropped: bool = False
    forget: bool = False
    drop: bool = False
    empties: bool = False


@dataclass(frozen=True, slots=True)
class BlockFetches:
    """Fetches of a block in program order, and those a transfer at its end may add."""

    inside: tuple[Fetch, ...]
    past: tuple[Fetch, ...]


def redirects(graph: Supergraph, edge: int) -> bool:
    """Whether traversing ``edge`` discards what was fetched behind the source block."""
    taken = graph.edges[edge]
    last = graph.nodes[taken.src].block.last
    return taken.kind is not EdgeKind.FALLTHROUGH and last.flow is not Flow.NEXT


class FetchModel:
    """Fetches per block; blocks are shared by many contexts and looked at once."""

    def __init__(self, graph: Supergraph, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self._geometry = hierarchy.l1i
        self._stale = self._lines_fetched_early(node.block for node in graph.nodes)
        self._blocks: dict[int, BlockFetches] = {}

    def _lines_fetched_early(self, blocks: Iterable[Block]) -> frozenset[int]:
        """Lines of which a copy may be fetched before, and dropped by, an invalidation."""
        seen: set[int] = set()
        lines: set[int] = set()
        for block in blocks:
            if id(block) in seen:
                continue
            seen.add(id(block))
            for insn in block.insns:
                operation = cache_operation(insn)
                if operation.forget_i or operation.drop_i:
                    ahead = max(self._hierarchy.fetch_ahead, 1)  # the next one is always here
                    lines.update(self._geometry.lines(insn.next, ahead))
        return frozenset(lines)

    def _behind(self, insn: Insn) -> range:
        """Lines that may be fetched ahead while ``insn`` is the last one executed."""
        if not self._hierarchy.fetch_ahead:
            return range(0)
        return self._geometry.lines(insn.next, self._hierarchy.fetch_ahead)

    def lines(self) -> set[int]:
        """Every line that the graph may fetch."""
        return {
            fetch.line
            for fetches in self._blocks.values()
            for fetch in fetches.inside + fetches.past
            if not fetch.forget and not fetch.drop
        }

    def of(self, block: Block) -> BlockFetches:
        """The fetches of ``block``."""
        fetches = self._blocks.get(id(block))
        if fetches is None:
            fetches = self._blocks[id(block)] = self._fetches(block)
        return fetches

    def _fetches(self, block: Block) -> BlockFetches:
        inside: list[Fetch] = []
        current: int | None = None
        for index, insn in enumerate(block.insns):
            for line in self._geometry.lines(insn.addr, insn.size):
                if line != current:
                    inside.append(self._fetch(index, line, line not in self._stale))
                    current = line
                else:
                    inside[-1] = inside[-1]._replace(words=inside[-1].words + 1)
            operation = cache_operation(insn)
            if operation.drop_i:
                inside.append(Fetch(index, 0, 1, Cacheability.ALWAYS, False, False, drop=True))
                current = None
            if operation.forget_i:
                inside.append(
                    Fetch(
                        index,
                        0,
                        0,
                        Cacheability.NEVER,
                        False,
                        False,
                        forget=True,
                        empties=operation.empties,
                    )
                )
                inside.extend(
                    self._fetch(index, line, False)._replace(dropped=True)
                    for line in self._behind(insn)
                )
                current = None
            if operation.refetch:
                if not operation.forget_i:  # what was fetched ahead stays in the cache
                    inside.extend(
                        self._fetch(index, line, False)
                        for line in self._behind(insn)
                        if line != self._geometry.line(insn.next - 1)
                    )
                current = None
        end = self._geometry.line(block.end - 1)
        past = (self._fetch(len(block.insns) - 1, line, False) for line in self._behind(block.last))
        return BlockFetches(tuple(inside), tuple(f for f in past if f.line != end))

    def _fetch(self, insn: int, line: int, certain: bool) -> Fetch:
        size = self._geometry.line_bytes
        memory = self._hierarchy.memory.cacheability(line * size, line * size + size - 1)
        fixed = memory is Cacheability.ALWAYS and self._hierarchy.memory.fixed(line * size)
        return Fetch(insn, line, 1, memory, fixed, certain and fixed)
