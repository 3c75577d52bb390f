"""Branches that a pending interrupt decides (rule 21).

A preemption point reads a device to learn whether an interrupt is pending. While one is, at least
one of the registers that the platform names reads as non-zero, until the interrupt is taken. Value
analysis under that assumption tells which branches are then decided; nothing is recognised by the
form of the code.

The assumption holds from the arrival of the interrupt on. The relevant suffix of a path after the
arrival begins at the entry, or with the last test that did not see it: the
*negative* test, which read the device just before.
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
ARRAY = 4096  # bytes that a store to an array of device registers may span; more is not known
NON_ZERO = ValueSet(1, 2**32 - 1, 1)


@dataclass(frozen=True, slots=True)
class PendingTests:
    """``reads``: nodes that read one of the registers. ``negative``: the edges that a test takes
    only while nothing is pending. ``dead``: all edges that cannot be taken while an interrupt is
    pending, from the entry or from where a negative edge leads to.
    """

    reads: tuple[int, ...]
    negative: frozenset[int]
    dead: frozenset[int]


def find_pending_tests(
    values: ValueResults, registers: Sequence[int], *, parallel: bool = False
) -> PendingTests | None:
    """The tests of ``values.graph``; None if nothing in it reads a register.

    ``registers`` are addresses of words, of which at least one is not 0 while an interrupt is
    pending: each in turn is assumed to be it, and what is dead in all these cases is dead.
    The assumption decides nothing before the first read, so that is where values are computed
    again from. It decides by loads of a whole register only: nothing is known of what a byte or an
    access across its end reads, nor of one whose address is not known (rule 36). Loads whose
    address is known under the assumption only are among ``reads``, as they decide too.

    None too if the code stores to a register: it may acknowledge the interrupt, whereupon the
    register reads as 0. Raises ControlFlowError for a register in memory of the ELF.

    If ``parallel``, another process looks at all cases but one. Then ``values`` do not learn of
    loads whose address is known in those only; what is returned does.
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
    seen, every = set[int](), frozenset(range(len(values.graph.edges)))  # no steps over parts
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
    """The dead edges of a case, those of them that control comes to, and who reads a register."""

    dead: frozenset[int]
    reached: frozenset[int]
    reads: frozenset[int]


class _Case:
    """One of ``registers`` is not 0. ``like``: another such case, done before."""

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
        """What holds when control may also start at ``nodes``."""
        found, edges = self.resumed.start(nodes), self._values.graph.edges
        dead = frozenset(e for e in found.dead if e < len(edges))
        reached = frozenset(e for e in dead if found.states[edges[e].src] is not None)
        return _Found(dead, reached, self._values.reading(self._registers))


class _Cases:
    """The cases of all registers but the first, of which ``first`` is done before, if it is."""

    def __init__(self, values: ValueResults, registers: Sequence[int], first: _Case | None) -> None:
        self._cases: list[_Case] = []
        for register in registers[1:]:
            like = self._cases[-1] if self._cases else first
            self._cases.append(_Case(values, registers, register, like))

    def start(self, nodes: Sequence[int]) -> list[_Found]:
        """What each of them finds."""
        return [case.start(nodes) for case in self._cases]


def _before_any(graph: Supergraph, reads: frozenset[int]) -> tuple[frozenset[int], set[int]]:
    """The edges on paths from the entry that pass none of the nodes ``reads``, and where they end.

    That is at those of ``reads`` which may be the first.
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
    """Whether a store may hit one of ``registers``, of those to known addresses or arrays there."""
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
