"""Branches that a pending interrupt decides (rule 21).

A preemption point reads a device to test whether an interrupt is pending. While one is pending, at
least one of the registers in the platform file reads as nonzero, until the interrupt is taken.
Value analysis under that assumption finds the decided branches; no form of code is recognised.

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
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.processes.worker import worker
from quoll.value_analysis.value_results import ResumedValues, ValueResults

__all__ = ["PendingTests", "find_pending_tests"]

WORD = 4  # bytes
ARRAY = 4096  # bytes: the largest span of a store to device registers that counts as known
NON_ZERO = ValueSet(1, 2**32 - 1, 1)


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
    values: ValueResults, registers: Sequence[int], *, parallel: bool = False
) -> PendingTests | None:
    """The tests of ``values.graph``; None if no node reads a register.

    ``registers`` are addresses of words, at least one of which is nonzero while an interrupt is
    pending: each in turn is assumed to be nonzero, and an edge is dead if it is dead in all these
    cases. The assumption decides nothing before the first read, so values are recomputed from
    there. Only loads of a whole register are decided: a byte load, an access across its end and an
    access of unknown address may read any value (rule 36). Loads whose address is known only under
    the assumption are among ``reads``, because they decide too.

    None too if the code stores to a register: the store may acknowledge the interrupt, after which
    the register reads as 0. Raises ControlFlowError for a register in memory of the ELF.

    With ``parallel``, another process analyses all cases but the first. ``values`` then miss the
    loads whose address is known only in those cases; the result includes them.
    """
    for register in registers:
        if any(map(values.is_memory, range(register, register + WORD))):
            raise ControlFlowError(
                f"the pending register {register:#010x} of the platform is in a section of this "
                "ELF, whose words do not change by themselves",
                hint="name a register of the interrupt controller in 'pending', or none",
            )
    reads = values.reading(registers)
    if not reads or _acknowledges(values, registers):
        return None
    before, new = _before_any(values.graph, reads)
    case = _Case(values, registers, registers[0])
    others = _Cases(values, registers, None if parallel else case)
    seen, every = set[int](), frozenset(range(len(values.graph.edges)))  # no steps over subgraphs
    with worker(others.start, worth=parallel and len(registers) > 1) as other:
        while True:
            seen |= new
            other.submit(sorted(new))
            found = [case.start(sorted(new)), *other.result()]
            dead = frozenset.intersection(every, *(one.dead for one in found)) - before
            reached = frozenset[int]().union(*(one.reached for one in found))
            negative = (dead - values.dead_edges) & reached
            new = {values.graph.edges[e].dst for e in negative} - seen
            if not new:
                reads = frozenset[int]().union(*(one.reads for one in found))
                return PendingTests(tuple(sorted(reads)), negative, dead)


class _Found(NamedTuple):
    """The dead edges of a case, its dead edges with a reached source, and readers of registers."""

    dead: frozenset[int]
    reached: frozenset[int]
    reads: frozenset[int]


class _Case:
    """The case that one of ``registers`` is nonzero; ``like``: a similar case, computed before."""

    def __init__(
        self,
        values: ValueResults,
        registers: Sequence[int],
        register: int,
        like: _Case | None = None,
    ) -> None:
        self._values, self._registers = values, registers
        known = None if like is None else like.resumed
        self.resumed: ResumedValues = values.resumed({register: NON_ZERO}, like=known)

    def start(self, nodes: Sequence[int]) -> _Found:
        """The result when control may also start at ``nodes``."""
        found, edges = self.resumed.start(nodes), self._values.graph.edges
        dead = frozenset(e for e in found.dead if e < len(edges))
        reached = frozenset(e for e in dead if found.states[edges[e].src] is not None)
        return _Found(dead, reached, self._values.reading(self._registers))


class _Cases:
    """The cases of all registers but the first; ``first``: its case if computed here before."""

    def __init__(self, values: ValueResults, registers: Sequence[int], first: _Case | None) -> None:
        self._cases: list[_Case] = []
        for register in registers[1:]:
            like = self._cases[-1] if self._cases else first
            self._cases.append(_Case(values, registers, register, like))

    def start(self, nodes: Sequence[int]) -> list[_Found]:
        """The result of each case."""
        return [case.start(nodes) for case in self._cases]


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


def _acknowledges(values: ValueResults, registers: Sequence[int]) -> bool:
    """Whether a store of known address, or to a known array, may hit one of ``registers``."""
    return any(
        insn.memory is not None
        and insn.memory.access in (AccessKind.STORE, AccessKind.SWAP)
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
