"""The worst path folded into a tree of calls, with invocations and cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ilp.paths.solution import PathStep
from pipeline.costs import CostCause, Costs
from quoll.cfg.cfg import EdgeKind
from quoll.inlining.supergraph import Supergraph

__all__ = ["BlockUse", "CallTree", "fold"]


@dataclass(frozen=True, slots=True)
class BlockUse:
    """Executions of one block in one context; cycles by cause, including its outgoing edges."""

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
        """All cycles of all invocations, including callees."""
        return sum(self.total)


def fold(graph: Supergraph, costs: Costs, steps: Sequence[PathStep]) -> CallTree:
    """The tree of a path, from the root context. The cycles of the root are the cycles of the path.

    Nodes and edges are counted first, so that a path of millions of steps takes seconds.
    """
    nodes = Counter(map(attrgetter("node"), steps))  # in order of first steps
    edges = Counter(map(attrgetter("edge"), steps))
    edges.pop(None, None)
    tallies: dict[int, ContextTally] = {}
    for node, count in nodes.items():
        context = graph.nodes[node].context
        if context not in tallies:
            open_chain(graph, tallies, context)
        tallies[context].spend(
            graph.nodes[node].block.addr, count, costs.nodes[node], executed=True
        )
    for edge, count in edges.items():
        source, target = graph.edges[edge].src, graph.edges[edge].dst
        addr = graph.nodes[source].block.addr
        tallies[graph.nodes[source].context].spend(addr, count, costs.edges[edge], executed=False)
        if graph.edges[edge].kind is EdgeKind.CALL:
            tallies[graph.nodes[target].context].invocations += count
    first = graph.nodes[steps[0].node]
    tallies[first.context].invocations += 1
    tallies[first.context].spend(first.block.addr, 1, costs.start, executed=False)
    return built(graph, tallies, chain(graph, first.context)[0])


@dataclass(slots=True)
class ContextTally:
    """The cycles of one context so far."""

    invocations: int = 0
    blocks: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    callees: list[int] = field(default_factory=list)

    def spend(self, addr: int, count: int, cycles: Sequence[int], *, executed: bool) -> None:
        """Add ``count`` times ``cycles`` at ``addr``; with executions, if ``executed``."""
        executions, spent = self.blocks.get(addr, (0, [0] * len(CostCause)))
        for cause in CostCause:
            spent[cause] += count * cycles[cause]
        self.blocks[addr] = executions + count * executed, spent


def chain(graph: Supergraph, context: int) -> list[int]:
    """The contexts from the root to ``context``."""
    found, at = [context], graph.contexts[context].parent
    while at is not None:
        found.append(at)
        at = graph.contexts[at].parent
    return found[::-1]


def open_chain(graph: Supergraph, tallies: dict[int, ContextTally], context: int) -> None:
    """Add ``context`` and its callers, if the path has not entered them before."""
    for at in chain(graph, context):
        if at not in tallies:
            tallies[at] = ContextTally()
            parent = graph.contexts[at].parent
            if parent is not None:
                tallies[parent].callees.append(at)


def built(graph: Supergraph, tallies: Mapping[int, ContextTally], top: int) -> CallTree:
    """The finished tree below the context ``top``."""
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


def added(costs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The sum of cycles, by cause."""
    return tuple(sum(cost[cause] for cost in costs) for cause in CostCause)
