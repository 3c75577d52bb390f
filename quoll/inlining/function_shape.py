"""The shape of one function for virtual inlining: its graph, made reducible, as integers.

If a loop has several entries, blocks are copied (``quoll.graph.node_splitting``), so a block may
stand for several vertices of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.cfg.cfg import Cfg, EdgeKind
from quoll.errors import ControlFlowError
from quoll.graph.natural_loops import find_loops
from quoll.graph.node_splitting import SplitGraph, TooManyCopies, split_nodes
from quoll.image.image import Image
from quoll.inlining.supergraph import NestedBlock, PeeledIteration

__all__ = ["FunctionShape", "shape_of"]

COPIES_PER_BLOCK, COPIES = 8, 64  # limit of copies: this many times the blocks, plus


@dataclass(frozen=True, slots=True)
class FunctionShape:
    """Vertex 0 is the entry. ``blocks[v]`` is the index of v's block in the function."""

    cfg: Cfg
    blocks: tuple[int, ...]
    edges: tuple[tuple[int, int, EdgeKind], ...]  # within the function; ACROSS past bounds
    across: tuple[tuple[int, ...], ...]  # vertex -> return vertices of its calls
    callers: tuple[int, ...]  # vertices that call
    iterations: tuple[tuple[PeeledIteration, ...], ...]  # vertex -> ``SuperNode.iterations``
    nest: tuple[NestedBlock, ...]  # of every vertex before loops are unrolled, each kind once


def shape_of(cfg: Cfg, image: Image) -> FunctionShape:
    """The reducible graph of ``cfg``.

    Raises ControlFlowError naming the blocks when that would need too many copies.
    """
    kinds: dict[tuple[int, int], list[EdgeKind]] = {}
    for edge in cfg.edges:
        kinds.setdefault((edge.src, edge.dst), []).append(edge.kind)
    try:
        split = _split(cfg)
    except TooManyCopies as fault:
        places = ", ".join(image.place(cfg.blocks[n].addr) for n in fault.region[:16])
        raise ControlFlowError(
            f"loops of {cfg.name} with several entries need too many copies: blocks {places}",
            where=image.place(cfg.entry),
            hint="remove jumps into these loops, or compile with less optimisation",
        ) from fault
    edges = []
    across: list[list[int]] = [[] for _ in split.origin]
    for src, following in enumerate(split.successors):
        for dst in following:
            for kind in kinds[split.origin[src], split.origin[dst]]:
                block = cfg.blocks[split.origin[src]]
                if kind is EdgeKind.ACROSS and block.calls:
                    across[src].append(dst)
                if kind is not EdgeKind.ACROSS or block.passes or not block.calls:
                    edges.append((src, dst, kind))
    return FunctionShape(
        cfg,
        split.origin,
        tuple(edges),
        tuple(tuple(a) for a in across),
        tuple(v for v, block in enumerate(split.origin) if cfg.blocks[block].calls),
        ((),) * len(split.origin),
        _nest(cfg, split) if cfg.whole is None else _nest_of_whole(cfg.whole, cfg, split),
    )


def _split(cfg: Cfg) -> SplitGraph:
    successors: list[list[int]] = [[] for _ in cfg.blocks]
    for src, dst in dict.fromkeys((edge.src, edge.dst) for edge in cfg.edges):
        successors[src].append(dst)
    return split_nodes(successors, 0, COPIES + COPIES_PER_BLOCK * len(cfg.blocks))


def _nest_of_whole(whole: Cfg, cfg: Cfg, split: SplitGraph) -> tuple[NestedBlock, ...]:
    """The nest of the ``whole`` function; of the cut function, if its loops are too tangled."""
    try:
        return _nest(whole, _split(whole))
    except TooManyCopies:
        return _nest(cfg, split)


def _nest(cfg: Cfg, split: SplitGraph) -> tuple[NestedBlock, ...]:
    headers: list[tuple[int, ...]] = [()] * len(split.origin)
    for loop in find_loops(split.successors, 0):  # outer loops come first
        address = cfg.blocks[split.origin[loop.header]].addr
        for vertex in loop.nodes:
            headers[vertex] = (*headers[vertex], address)
    known = zip((cfg.blocks[b] for b in split.origin), headers, strict=True)
    return tuple(dict.fromkeys(NestedBlock(*pair) for pair in known))
