"""The paths on a stretch: its own, and of each function with a summary that it calls.

A caller has the cycles of a summary on the edge past the call. The function's own worst path is a
*frame* below it, and so are the summaries that this path calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from ilp.constraints.nest import topological_order
from ilp.paths.outline import PathOutline, outline
from ilp.paths.solution import IlpSolution, PathStep
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.prepared import SummarisedFunction
from wcet.analysis.result import EntryResult
from wcet.latency.summarised_calls import called_by

__all__ = ["FrameSection", "PathFrame", "first_frame", "frames_of", "heaviest", "last_test"]

SHARE = 0.01  # of the cycles of a stretch: summaries below are not followed


@dataclass(frozen=True, eq=False)
class PathFrame:
    """A worst path that a stretch executes ``calls`` times.

    ``start`` as in ``PreparedPaths``. ``known``: the summaries that it may call. ``caller``,
    ``call``: the frame and the node that call it most; None and -1 for the path of the stretch.
    """

    start: int | None
    graph: Supergraph
    costs: Costs
    bounds: tuple[LoopBound, ...]
    solution: IlpSolution
    steps: tuple[PathStep, ...]
    known: tuple[SummarisedFunction, ...]
    calls: int = 1
    caller: PathFrame | None = None
    call: int = -1

    @cached_property
    def outline(self) -> PathOutline:
        """The calls and loops of the path; summaries have frames of their own."""
        return outline(self.graph, self.costs, self.solution, self.steps)

    @property
    def functions(self) -> tuple[int, ...]:
        """The addresses of the functions that are active around the frame."""
        if self.caller is None:
            return ()
        return self.caller.active_in(self.caller.graph.nodes[self.call].context)

    def active_in(self, context: int) -> tuple[int, ...]:
        """The addresses of the functions that are active in a context, the entry's first."""
        called = self.graph.call_string(context)
        return (*self.functions, *(one.function for one in called))

    def walk(self) -> Iterator[tuple[tuple[FrameSection, ...], FrameSection]]:
        """The calls and loops of the path, each with the ones around it."""
        for around, at in self.outline.walk():
            yield tuple(FrameSection(self, outer) for outer in around), FrameSection(self, at)

    def inner(self, blocks: Sequence[tuple[int, int, int]]) -> Iterator[PathFrame]:
        """The frames of the summaries that ``blocks`` of an outline call, one for each call."""
        for node, *_ in blocks:
            if self.graph.nodes[node].block.passes:
                calls = called_by(self.known, self.graph, self.costs, self.solution, node)
                for number, level, count in calls:
                    yield self._called(self.known[number].at(level), number, count, node)

    def _called(self, one: SummarisedFunction, number: int, count: int, node: int) -> PathFrame:
        paths = one.paths
        return PathFrame(
            paths.start, paths.graph, paths.costs, paths.bounds, one.solution, (),
            self.known[:number], self.calls * count, self, node,
        )  # fmt: skip

    @property
    def cycles(self) -> int:
        """The cycles of all executions of the path."""
        return self.calls * self.solution.cycles

    def tested(self) -> Iterator[PathFrame]:
        """The frames of functions with tests for interrupts that the path calls."""
        replaced = self.graph.guidance.replaced
        for node, count in enumerate(self.solution.nodes):
            passes = self.graph.nodes[node].block.passes
            if count and any(replaced[callee].tests for callee in passes):
                yield from self.inner([(node, 0, 0)])

    @property
    def begins_in_call(self) -> bool:
        """Whether the path begins behind a test in a function that its first node calls."""
        replaced = self.graph.guidance.replaced
        called = (replaced[callee] for callee in self.graph.nodes[self.graph.entry].block.passes)
        return self.start is not None and any(one.tests for one in called)

    def first(self) -> PathFrame:
        """The frame in which the path begins: of the function whose test is its start."""
        frame: PathFrame = self
        inside: PathFrame | None = self
        while inside is not None:
            frame, entry = inside, inside.graph.entry
            called = inside.tested() if inside.begins_in_call else ()
            inside = next((one for one in called if one.call == entry), None)
        return frame

    def last_test(self, tests: Set[int]) -> int | None:
        """The address of the last block on the path that is in ``tests``, except for its start."""
        frames = [self]
        while (inside := next(frames[-1].tested(), None)) is not None:
            frames.append(inside)
        found = (frame._last_own_test(tests) for frame in reversed(frames))
        return next((test for test in found if test is not None), None)

    def _last_own_test(self, tests: Set[int]) -> int | None:
        testing = {
            number
            for number, count in enumerate(self.solution.nodes)
            if count and number != self.graph.entry
            if self.graph.nodes[number].block.addr in tests
        }
        if not testing:
            return None
        order = {n: at for at, n in enumerate(topological_order(self.graph))}
        last = next(
            (step.node for step in reversed(self.steps) if step.node in testing),
            max(testing, key=lambda n: order[n]),
        )
        return self.graph.nodes[last].block.addr


@dataclass(frozen=True, slots=True)
class FrameSection:
    """A call or loop of a frame."""

    frame: PathFrame
    outline: PathOutline

    @property
    def cycles(self) -> int:
        """Its cycles on the stretch, children included."""
        return self.frame.calls * self.outline.cycles

    @property
    def functions(self) -> tuple[int, ...]:
        """The addresses of the active functions, the entry's first."""
        return self.frame.active_in(self.outline.stretch.context)

    @property
    def header(self) -> int | None:
        """The address of the header of a loop; None for a call."""
        loop, graph = self.outline.stretch.loop, self.frame.graph
        return None if loop is None else graph.nodes[graph.loops[loop].header].block.addr

    def contains(self, node: int) -> bool:
        """Whether ``node`` belongs to the function or loop itself, not only to its calls."""
        graph, loop = self.frame.graph, self.outline.stretch.loop
        inside = loop is None or node in graph.loops[loop].nodes
        return graph.nodes[node].context == self.outline.stretch.context and inside

    def first_node(self) -> int:
        """The header of a loop, or of a call the first node of its context on the path."""
        graph, loop = self.frame.graph, self.outline.stretch.loop
        if loop is not None:
            return graph.loops[loop].header
        nodes = frozenset(graph.nodes_in[self.outline.stretch.context])
        called = (step.node for step in self.frame.steps if step.node in nodes)
        entry = graph.contexts[self.outline.stretch.context].function
        executed = [n for n in sorted(nodes) if self.frame.solution.nodes[n]]
        first = [n for n in executed if graph.nodes[n].block.addr == entry]
        return next(called, (first or executed)[0])


def frames_of(result: EntryResult) -> Iterator[PathFrame]:
    """The frame of a path, and a frame for each costly summary below it; none without counts."""
    if not result.solution.nodes:
        return
    pending = [_whole(result)]
    while pending:
        frame = pending.pop()
        yield frame
        for _, section in frame.walk():
            inner = frame.inner(section.outline.blocks)
            pending += [
                one for one in inner if one.solution.nodes and one.cycles >= SHARE * result.cycles
            ]


def first_frame(result: EntryResult) -> PathFrame:
    """The frame in which a path begins: of the entry, or of a function with a summary."""
    return _whole(result).first()


def last_test(result: EntryResult, tests: Set[int]) -> int | None:
    """The address of the last block on a path that is in ``tests``, except for its start."""
    return _whole(result).last_test(tests)


def heaviest(result: EntryResult) -> Iterator[FrameSection]:
    """From the whole path inwards, the call or loop with the most cycles; counts must be known."""
    frame = _whole(result)
    section: FrameSection | None = FrameSection(frame, frame.outline)
    while section is not None:
        yield section
        section = _heaviest_inside(section)


def _heaviest_inside(section: FrameSection) -> FrameSection | None:
    frame = section.frame
    inside = [FrameSection(frame, child) for child in section.outline.children]
    called = max(frame.inner(section.outline.blocks), key=lambda one: one.cycles, default=None)
    if called is not None and called.solution.nodes:
        inside.append(FrameSection(called, called.outline))
    return max(inside, key=lambda one: one.cycles, default=None)


def _whole(result: EntryResult) -> PathFrame:
    return PathFrame(
        result.starts[0].place, result.graph, result.costs, result.bounds, result.solution,
        result.path.steps, result.summaries,
    )  # fmt: skip
