"""Executions as witnesses: a recorded run must be a path of the supergraph.

This is the first independent check that no edge is missing: what really ran is looked up in the
graph, instruction by instruction. A path found here is also what facts and costs are tested on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.errors import WcetError
from quoll.image import Image
from quoll.supergraph import Supergraph

__all__ = ["MissingEdge", "Visit", "follow"]


class MissingEdge(WcetError):
    """An execution left the graph: the graph is incomplete, or a fact excluded what happens."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A node that was executed, and the edge by which it was left (None: the path ended)."""

    node: int
    edge: int | None


def follow(graph: Supergraph, image: Image, pcs: Sequence[int]) -> tuple[Visit, ...]:
    """The path of ``graph`` that executes the instructions at ``pcs``, from entry to an exit.

    The path ends at the first exit after which nothing in the graph runs; what the recorder saw
    after that (an idle thread in a privileged mode) is no part of it: the blocks of the path have
    fewer instructions than ``pcs`` then. Contexts make successors with equal addresses rare;
    where several nodes fit, all are kept until the execution tells them apart. Raises MissingEdge
    at the first instruction or edge that the graph does not have.
    """
    exits = frozenset(graph.exits)
    trail: list[dict[int, tuple[int, int]]] = []  # node -> (predecessor, edge) per step
    current: dict[int, tuple[int, int]] = {graph.entry: (-1, -1)}
    at = 0
    while True:
        current = _executed(graph, image, current, pcs, at)
        trail.append(current)
        at += len(graph.nodes[next(iter(current))].block.insns)
        ends = exits.intersection(current)
        current = {
            graph.edges[e].dst: (node, e)
            for node in current
            for e in graph.successors[node]
            if at < len(pcs) and graph.nodes[graph.edges[e].dst].block.addr == pcs[at]
        }
        if ends and not current:
            return _path(trail, min(ends))
        if at == len(pcs):
            raise MissingEdge(
                "the execution ends here, where no path may end", where=image.place(pcs[-1])
            )
        if not current:
            raise MissingEdge(
                f"the execution goes on at {image.place(pcs[at])}, to which there is no edge",
                where=image.place(pcs[at - 1]),
            )


def _executed(
    graph: Supergraph,
    image: Image,
    candidates: dict[int, tuple[int, int]],
    pcs: Sequence[int],
    at: int,
) -> dict[int, tuple[int, int]]:
    """The candidates whose block is what runs from ``pcs[at]`` on."""
    fitting = {
        node: came
        for node, came in candidates.items()
        if all(
            at + i < len(pcs) and pcs[at + i] == insn.addr
            for i, insn in enumerate(graph.nodes[node].block.insns)
        )
    }
    lengths = {len(graph.nodes[node].block.insns) for node in fitting}
    if len(lengths) != 1:
        raise MissingEdge(
            f"the execution leaves the middle of the block at {image.place(pcs[at])}",
            where=image.place(pcs[at]),
        )
    return fitting


def _path(trail: list[dict[int, tuple[int, int]]], end: int) -> tuple[Visit, ...]:
    """Walk back from the exit ``end`` in the last step."""
    visits = [Visit(end, None)]
    for step in reversed(trail[1:]):
        node, edge = step[visits[-1].node]
        visits.append(Visit(node, edge))
    return tuple(reversed(visits))
