"""A stretch: the longest path from a point where an interrupt can be taken to the next one.

Its *core* is the smallest call or loop with at least half of its cycles. The last decision that
leads to the core, a switch if there is one, selects the *operation* (``wcet.latency.decision``).
All three may be inside a function with a summary, whose own worst path is followed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from ilp.parametric import ParametricBound
from loopbounds.proof.bound import LoopBound
from quoll.cfg.cfg import Block
from wcet.analysis.result import EntryResult
from wcet.latency.decision import Decision, decisions
from wcet.latency.frames import FrameSection, PathFrame, first_frame, frames_of, heaviest, last_test

__all__ = ["Stretch", "StretchLoop", "StretchOperation", "function_of", "stretch_of"]


@dataclass(frozen=True, slots=True)
class StretchLoop:
    """A loop on a stretch, over all contexts: its executions, its cycles with calls, its bounds.

    ``header``: its address. ``iterations``: executions of the header.
    """

    header: int
    entries: int
    iterations: int
    cycles: int
    bounds: tuple[LoopBound, ...]  # different ones, the largest first


@dataclass(frozen=True, slots=True)
class StretchOperation:
    """A call or loop: the addresses of the active functions, the entry's first, and its cycles.

    ``loop``: the address of the header; None for a call of the last function.
    """

    functions: tuple[int, ...]
    loop: int | None
    cycles: int


@dataclass(frozen=True, slots=True)
class SelectingBranch:
    """A decision in a frame, with its blocks."""

    frame: PathFrame
    decision: Decision

    @property
    def branch(self) -> int:
        """The address of the first branch."""
        return self.frame.graph.nodes[self.decision.branch].block.last.addr

    @property
    def selected(self) -> Block:
        """The block on every path to the operation behind the branch."""
        return self.frame.graph.nodes[self.decision.selected].block


@dataclass(frozen=True, slots=True)
class Stretch:
    """The longest path of ``result``, which is the bound from one start.

    ``chain``: from the whole path inwards, the call or loop with the most cycles; () if no counts
    are known. ``core``: its position in ``chain``. ``decided``: None if no branch avoids the core.
    ``test``: the address of the last block on the path that tests for interrupts, behind the start.
    """

    result: EntryResult
    chain: tuple[FrameSection, ...]
    core: int
    decided: SelectingBranch | None
    test: int | None

    @property
    def start(self) -> int | None:
        """The address of the block in which the path begins; None for the entry itself."""
        return first_frame(self.result).start

    @property
    def callers(self) -> tuple[int, ...]:
        """The addresses of the functions that are active at the start, the entry's first."""
        first = first_frame(self.result)
        return first.active_in(first.graph.nodes[first.graph.entry].context)

    @property
    def function(self) -> ParametricBound | None:
        """The cycles as a function of parameters; None if they depend on none."""
        return function_of(self.result)

    @property
    def operation(self) -> StretchOperation | None:
        """The call or loop that the decision leads to; without a decision the core."""
        if not self.chain:
            return None
        if self.decided is None:
            return _operation(self.chain[self.core])
        frame, node = self.decided.frame, self.decided.decision.selected
        around = [
            n for n, one in enumerate(self.chain) if one.frame is frame and one.contains(node)
        ]
        return _operation(self.chain[min(max(around) + 1, len(self.chain) - 1)])

    @property
    def last(self) -> int | None:
        """The address of the instruction at which the path ends; None without a path."""
        steps = self.result.path.steps
        return self.result.graph.nodes[steps[-1].node].block.last.addr if steps else None

    @property
    def place(self) -> int | None:
        """The address of an instruction that executes where the decision selects the operation.

        None without a decision, and if all instructions there are conditional.
        """
        if self.decided is None:
            return None
        block = self.decided.selected
        return next((insn.addr for insn in block.insns if block.always_runs(insn)), None)

    def loops(self) -> list[StretchLoop]:
        """The loops on the path, the costliest first."""
        found: dict[int, StretchLoop] = {}
        for frame in frames_of(self.result):
            for loop in _loops(frame):
                known = found.get(loop.header)
                found[loop.header] = loop if known is None else _joined(known, loop)
        return sorted(found.values(), key=lambda loop: (-loop.cycles, loop.header))


def function_of(result: EntryResult) -> ParametricBound | None:
    """The bound as a function of parameters; None if it depends on none."""
    found = result.parametric
    depends = found is not None and any(slope for p in found.pieces for slope in p.slopes)
    return found if depends else None


def _operation(section: FrameSection) -> StretchOperation:
    return StretchOperation(section.functions, section.header, section.cycles)


def _loops(frame: PathFrame) -> Iterator[StretchLoop]:
    """Each loop in its context; one inside of another of its header has no cycles."""
    for around, section in frame.walk():
        loop, header = section.outline.stretch.loop, section.header
        if loop is None or header is None:
            continue
        within = any(outer.header == header for outer in around)
        yield StretchLoop(
            header,
            frame.calls * section.outline.entries,
            frame.calls * section.outline.iterations,
            0 if within else section.cycles,
            (frame.bounds[loop],),
        )


def _joined(one: StretchLoop, other: StretchLoop) -> StretchLoop:
    """The same loop in two contexts."""
    bounds = {(b.bound, b.explained): b for b in (*one.bounds, *other.bounds)}
    largest = sorted(bounds.values(), key=lambda b: -(b.bound or 0))
    return StretchLoop(
        one.header,
        one.entries + other.entries,
        one.iterations + other.iterations,
        one.cycles + other.cycles,
        tuple(largest),
    )


def stretch_of(result: EntryResult, tests: Set[int]) -> Stretch:
    """The stretch that reaches the bound of ``result``; ``tests``: addresses of testing blocks."""
    if not result.solution.nodes:
        return Stretch(result, (), 0, None, None)
    chain = tuple(heaviest(result))
    core = sum(2 * section.cycles >= chain[0].cycles for section in chain[1:])
    return Stretch(result, chain, core, _decided(chain, core), last_test(result, tests))


def _decided(chain: tuple[FrameSection, ...], core: int) -> SelectingBranch | None:
    """The decision that leads to the core; if there is none, to the nearest section inside it."""
    for inner in range(core, len(chain)):
        found = list(_leading_to(chain[: inner + 1]))
        switches = [one for one in found if one.decision.is_switch]
        if found:
            return switches[0] if switches else found[0]
    return None


def _leading_to(chain: tuple[FrameSection, ...]) -> Iterator[SelectingBranch]:
    """Of each frame the last decision that leads to the end of ``chain``, innermost frame first."""
    frames = dict.fromkeys(section.frame for section in reversed(chain))
    for frame in frames:
        sections = [section for section in chain if section.frame is frame]
        contexts = {section.outline.stretch.context for section in sections}
        inner = [section.frame for section in chain if section.frame.caller is frame]
        node = sections[-1].first_node() if not inner else inner[0].call
        found = decisions(frame.graph, frame.solution, node, contexts)
        if found:
            yield SelectingBranch(frame, found[0])
