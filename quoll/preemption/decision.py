"""The nodes between a read of the interrupt controller and the branches that it decides.

The interrupt may arrive just after the read: the nodes up to the first negative edges then run
although it is pending, because the read did not see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from quoll.errors import ControlFlowError
from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.preemption.acknowledgement import acknowledging_first, unread_loads
from quoll.preemption.layered_tests import LayeredTests
from quoll.preemption.predicate import PendingCase
from quoll.value_analysis.layered_graph import LayeredGraph
from quoll.value_analysis.value_results import ValueResults

__all__ = [
    "PendingDecision",
    "acknowledged_between",
    "addresses_of_unread",
    "decisions_of",
    "refuse_cycle",
    "refuse_unread",
]


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """The nodes between a read and the first negative edges; none if no such edge follows."""

    nodes: frozenset[int]
    inside: frozenset[int]  # edges between the nodes
    negative: frozenset[int]  # edges out of the nodes


def decisions_of(
    values: ValueResults, layered: LayeredGraph, negative: frozenset[int], reads: Iterable[int]
) -> dict[int, PendingDecision]:
    """The decision of each of ``reads``, from their values without any assumption.

    One analysis starts at all of them: the values of a read cover those with which control comes to
    it from another one.
    """
    starts = sorted(reads)
    found = values.layered(layered, [{}] * layered.layers, {}, negative).start(starts)
    live = frozenset(range(len(layered.edges))) - found.dead - negative
    taken = [e for e in negative if found.states[layered.edges[e].src] is not None]
    before = closure(
        (layered.edges[e].src for e in taken),
        lambda n: (layered.edges[e].src for e in layered.predecessors[n] if e in live),
    )

    def behind(node: int) -> Iterator[int]:
        for edge in layered.successors[node]:
            target = layered.edges[edge].dst
            if edge in live and target in before:
                yield target

    decisions = {}
    for read in starts:
        nodes = frozenset(closure([read] if read in before else [], behind))
        inside = (e for n in nodes for e in layered.successors[n] if layered.edges[e].dst in nodes)
        out = frozenset(e for e in taken if layered.edges[e].src in nodes)
        decisions[read] = PendingDecision(nodes, live.intersection(inside), out)
    return decisions


def addresses_of_unread(subject: LayeredTests) -> tuple[int, ...]:
    """The addresses of loads that acknowledge, and whose word the program never reads."""
    graph = subject.layered.graph
    return tuple(
        graph.nodes[node].block.insns[index].addr
        for node, index in unread_loads(subject.values, subject.predicate)
    )


def acknowledged_between(
    subject: LayeredTests,
    decisions: Mapping[int, PendingDecision],
    cases: Sequence[PendingCase],
) -> bool:
    """Whether an access may acknowledge between a read that misses the interrupt and its branch."""
    acknowledging = subject.nodes.all - subject.nodes.withdrawing
    for read, decision in decisions.items() if acknowledging else ():
        between = {subject.layered.node(n) for n in decision.nodes} & acknowledging
        start = subject.layered.node(read)
        if acknowledging_first(subject.values, start, subject.predicate):
            between -= {start}
        if between and _goes_on(subject, decision, read, cases):
            return True
    return False


def _goes_on(
    subject: LayeredTests, decision: PendingDecision, read: int, cases: Sequence[PendingCase]
) -> bool:
    """Whether a negative edge of ``decision`` may follow an access that acknowledges.

    The interrupt arrives just after ``read``, so the other reads see it.
    """
    layered = subject.layered
    if layered.node(read) in subject.nodes.all and not acknowledging_first(
        subject.values, layered.node(read), subject.predicate
    ):
        return True
    behind = [layered.node(layered.edges[e].dst) for e in layered.successors[read]]
    for case in cases:
        found = subject.resumed(case).start(behind)
        for edge in decision.negative:
            in_all = subject.in_layers(frozenset({layered.edge(edge)}))
            if any(e not in found.dead and subject.taken(layered.edges[e].dst) for e in in_all):
                return True
    return False


def refuse_unread(unread: Iterable[int], image: Image) -> None:
    """Raise ControlFlowError for the first load that loses the interrupt."""
    for address in unread:
        raise ControlFlowError(
            "this load acknowledges an interrupt, but the program never reads its word",
            where=image.place(address),
            hint="keep the word that it gives, or remove the register from 'controller.loads' if "
            "reading it has no effect on this board",
        )


def refuse_cycle(layered: LayeredGraph, test: PendingDecision, image: Image) -> None:
    """Raise ControlFlowError for a loop between a read and the branch that it decides."""
    waiting = dict.fromkeys(test.nodes, 0)
    for edge in test.inside:
        waiting[layered.edges[edge].dst] += 1
    order = [n for n, count in waiting.items() if count == 0]
    for node in order:
        for edge in layered.successors[node]:
            if edge in test.inside:
                target = layered.edges[edge].dst
                waiting[target] -= 1
                if waiting[target] == 0:
                    order.append(target)
    if len(order) < len(test.nodes):
        stuck = min(layered.node(n) for n, count in waiting.items() if count)
        raise ControlFlowError(
            "between a read of the interrupt controller and the branch that it decides runs a loop",
            where=image.place(layered.graph.nodes[stuck].block.addr),
            hint="a preemption point has to read each pending register once, then branch",
        )
