"""Branches that a pending interrupt decides (rule 21).

A preemption point reads a device to test whether an interrupt is pending. While one is pending,
loads from the registers in the platform file give certain words (``quoll.preemption.predicate``),
until the interrupt is taken. Value analysis under that assumption finds the decided branches; no
form of code is recognised.

The assumption holds from the arrival of the interrupt on. After the arrival, the relevant suffix of
a path begins at the entry, or with the last test that did not see the interrupt: the *negative*
test, which read the device just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quoll.arm.insn import AccessKind, MemoryAccess
from quoll.errors import ControlFlowError
from quoll.graph.closure import closure
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.preemption.predicate import PendingCase, PendingPredicate
from quoll.processes.worker import worker
from quoll.value_analysis.value_results import ResumedValues, ValueResults

__all__ = ["PendingTests", "acknowledges", "find_pending_tests"]

WORD = 4  # bytes
DECISION = 64  # nodes between two decisions of a test, on all its paths
ARRAY = 4096  # bytes: the largest span of a store to device registers that counts as known


@dataclass(frozen=True, slots=True)
class PendingTests:
    """``reads``: nodes that read one of the registers.

    ``negative``: the edges that a test takes only while nothing is pending. ``dead``: all edges
    that cannot be taken while an interrupt is pending, from the entry or from the target of a
    negative edge.
    """

    reads: tuple[int, ...]
    negative: frozenset[int]
    dead: frozenset[int]


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

    None too if the code stores to a register, or makes a load that acknowledges: afterwards the
    registers may read as if there were no interrupt (rule 54). Raises ControlFlowError for a
    register in memory of the ELF.

    With ``parallel``, another process analyses all cases but the first. ``values`` then miss the
    loads whose address is known only in those cases; the result includes them.
    """
    _refuse_memory(values, (*predicate.registers, *predicate.loads))
    reads = values.reading(predicate.registers)
    if not reads or acknowledges(values, predicate):
        return None
    before, new = _before_any(values.graph, reads)
    first, *rest = predicate.cases(one for one in predicate.fields if values.reading(one.registers))
    case = _Case(values, predicate, first)
    others = _Cases(values, predicate, rest, None if parallel else case)
    seen, every = set[int](), frozenset(range(len(values.graph.edges)))  # no steps over subgraphs
    with worker(others.start, worth=parallel and bool(rest)) as other:
        while True:
            seen |= new
            other.submit(sorted(new))
            found = case.start(sorted(new)).joined(other.result())
            if found.acknowledges:
                return None
            dead = every & found.dead - before
            decided = (dead - values.dead_edges) & found.reached
            negative = _last_decisions(values, decided, found.reads)
            new = {values.graph.edges[e].dst for e in negative} - seen
            if not new:
                reads = found.reads
                return PendingTests(tuple(sorted(reads)), negative, dead)


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
    acknowledges: bool  # by a load whose address is known

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

    def __init__(
        self,
        values: ValueResults,
        predicate: PendingPredicate,
        case: PendingCase,
        like: _Case | None = None,
    ) -> None:
        self._values, self._predicate = values, predicate
        known = None if like is None else like.resumed
        self.resumed: ResumedValues = values.resumed(case, like=known)

    def start(self, nodes: Sequence[int]) -> _Found:
        """The result when control may also start at ``nodes``."""
        found, edges = self.resumed.start(nodes), self._values.graph.edges
        dead = frozenset(e for e in found.dead if e < len(edges))
        reached = frozenset(e for e in dead if found.states[edges[e].src] is not None)
        reads, loads = map(self._values.reading, (self._predicate.registers, self._predicate.loads))
        return _Found(dead, reached, reads, bool(loads))


class _Cases:
    """The cases of a predicate but the first; ``first``: its case if computed here before."""

    def __init__(
        self,
        values: ValueResults,
        predicate: PendingPredicate,
        cases: Sequence[PendingCase],
        first: _Case | None,
    ) -> None:
        self._cases: list[_Case] = []
        for case in cases:
            like = self._cases[-1] if self._cases else first
            self._cases.append(_Case(values, predicate, case, like))

    def start(self, nodes: Sequence[int]) -> _Found | None:
        """The joined result when control may also start at ``nodes``; None without a case."""
        found: _Found | None = None
        for case in self._cases:
            found = case.start(nodes).joined(found)
        return found


def _last_decisions(
    values: ValueResults, decided: frozenset[int], reads: frozenset[int]
) -> frozenset[int]:
    """The edges of ``decided`` behind which no other comes before a read, or the end of a path.

    A test may decide several times: it returns early that there is none, and its caller branches
    by that. Every path behind the first of these edges comes to the last one.
    """
    behind = {e: _next_decisions(values, e, decided, reads) for e in decided}
    following = {e: found for e, found in behind.items() if found}
    return frozenset(
        e
        for e in decided
        if e not in following or e in closure(following[e], lambda x: following.get(x, ()))
    )


def _next_decisions(
    values: ValueResults, edge: int, decided: frozenset[int], reads: frozenset[int]
) -> frozenset[int]:
    """The first edges of ``decided`` behind ``edge``.

    None unless each path comes to one, soon and before it reads, ends, or enters a loop.
    """
    graph = values.graph
    last = {*reads, *graph.exits, *(loop.header for loop in graph.loops)}
    waiting, visits, found = [(graph.edges[edge].dst, values.along(edge))], 0, set[int]()
    while waiting:
        node, state = waiting.pop()
        visits += 1
        if node in last or visits > DECISION:
            return frozenset()
        for following in graph.successors[node]:
            after = values.along(following, state)
            if after is not None and following in decided:
                found.add(following)
            elif after is not None:
                waiting.append((graph.edges[following].dst, after))
    return frozenset(found)


def _before_any(graph: Supergraph, reads: frozenset[int]) -> tuple[frozenset[int], set[int]]:
    """The edges on paths from the entry that pass no node in ``reads``, and their end nodes.

    The end nodes are the members of ``reads`` that may execute first.
    """
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


def acknowledges(values: ValueResults, predicate: PendingPredicate) -> bool:
    """Whether an access of known address, or to a known array, may acknowledge an interrupt."""
    stored = (*predicate.registers, *predicate.stores)
    hits = {
        AccessKind.STORE: stored,
        AccessKind.LOAD: tuple(predicate.loads),
        AccessKind.SWAP: (*stored, *predicate.loads),
    }
    return any(
        insn.memory is not None
        and (registers := hits.get(insn.memory.access, ()))
        and _may_hit(values.access(index, i), insn.memory, registers)
        for index, node in enumerate(values.graph.nodes)
        if values.reached(index)
        for i, insn in enumerate(node.block.insns)
    )


def _may_hit(addresses: ValueSet | None, access: MemoryAccess, registers: Sequence[int]) -> bool:
    if addresses is None or addresses.high - addresses.low >= ARRAY:
        return False
    length = access.size * access.count
    return any(
        meet(addresses, ValueSet(register - length + 1, register + WORD - 1, 1)) is not None
        for register in registers
    )
