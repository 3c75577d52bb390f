"""The source lines on a worst path that take most of its cycles, with the loop around each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ilp.paths.outline import PathOutline, outline
from ilp.paths.solution import IlpSolution
from loopbounds.proof.bound import LoopBound
from pipeline.costs import Costs
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.latency.summarised_calls import numbers_in, summarised_calls

__all__ = ["HotPlace", "LoopShare", "hot_places", "loop_shares"]


@dataclass(frozen=True, slots=True)
class _Path:
    """A worst path, of the entry or inside a function with a summary that runs ``times``."""

    graph: Supergraph
    costs: Costs
    solution: IlpSolution
    bounds: Sequence[LoopBound]
    times: int


@dataclass(frozen=True, slots=True)
class LoopShare:
    """A loop of the program on a worst path, over all its contexts.

    ``cycles`` includes its calls, and inner loops; ``most`` is the largest bound per entry.
    """

    header: int  # address
    cycles: int
    entries: int
    iterations: int
    most: int | None
    exact: bool
    stated: bool


@dataclass(frozen=True, slots=True)
class HotPlace:
    """A source line in a function, or a block without a line, at ``address``.

    ``cycles``: of all its blocks on the path, without the functions that they call; ``count``:
    executions of its most executed block; ``loop``: the address of the header of the innermost loop
    around it.
    """

    address: int
    function: int
    cycles: int
    count: int
    loop: int | None


@dataclass(slots=True)
class _PlaceTally:
    """The cost of one source line; ``runs``: by address of a block, its executions."""

    function: int
    cycles: int = 0
    costliest: tuple[int, int, int | None] = (-1, 0, None)  # cycles, address, header of its loop
    runs: Counter[int] = field(default_factory=Counter)

    def add(self, address: int, cycles: int, runs: int, header: int | None) -> None:
        """Charge a block in one context."""
        self.cycles += cycles
        self.runs[address] += runs
        if cycles > self.costliest[0]:
            self.costliest = cycles, address, header

    def place(self) -> HotPlace:
        """The line as a place."""
        _, address, header = self.costliest
        return HotPlace(address, self.function, self.cycles, max(self.runs.values()), header)


def hot_places(result: AnalysisResult, entry: EntryResult) -> list[HotPlace]:
    """All places on the worst path of ``entry``, the costliest first."""
    found: dict[tuple[int, str], _PlaceTally] = {}
    for path in _paths(entry):
        inside = _inside_calls(entry, path)
        for around, at in _outline(path).walk():
            header = _header(path.graph, (*around, at))
            function = path.graph.contexts[at.stretch.context].function
            for node, runs, cycles in at.blocks:
                address = path.graph.nodes[node].block.addr
                key = function, str(result.image.line(address) or address)
                own = cycles - inside.get(node, 0)
                tally = found.setdefault(key, _PlaceTally(function))
                tally.add(address, own * path.times, runs * path.times, header)
    places = [tally.place() for tally in found.values()]
    return sorted(places, key=lambda place: (-place.cycles, place.address))


def loop_shares(entry: EntryResult) -> dict[int, LoopShare]:
    """The loops on the worst path of ``entry``, by address of the header."""
    found: dict[int, LoopShare] = {}
    for path in _paths(entry):
        for _, at in _outline(path).walk():
            if at.stretch.loop is None:
                continue
            loop = path.graph.loops[at.stretch.loop]
            bound = path.bounds[at.stretch.loop]
            header = path.graph.nodes[loop.header].block.addr
            one = LoopShare(
                header,
                at.cycles * path.times,
                at.entries * path.times,
                at.iterations * path.times,
                bound.iterations(path.graph),
                bound.exact is True,
                bound.method == "fact",
            )
            found[header] = _added(found.get(header), one)
    return found


def _paths(entry: EntryResult) -> Iterator[_Path]:
    yield _Path(entry.graph, entry.costs, entry.solution, entry.bounds, 1)
    for call in summarised_calls(entry):
        one = call.function
        yield _Path(one.paths.graph, one.paths.costs, one.solution, one.paths.bounds, call.calls)


def _outline(path: _Path) -> PathOutline:
    return outline(path.graph, path.costs, path.solution)


def _inside_calls(entry: EntryResult, path: _Path) -> dict[int, int]:
    """By node, the cycles that it is charged for functions which have a path of their own."""
    shown = {call.function.address for call in summarised_calls(entry)}
    known = entry.summaries
    numbers = numbers_in(path.graph, known)
    functions = {address: known[n].solution.cycles for address, n in numbers.items()}
    inside: dict[int, int] = {}
    for e, count in enumerate(path.solution.edges):
        if count and path.graph.passed(e):
            node = path.graph.edges[e].src
            passes = path.graph.nodes[node].block.passes
            longest = max(passes, key=lambda f: functions.get(f, 0))
            if longest in shown:
                inside[node] = inside.get(node, 0) + count * functions[longest]
    return inside


def _header(graph: Supergraph, sections: Sequence[PathOutline]) -> int | None:
    """The header of the innermost loop among ``sections``."""
    loops = [s.stretch.loop for s in sections if s.stretch.loop is not None]
    return graph.nodes[graph.loops[loops[-1]].header].block.addr if loops else None


def _added(known: LoopShare | None, one: LoopShare) -> LoopShare:
    if known is None:
        return one
    numbers = [most for most in (known.most, one.most) if most is not None]
    return LoopShare(
        one.header,
        known.cycles + one.cycles,
        known.entries + one.entries,
        known.iterations + one.iterations,
        max(numbers, default=None),
        known.exact and one.exact,
        known.stated and one.stated,
    )
