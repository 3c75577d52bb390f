"""Accesses that may acknowledge a pending interrupt, and loads whose word is never read (rule 54).

A store to a register of the controller may acknowledge, disable or mask; a load of one that
acknowledges gives a word that no later load need give again. A node is said to be *last* if such
an access is the last one of its block to the controller: the others still see the interrupt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quoll.arm.insn import AccessKind, Condition, MemoryAccess
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.preemption.predicate import PendingPredicate
from quoll.value_analysis.value_results import ValueResults

__all__ = ["AcknowledgingNodes", "acknowledging_first", "acknowledging_nodes", "unread_loads"]

WORD = 4  # bytes
ARRAY = 4096  # bytes: the largest span of an access to device registers that counts as known


@dataclass(frozen=True, slots=True)
class AcknowledgingNodes:
    """The nodes with an access that may acknowledge: ``last``, as above, and ``others``."""

    last: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Both."""
        return self.last | self.others


def acknowledging_nodes(values: ValueResults, predicate: PendingPredicate) -> AcknowledgingNodes:
    """The nodes with an access of known address, or to a known array, that may acknowledge."""
    last, others = set[int](), set[int]()
    for node in range(len(values.graph.nodes)):
        accesses = list(_accesses(values, node, predicate)) if values.reached(node) else []
        if not any(acknowledging for _, acknowledging in accesses):
            continue
        first = [acknowledging for _, acknowledging in accesses].index(True)
        index, _ = accesses[first]
        memory = values.graph.nodes[node].block.insns[index].memory
        assert memory is not None
        loads = memory.access is not AccessKind.STORE
        single = not loads or (memory.access is AccessKind.LOAD and memory.count == 1)
        (last if single and first == len(accesses) - 1 else others).add(node)
    return AcknowledgingNodes(frozenset(last), frozenset(others))


def acknowledging_first(values: ValueResults, node: int, predicate: PendingPredicate) -> bool:
    """Whether no access of ``node`` that may acknowledge comes behind another to the controller."""
    found = [acknowledging for _, acknowledging in _accesses(values, node, predicate)]
    return not any(found[1:])


def unread_loads(values: ValueResults, predicate: PendingPredicate) -> list[tuple[int, int]]:
    """The loads that acknowledge, and whose word the program never reads: node and instruction."""
    return [
        (node, index)
        for node in range(len(values.graph.nodes))
        if values.reached(node)
        for index, acknowledging in _accesses(values, node, predicate)
        if acknowledging and _drops(values, node, index)
    ]


def _accesses(
    values: ValueResults, node: int, predicate: PendingPredicate
) -> Iterator[tuple[int, bool]]:
    """The accesses to the controller in the block: the instruction, and if it may acknowledge."""
    stored = (*predicate.registers, *predicate.stores)
    read = (*predicate.registers, *predicate.loads)
    hits = {
        AccessKind.STORE: (stored, stored),
        AccessKind.LOAD: (read, tuple(predicate.loads)),
        AccessKind.SWAP: ((*stored, *read), (*stored, *predicate.loads)),
    }
    for index, insn in enumerate(values.graph.nodes[node].block.insns):
        if insn.memory is None or insn.memory.access not in hits:
            continue
        touched, acknowledging = hits[insn.memory.access]
        where = values.access(node, index)
        if _may_hit(where, insn.memory, touched):
            yield index, _may_hit(where, insn.memory, acknowledging)


def _may_hit(addresses: ValueSet | None, access: MemoryAccess, registers: Sequence[int]) -> bool:
    if addresses is None or addresses.high - addresses.low >= ARRAY:
        return False
    length = access.size * access.count
    return any(
        meet(addresses, ValueSet(register - length + 1, register + WORD - 1, 1)) is not None
        for register in registers
    )


def _drops(values: ValueResults, node: int, index: int) -> bool:
    """Whether the registers that a load writes are overwritten before they are read, anywhere."""
    graph, load = values.graph, values.graph.nodes[node].block.insns[index]
    assert load.memory is not None
    if load.memory.access is not AccessKind.LOAD:
        return False
    waiting = [(node, index + 1, frozenset(load.transfers))]
    seen = set[tuple[int, frozenset[int]]]()
    while waiting:
        at, first, registers = waiting.pop()
        for insn in graph.nodes[at].block.insns[first:]:
            if registers & insn.reads:
                return False
            if insn.cond is Condition.AL:
                registers -= insn.writes
        if registers and (at, registers) not in seen:
            seen.add((at, registers))
            waiting += [(graph.edges[e].dst, 0, registers) for e in graph.successors[at]]
    return True
