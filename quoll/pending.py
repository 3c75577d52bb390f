"""What an interrupt that is pending decides (rule 21).

A preemption point reads a device to learn whether an interrupt is pending. While one is, at least
one of the registers that the platform names reads as non-zero, until the interrupt is taken. Value
analysis under that assumption tells which branches are then decided; nothing is recognised by the
form of the code.

The assumption holds from the arrival of the interrupt on. Of a path on which the interrupt has
arrived, the part that matters begins at the entry, or with the last test that did not see it: the
*negative* test, which read the device just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.fixpoint import Fixpoint
from quoll.state import State
from quoll.supergraph import Supergraph
from quoll.values import Resumed, Values
from quoll.valueset import ValueSet

__all__ = ["PendingTests", "find_pending_tests"]

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


def find_pending_tests(values: Values, registers: Sequence[int]) -> PendingTests | None:
    """The tests of ``values.graph``; None if nothing in it reads a register.

    ``registers`` are addresses of words, of which at least one is not 0 while an interrupt is
    pending: each in turn is assumed to be it, and what is dead in all these cases is dead.
    The assumption decides nothing before the first read, so that is where values are computed
    again from.
    """
    reads = tuple(_reads(values, frozenset(registers)))
    if not reads:
        return None
    cases: list[Resumed] = []
    for register in registers:
        cases.append(values.resumed({register: NON_ZERO}, like=cases[-1] if cases else None))
    every = frozenset(range(len(values.graph.edges)))  # steps over parts are none of these
    before, first = _before_any(values.graph, frozenset(reads))
    seen: set[int] = set()
    new = first
    while True:
        found = [case.start(sorted(new)) for case in cases]
        seen |= new
        dead = frozenset.intersection(every, *(case.dead for case in found)) - before
        negative = frozenset(e for e in dead - values.dead_edges if _decided(values, found, e))
        new = {values.graph.edges[e].dst for e in negative} - seen
        if not new:
            return PendingTests(reads, negative, dead)


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


def _reads(values: Values, registers: frozenset[int]) -> list[int]:
    graph = values.graph
    return [
        index
        for index, node in enumerate(graph.nodes)
        if values.reached(index)
        and any(
            insn.memory is not None and _within(values.access(index, i), registers)
            for i, insn in enumerate(node.block.insns)
        )
    ]


def _within(addresses: ValueSet | None, registers: frozenset[int]) -> bool:
    return addresses is not None and addresses.exact in registers


def _decided(values: Values, cases: Sequence[Fixpoint[State]], edge: int) -> bool:
    """Whether the source of ``edge`` is reached while an interrupt is pending."""
    source = values.graph.edges[edge].src
    return any(case.states[source] is not None for case in cases)
