"""Recorded executions, cut where they test for interrupts (rule 21).

In a recording hardly any interrupt arrives at a preemption point: the execution passes tests that
see none, and is longer than the bounded path. Each section from one start to the next test, the
test included, is the beginning of a path that the bound covers, and must not take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quoll.image.image import Image
from quoll.recordings.follow import MissingEdge, NodeVisit, RefutedFact, follow, follow_prefix
from quoll.recordings.trace import Execution
from wcet.analysis.prepared import PreparedPaths

__all__ = ["RecordedPath", "cut"]


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """An executed path from one start, or if not ``complete`` the beginning of one. ``sources``
    are the executions that contain it, with its position in them.
    """

    paths: PreparedPaths
    visits: tuple[NodeVisit, ...]
    complete: bool
    sources: tuple[tuple[Execution, int], ...]


def cut(
    prepared: Sequence[PreparedPaths], image: Image, recorded: Iterable[Sequence[Execution]]
) -> list[RecordedPath]:
    """The different pieces of ``recorded``, whose inner sequences ran alike.

    Raises ``quoll.recordings.follow.MissingEdge`` if an execution is no sequence of paths.
    """
    if len(prepared) == 1:
        (paths,) = prepared
        return [
            RecordedPath(
                paths, follow(paths.graph, image, executions[0].pcs), True, whole(executions)
            )
            for executions in recorded
        ]
    starts = {(p.start, p.graph.nodes[p.graph.entry].context): p for p in prepared}
    found: dict[tuple[int, tuple[tuple[int, int | None], ...]], RecordedPath] = {}
    for executions in recorded:
        for path in _cut_one(prepared[0], starts, image, executions):
            key = id(path.paths), tuple((v.node, v.edge) for v in path.visits)
            found.setdefault(key, path)
    return list(found.values())


def whole(executions: Sequence[Execution]) -> tuple[tuple[Execution, int], ...]:
    """Pieces that are executions from their entry on."""
    return tuple((execution, 0) for execution in executions)


def _cut_one(
    first: PreparedPaths,
    starts: dict[tuple[int | None, int], PreparedPaths],
    image: Image,
    executions: Sequence[Execution],
) -> list[RecordedPath]:
    pcs, begin, paths = executions[0].pcs, 0, first
    found: list[RecordedPath] = []
    while True:
        visits = follow_prefix(paths.graph, image, pcs[begin:])
        if not visits:
            raise MissingEdge("a start of paths is not in its graph", where=image.place(pcs[begin]))
        last = visits[-1]
        end = begin + last.start + len(paths.graph.nodes[last.node].block.insns)
        complete = _is_whole(paths, image, pcs[begin:], last)
        sources = tuple((execution, begin) for execution in executions)
        found.append(RecordedPath(paths, visits, complete, sources))
        if complete:
            return found
        begin, paths = _next_start(paths, starts, visits, begin, image, pcs, end)


def _is_whole(paths: PreparedPaths, image: Image, pcs: Sequence[int], last: NodeVisit) -> bool:
    if last.node not in paths.graph.exits:
        return False
    try:
        follow(paths.graph, image, pcs)
    except RefutedFact:
        raise
    except MissingEdge:
        return False
    return True


def _next_start(
    paths: PreparedPaths,
    starts: dict[tuple[int | None, int], PreparedPaths],
    visits: Sequence[NodeVisit],
    begin: int,
    image: Image,
    pcs: Sequence[int],
    end: int,
) -> tuple[int, PreparedPaths]:
    """The last start that was passed from which the execution is followed further than ``end``."""
    for visit in reversed(visits):
        node = paths.graph.nodes[visit.node]
        following = starts.get((node.block.addr, node.context))
        if following is None:
            continue
        at = begin + visit.start
        further = follow_prefix(following.graph, image, pcs[at:])
        if not further:
            continue
        block = following.graph.nodes[further[-1].node].block
        if at + further[-1].start + len(block.insns) > end:
            return at, following
    raise MissingEdge(
        "the execution goes on where no path of the graph does", where=image.place(pcs[end - 1])
    )
