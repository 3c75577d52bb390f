"""Recorded executions, cut where they test for interrupts (rule 21).

In a recording hardly any interrupt arrives at a preemption point: the execution passes tests
without a pending interrupt, and is longer than the bounded path. Each section from one start to the
end of the next test is the beginning of a path that the bound covers, and must not take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ilp.paths.solution import PathStep
from quoll.image.image import Image
from quoll.recordings.follow import (
    WIDEST,
    MissingEdge,
    NodeVisit,
    RefutedFact,
    follow,
    follow_prefix,
)
from quoll.recordings.trace import Execution
from wcet.analysis.prepared import PreparedPaths

__all__ = ["RecordedPath", "cut", "sections"]


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """An executed path from one start, or if not ``complete`` its beginning.

    ``sources``: the executions that contain it, with its position in them.
    """

    paths: PreparedPaths
    visits: tuple[NodeVisit, ...]
    complete: bool
    sources: tuple[tuple[Execution, int], ...]

    def interrupted(self) -> tuple[PathStep, ...] | None:
        """The path with an interrupt that arrives before its last test; a complete one as it is.

        None if the paths end behind the test in several ways.
        """
        graph, node = self.paths.graph, self.visits[-1].node
        steps = [PathStep(visit.node, visit.edge) for visit in self.visits[:-1]]
        behind = {node}
        while node not in graph.exits:
            ways = graph.successors[node]
            if len(ways) != 1 or graph.edges[ways[0]].dst in behind:
                return None
            steps.append(PathStep(node, ways[0]))
            node = graph.edges[ways[0]].dst
            behind.add(node)
        return (*steps, PathStep(node, None))


def cut(
    prepared: Sequence[PreparedPaths],
    image: Image,
    recorded: Iterable[Sequence[Execution]],
    width: int = WIDEST,
) -> list[RecordedPath]:
    """The distinct paths in ``recorded``, whose inner sequences have the same instructions.

    ``width``: the most instructions that the core issues in a cycle.
    Raises ``quoll.recordings.follow.MissingEdge`` if an execution is no sequence of paths.
    """
    if len(prepared) == 1:
        (paths,) = prepared
        return [
            RecordedPath(
                paths,
                follow(paths.graph, image, executions[0].pcs, width),
                True,
                whole(executions),
            )
            for executions in recorded
        ]
    cutter = _Cutter.of(prepared, image, width)
    found: dict[tuple[int, tuple[tuple[int, int | None], ...]], RecordedPath] = {}
    for executions in recorded:
        for path in cutter.pieces(executions):
            key = id(path.paths), tuple((v.node, v.edge) for v in path.visits)
            found.setdefault(key, path)
    return list(found.values())


def sections(
    prepared: Sequence[PreparedPaths], image: Image, execution: Execution, width: int = WIDEST
) -> list[RecordedPath]:
    """Every section of one execution, in order; sections that repeat a path are not left out.

    Raises as ``cut`` does.
    """
    if len(prepared) == 1:
        return cut(prepared, image, [[execution]], width)
    cutter = replace(_Cutter.of(prepared, image, width), ahead=None)
    return list(cutter.pieces([execution]))


def whole(executions: Sequence[Execution]) -> tuple[tuple[Execution, int], ...]:
    """The sources of paths that are whole executions."""
    return tuple((execution, 0) for execution in executions)


@dataclass(frozen=True, slots=True)
class _Cutter:
    """Cuts executions at starts of paths; a section that ran alike before is passed over.

    ``known`` has the next start, as a distance and its paths, for the paths and instructions of a
    section with ``ahead`` instructions behind it, on which the next start depends too; ``lengths``
    are how many instructions that is. ``ahead`` is None where executions of any length are passed
    over, in functions that facts replace: then nothing is known.
    """

    first: PreparedPaths
    starts: dict[tuple[int | None, int], list[PreparedPaths]]
    image: Image
    width: int
    ahead: int | None
    known: dict[tuple[int, bytes], tuple[int, PreparedPaths]] = field(default_factory=dict)
    lengths: dict[int, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, prepared: Sequence[PreparedPaths], image: Image, width: int) -> _Cutter:
        starts: dict[tuple[int | None, int], list[PreparedPaths]] = {}
        for paths in prepared:
            context = paths.graph.nodes[paths.graph.entry].context
            starts.setdefault((paths.start, context), []).append(paths)
        blocks = [node.block for paths in prepared for node in paths.graph.nodes]
        replaced = any(block.passes for block in blocks)
        ahead = None if replaced else 1 + max(len(block.insns) for block in blocks)
        return cls(prepared[0], starts, image, width, ahead)

    def pieces(self, executions: Sequence[Execution]) -> Iterator[RecordedPath]:
        """The sections of ``executions``, all of one path, that no earlier call has given."""
        pcs, begin, paths = executions[0].pcs, 0, self.first
        while True:
            following = self._known(paths, pcs, begin)
            if following is None:
                visits = follow_prefix(paths.graph, self.image, pcs[begin:], self.width)
                if not visits:
                    raise MissingEdge(
                        "a start of paths is not in its graph", where=self.image.place(pcs[begin])
                    )
                last = visits[-1]
                end = begin + last.start + len(paths.graph.nodes[last.node].block.insns)
                complete = _is_whole(paths, self.image, pcs[begin:], last, self.width)
                sources = tuple((execution, begin) for execution in executions)
                yield RecordedPath(paths, visits, complete, sources)
                if complete:
                    return
                following = _next_start(
                    paths, self.starts, visits, begin, self.image, pcs, end, self.width
                )
                if last.node not in paths.graph.exits:
                    self._remember(paths, pcs, begin, end, following)
            distance, paths = following
            begin += distance

    def _known(
        self, paths: PreparedPaths, pcs: memoryview[int], begin: int
    ) -> tuple[int, PreparedPaths] | None:
        for length in self.lengths.get(id(paths), ()):
            found = self.known.get((id(paths), pcs[begin : begin + length].tobytes()))
            if found is not None:
                return found
        return None

    def _remember(
        self,
        paths: PreparedPaths,
        pcs: memoryview[int],
        begin: int,
        end: int,
        following: tuple[int, PreparedPaths],
    ) -> None:
        if self.ahead is not None and end + self.ahead <= len(pcs):
            section = pcs[begin : end + self.ahead]
            self.known[id(paths), section.tobytes()] = following
            self.lengths.setdefault(id(paths), set()).add(len(section))


def _is_whole(
    paths: PreparedPaths, image: Image, pcs: Sequence[int], last: NodeVisit, width: int
) -> bool:
    if last.node not in paths.graph.exits:
        return False
    try:
        follow(paths.graph, image, pcs, width)
    except RefutedFact:
        raise
    except MissingEdge:
        return False
    return True


def _next_start(
    paths: PreparedPaths,
    starts: dict[tuple[int | None, int], list[PreparedPaths]],
    visits: Sequence[NodeVisit],
    begin: int,
    image: Image,
    pcs: Sequence[int],
    end: int,
    width: int,
) -> tuple[int, PreparedPaths]:
    """The last start before ``end`` from which the execution can be followed beyond ``end``.

    Its distance from ``begin``, and its paths.
    """
    for visit in reversed(visits):
        node = paths.graph.nodes[visit.node]
        at = begin + visit.start
        for following in starts.get((node.block.addr, node.context), ()):
            further = follow_prefix(following.graph, image, pcs[at:], width)
            if not further:
                continue
            block = following.graph.nodes[further[-1].node].block
            if at + further[-1].start + len(block.insns) > end:
                return visit.start, following
    raise MissingEdge(
        "the execution leaves the paths of the graph", where=image.place(pcs[end - 1])
    )
