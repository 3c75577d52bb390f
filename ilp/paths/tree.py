"""The worst path folded into a tree of calls: who was called how often, and where cycles went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ilp.paths.solution import PathStep
from pipeline.costs import Cause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import Supergraph

__all__ = ["BlockUse", "CallTree", "fold"]

NOTHING = (0,) * len(Cause)


@dataclass(frozen=True, slots=True)
class BlockUse:
    """Executions of one block in one context; cycles by cause, the edges out of it included."""

    addr: int
    executions: int
    cycles: tuple[int, ...]  # indexed by Cause


@dataclass(frozen=True, slots=True)
class CallTree:
    """One context on the path. ``callees`` are in order of their first call."""

    context: int
    function: int  # entry address
    call_site: int | None  # address of the call instruction, None at the root
    invocations: int
    own: tuple[int, ...]  # cycles by cause, without callees
    total: tuple[int, ...]  # with callees
    blocks: tuple[BlockUse, ...]  # by address
    callees: tuple[CallTree, ...]

    @property
    def cycles(self) -> int:
        """All cycles of all invocations, callees included."""
        return sum(self.total)


def fold(graph: Supergraph, costs: Costs, steps: Sequence[PathStep]) -> CallTree:
    """The tree of a path, from the root context. The cycles of the root are those of the path."""
    tallies: dict[int, Tally] = {}
    for number, step in enumerate(steps):
        context = graph.nodes[step.node].context
        if context not in tallies:
            open_chain(graph, tallies, context)
        before = steps[number - 1].edge if number else None
        tallies[context].execute(graph, costs, step, before)
    return built(graph, tallies, chain(graph, graph.nodes[steps[0].node].context)[0])


@dataclass(slots=True)
class Tally:
    """What one context has used so far."""

    invocations: int = 0
    blocks: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    callees: list[int] = field(default_factory=list)

    def execute(self, graph: Supergraph, costs: Costs, step: PathStep, before: int | None) -> None:
        """Add one step, which was reached by edge ``before``."""
        if before is None or graph.edges[before].kind is EdgeKind.CALL:
            self.invocations += 1
        start = costs.start if before is None else NOTHING
        addr = graph.nodes[step.node].block.addr
        executions, cycles = self.blocks.get(addr, (0, [0] * len(Cause)))
        edge = None if step.edge is None else costs.edges[step.edge]
        for cause in Cause:
            cycles[cause] += start[cause] + costs.nodes[step.node][cause]
            cycles[cause] += edge[cause] if edge else 0
        self.blocks[addr] = executions + 1, cycles


def chain(graph: Supergraph, context: int) -> list[int]:
    """The contexts from the root to ``context``."""
    found, at = [context], graph.contexts[context].parent
    while at is not None:
        found.append(at)
        at = graph.contexts[at].parent
    return found[::-1]


def open_chain(graph: Supergraph, tallies: dict[int, Tally], context: int) -> None:
    """Add ``context``, and those above it that the path has not met."""
    for at in chain(graph, context):
        if at not in tallies:
            tallies[at] = Tally()
            parent = graph.contexts[at].parent
            if parent is not None:
                tallies[parent].callees.append(at)


def built(graph: Supergraph, tallies: Mapping[int, Tally], top: int) -> CallTree:
    """The finished tree below the context ``top``: callees before their callers."""
    order, pending = [], [top]
    while pending:
        order.append(at := pending.pop())
        pending += tallies[at].callees
    done: dict[int, CallTree] = {}
    for context in reversed(order):
        tally, at_call = tallies[context], graph.contexts[context]
        callees = tuple(done.pop(callee) for callee in tally.callees)
        blocks = tuple(
            BlockUse(addr, executions, tuple(cycles))
            for addr, (executions, cycles) in sorted(tally.blocks.items())
        )
        own = added([b.cycles for b in blocks])
        done[context] = CallTree(
            context=context,
            function=at_call.function,
            call_site=at_call.call_site,
            invocations=tally.invocations,
            own=own,
            total=added([own, *(callee.total for callee in callees)]),
            blocks=blocks,
            callees=callees,
        )
    return done[top]


def added(parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Cycles by cause, summed."""
    return tuple(sum(part[cause] for part in parts) for cause in Cause)
