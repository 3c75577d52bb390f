"""A stretch: the longest path from a point where an interrupt can be taken to the next one.

Its *core* is the smallest call or loop with at least half of its cycles. The last decision that
leads to the core, a switch if there is one, selects the *operation* (``wcet.latency.decision``).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from ilp.parametric import ParametricBound
from ilp.paths.outline import PathOutline, outline
from loopbounds.proof.bound import LoopBound
from quoll.inlining.supergraph import Supergraph
from wcet.analysis.result import EntryResult, StartBound
from wcet.latency.decision import Decision, decisions

__all__ = ["Stretch", "StretchLoop", "function_of", "stretch_of"]


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
class Stretch:
    """The longest path of ``result``, which is the bound from one start.

    ``chain``: from the whole path inwards, the call or loop with the most cycles; () if no counts
    are known. ``core``: its position in ``chain``. ``decision``: None if no branch avoids the core.
    ``test``: the address of the last block on the path that tests for interrupts, behind the start.
    """

    result: EntryResult
    chain: tuple[PathOutline, ...]
    core: int
    decision: Decision | None
    test: int | None

    @property
    def start(self) -> StartBound:
        """The start of the path."""
        return self.result.starts[0]

    @property
    def function(self) -> ParametricBound | None:
        """The cycles as a function of parameters; None if they depend on none."""
        return function_of(self.result)

    @property
    def operation(self) -> PathOutline | None:
        """The call or loop that the decision leads to; without a decision the core."""
        if self.decision is None:
            return self.chain[self.core] if self.chain else None
        graph, selected = self.result.graph, self.decision.selected
        outer = max(
            at for at, section in enumerate(self.chain) if _contains(graph, section, selected)
        )
        return self.chain[min(outer + 1, len(self.chain) - 1)]

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
        if self.decision is None:
            return None
        block = self.result.graph.nodes[self.decision.selected].block
        return next((insn.addr for insn in block.insns if block.always_runs(insn)), None)

    def loops(self) -> list[StretchLoop]:
        """The loops on the path, the costliest first."""
        found: dict[int, StretchLoop] = {}
        for loop in self._loops() if self.chain else ():
            known = found.get(loop.header)
            found[loop.header] = loop if known is None else _joined(known, loop)
        return sorted(found.values(), key=lambda loop: (-loop.cycles, loop.header))

    def _loops(self) -> Iterator[StretchLoop]:
        """Each loop in its context; one inside of another of its header has no cycles."""
        graph = self.result.graph
        for around, at in self.chain[0].walk():
            if at.stretch.loop is None:
                continue
            header = _header(graph, at)
            within = any(s.stretch.loop is not None and _header(graph, s) == header for s in around)
            cycles = 0 if within else at.cycles
            bound = self.result.bounds[at.stretch.loop]
            yield StretchLoop(header, at.entries, at.iterations, cycles, (bound,))


def function_of(result: EntryResult) -> ParametricBound | None:
    """The bound as a function of parameters; None if it depends on none."""
    found = result.parametric
    depends = found is not None and any(slope for p in found.pieces for slope in p.slopes)
    return found if depends else None


def _contains(graph: Supergraph, section: PathOutline, node: int) -> bool:
    """Whether ``node`` belongs to the function or loop itself, not only to its calls."""
    context, loop = section.stretch.context, section.stretch.loop
    inside = loop is None or node in graph.loops[loop].nodes
    return graph.nodes[node].context == context and inside


def _header(graph: Supergraph, at: PathOutline) -> int:
    assert at.stretch.loop is not None
    return graph.nodes[graph.loops[at.stretch.loop].header].block.addr


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
    chain = _heaviest(outline(result.graph, result.costs, result.solution, result.path.steps))
    core = sum(2 * section.cycles >= chain[0].cycles for section in chain[1:])
    return Stretch(result, chain, core, _decision(result, chain, core), _last_test(result, tests))


def _heaviest(whole: PathOutline) -> tuple[PathOutline, ...]:
    """From the whole path inwards, the section with the most cycles of each."""
    chain = [whole]
    while chain[-1].children:
        chain.append(max(chain[-1].children, key=lambda section: section.cycles))
    return tuple(chain)


def _decision(result: EntryResult, chain: tuple[PathOutline, ...], core: int) -> Decision | None:
    """The decision that leads to the core; if there is none, to the nearest section inside it."""
    for inner in range(core, len(chain)):
        found = _leading_to(result, chain[: inner + 1])
        if found is not None:
            return found
    return None


def _leading_to(result: EntryResult, chain: tuple[PathOutline, ...]) -> Decision | None:
    graph = result.graph
    contexts = {section.stretch.context for section in chain}
    found = decisions(graph, result.solution, _first_node(result, chain[-1]), contexts)
    return found[0] if found else None


def _first_node(result: EntryResult, section: PathOutline) -> int:
    """The header of a loop, or of a call the first node of its context on the path."""
    graph, context, loop = result.graph, section.stretch.context, section.stretch.loop
    if loop is not None:
        return graph.loops[loop].header
    called = [step.node for step in result.path.steps if graph.nodes[step.node].context == context]
    executed = (n for n in graph.nodes_in[context] if result.solution.nodes[n])
    return called[0] if called else next(executed)


def _last_test(result: EntryResult, tests: Set[int]) -> int | None:
    """The address of the last testing block on the path, except for the first block."""
    blocks = (result.graph.nodes[step.node].block.addr for step in result.path.steps[1:])
    found = [addr for addr in blocks if addr in tests]
    return found[-1] if found else None
