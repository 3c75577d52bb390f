"""Branches that a pending interrupt decides (rule 21).

A preemption point reads a device to test whether an interrupt is pending. While one is pending,
loads from the registers in the platform file give certain words (``quoll.preemption.predicate``),
until the interrupt is taken. Value analysis under that assumption finds the decided branches; no
form of code is recognised.

The assumption holds from the arrival of the interrupt on. After the arrival, the relevant suffix of
a path begins at the entry, or with the last test that did not see the interrupt: the *negative*
test, which read the device just before.

If an access of the program may acknowledge the interrupt, executions before and after it are kept
apart in layers of the graph: behind it, nothing is assumed about the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from quoll.errors import ControlFlowError
from quoll.graph.closure import closure
from quoll.preemption.counters import TestCounter, test_counters
from quoll.preemption.decision import (
    PendingDecision,
    acknowledged_between,
    addresses_of_unread,
    decisions_of,
)
from quoll.preemption.layered_tests import LayeredTests
from quoll.preemption.predicate import PendingCase, PendingPredicate
from quoll.processes.worker import worker
from quoll.value_analysis.layered_graph import LayeredGraph
from quoll.value_analysis.value_results import ResumedValues, ValueResults

__all__ = ["PendingTests", "find_pending_tests"]

WORD = 4  # bytes
DECISION = 64  # nodes between two decisions of a test, on all its paths


@dataclass(frozen=True, slots=True)
class PendingTests:
    """``decisions``: of nodes of the layers that read one of the registers, ascending.

    ``negative``: the edges that a test takes only while nothing is pending. ``dead``: all edges
    that cannot be taken while an interrupt is pending, from the entry or from the target of a
    negative edge. ``unread``: addresses of loads that lose the interrupt.
    ``counters``: words that count the work between tests.
    """

    decisions: Mapping[int, PendingDecision]
    negative: frozenset[int]
    dead: frozenset[int]
    layered: LayeredGraph = field(compare=False)
    unread: tuple[int, ...] = ()
    counters: tuple[TestCounter, ...] = ()


def find_pending_tests(
    values: ValueResults, predicate: PendingPredicate, *, parallel: bool = False
) -> PendingTests | None:
    """The tests of ``values.graph``; None if no node reads a register of ``predicate``.

    Each case of the predicate in turn is assumed to hold for all loads, and an edge is dead if it
    is dead in all these cases. Fields of which no word is read are left out. The assumption decides
    nothing before the first read, so values are recomputed from there. Only loads of a whole
    register are decided: a byte load, an access across its end and an access of unknown address may
    read any value (rule 36). Loads whose address is known only under the assumption are among
    ``reads``, because they decide too.

    Behind a store to a register, and behind a load that acknowledges, nothing is assumed (rule 54).
    None if the address of such a load is known only under the assumption, or if such an access may
    come between a read and the branch that it decides. Raises ControlFlowError for a register in
    memory of the ELF.

    With ``parallel``, another process analyses all cases but the first. ``values`` then miss the
    loads whose address is known only in those cases; the result includes them.
    """
    _refuse_memory(values, (*predicate.registers, *predicate.loads))
    reads = values.reading(predicate.registers)
    if not reads:
        return None
    counters = test_counters(values)
    subject = LayeredTests.of(values, predicate, reads, counters)
    before, new = _before_any(subject.layered, reads)
    first, *rest = predicate.cases(one for one in predicate.fields if values.reading(one.registers))
    case = _Case(subject, first)
    others = _Cases(subject, rest, None if parallel else case)
    seen, every = set[int](), frozenset(range(len(subject.layered.edges)))
    with worker(others.start, worth=parallel and bool(rest)) as other:
        while True:
            seen |= new
            other.submit(sorted(new))
            found = case.start(sorted(new)).joined(other.result())
            if found.acknowledges:
                return None
            dead = every & found.dead - before
            possible = dead - subject.in_layers(values.dead_edges)
            negative = _last_decisions(subject, possible, found.reached, found.reads)
            new = {subject.target(e) for e in negative} - seen
            if not new:
                break
    decisions = decisions_of(values, subject.layered, negative, found.reads)
    unread = addresses_of_unread(subject) if negative else ()
    if not unread and acknowledged_between(subject, decisions, (first, *rest)):
        return None
    return PendingTests(decisions, negative, dead, subject.layered, unread, counters)


def _refuse_memory(values: ValueResults, registers: Sequence[int]) -> None:
    for register in registers:
        if any(map(values.is_memory, range(register, register + WORD))):
            raise ControlFlowError(
                f"the pending register {register:#010x} of the platform is in a section of this "
                "ELF, whose words do not change by themselves",
                hint="name a register of the interrupt controller in 'pending', or none",
            )


class _Found(NamedTuple):
    """The dead edges of cases, those with a reached source, and the readers of registers."""

    dead: frozenset[int]
    reached: frozenset[int]
    reads: frozenset[int]
    acknowledges: bool  # by a load whose address is known only under the assumption

    def joined(self, other: _Found | None) -> _Found:
        """The edges that are dead in all cases, and the others of any."""
        if other is None:
            return self
        return _Found(
            self.dead & other.dead,
            self.reached | other.reached,
            self.reads | other.reads,
            self.acknowledges or other.acknowledges,
        )


class _Case:
    """One case of a predicate holds; ``like``: a similar case, computed before."""

    def __init__(self, subject: LayeredTests, case: PendingCase, like: _Case | None = None) -> None:
        self._subject = subject
        known = None if like is None else like.resumed
        self.resumed: ResumedValues = subject.resumed(case, known)

    def start(self, nodes: Sequence[int]) -> _Found:
        """The result when control may also start at ``nodes``."""
        found, subject = self.resumed.start(nodes), self._subject
        edges, states = subject.layered.edges, found.states
        dead = frozenset(e for e in found.dead if e < len(edges))
        reached = frozenset(e for e in dead if states[edges[e].src] is not None)
        loads = subject.values.reading(subject.predicate.loads)
        return _Found(dead, reached, subject.reads(states), not loads <= subject.nodes.all)


class _Cases:
    """The cases of a predicate but the first; ``first``: its case if computed here before."""

    def __init__(
        self, subject: LayeredTests, cases: Sequence[PendingCase], first: _Case | None
    ) -> None:
        self._cases: list[_Case] = []
        for case in cases:
            like = self._cases[-1] if self._cases else first
            self._cases.append(_Case(subject, case, like))

    def start(self, nodes: Sequence[int]) -> _Found | None:
        """The joined result when control may also start at ``nodes``; None without a case."""
        found: _Found | None = None
        for case in self._cases:
            found = case.start(nodes).joined(found)
        return found


def _last_decisions(
    subject: LayeredTests, dead: frozenset[int], reached: frozenset[int], reads: frozenset[int]
) -> frozenset[int]:
    """The edges of ``dead`` behind which no other comes before a read, or the end of a path.

    A test may decide several times: it returns early that there is none, and its caller branches
    by that. Every path behind the first of these edges comes to the last one, which need not be
    ``reached`` in its layer if it is in another one.
    """
    places = {subject.layered.edge(e) for e in dead & reached}
    decided = frozenset(e for e in dead if subject.layered.edge(e) in places)
    behind = {e: _next_decisions(subject, e, decided, reads) for e in decided}
    following = {e: found for e, found in behind.items() if found}
    first = dead & reached
    return frozenset(
        e
        for e in closure(first, lambda x: following.get(x, ()))
        if e not in following or e in closure(following[e], lambda x: following.get(x, ()))
    )


def _next_decisions(
    subject: LayeredTests, edge: int, decided: frozenset[int], reads: frozenset[int]
) -> frozenset[int]:
    """The first edges of ``decided`` behind ``edge``.

    None unless each path comes to one, soon and before it reads, ends, or enters a loop.
    """
    values, layered = subject.values, subject.layered
    graph = layered.graph
    last = {*graph.exits, *(loop.header for loop in graph.loops), *subject.nodes.all}
    waiting = [(layered.edges[edge].dst, values.along(layered.edge(edge)))]
    visits, found = 0, set[int]()
    while waiting:
        node, state = waiting.pop()
        visits += 1
        if node in reads or layered.node(node) in last or visits > DECISION:
            return frozenset()
        for following in layered.successors[node]:
            after = values.along(layered.edge(following), state)
            if after is not None and following in decided:
                found.add(following)
            elif after is not None:
                waiting.append((layered.edges[following].dst, after))
    return frozenset(found)


def _before_any(layered: LayeredGraph, reads: frozenset[int]) -> tuple[frozenset[int], set[int]]:
    """The edges on paths from the entry that pass no node in ``reads``, and their end nodes.

    The end nodes are the members of ``reads`` that may execute first. With several layers the
    entry is the only one: values are more precise where executions behind a read are kept apart.
    """
    graph = layered.graph
    if layered.layers > 1:
        return frozenset(), {graph.entry}
    pending, seen = [graph.entry], {graph.entry}
    found: set[int] = set()
    while pending:
        node = pending.pop()
        if node in reads:
            continue
        for edge in graph.successors[node]:
            found.add(edge)
            target = graph.edges[edge].dst
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return frozenset(found), seen & reads
