"""The stores of a graph, by the addresses that values give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quoll.arm.insn import AccessKind
from quoll.arm.system_registers import DISCARDED
from quoll.image.memory_map import Span
from quoll.value_analysis.value_results import ValueResults

__all__ = ["KnownStore", "stores"]

NEAR = 1 << 16  # bytes: the largest range within which an address counts as known
STORES = (AccessKind.STORE, AccessKind.SWAP)


class KnownStore(NamedTuple):
    """A store by instruction ``insn`` of ``node``; ``span``: the bytes that it may hit, if known.

    ``exact``: it has one address. ``on_stack``: it hits a stack of unknown place.
    """

    node: int
    insn: int
    span: Span | None
    exact: bool
    on_stack: bool


def stores(values: ValueResults) -> Iterator[KnownStore]:
    """All stores of reached nodes."""
    for node, at in enumerate(values.graph.nodes):
        if not values.reached(node):
            continue
        for index, insn in enumerate(at.block.insns):
            memory = insn.memory
            if memory is not None and memory.access not in STORES:
                continue
            where = values.access(node, index)
            if where is None:
                continue
            if where.high - where.low < NEAR:
                size = DISCARDED if memory is None else memory.size * memory.count
                span, exact = (where.low, where.high + size - 1), where.exact is not None
                yield KnownStore(node, index, span, exact, False)
            else:
                frame = values.frame_access(node, index)
                on_stack = frame is not None and frame.high - frame.low < NEAR
                yield KnownStore(node, index, None, False, on_stack)
