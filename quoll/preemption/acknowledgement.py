"""Accesses that may acknowledge a pending interrupt, and loads whose word is never read (rule 54).

A store to a register of the controller may acknowledge, disable or mask; a load of one that
acknowledges gives a word that no later load need give again. A node is said to be *last* if such
an access is the last one of its block to the controller: the others still see the interrupt. It
is said to *withdraw* if it only disables or masks lines: the program serves no interrupt by that
unless a test has shown it one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from quoll.arm.insn import AccessKind, Condition, MemoryAccess
from quoll.intervals.strided_interval import ValueSet, meet
from quoll.preemption.predicate import PendingPredicate
from quoll.value_analysis.value_results import ValueResults

__all__ = ["AcknowledgingNodes", "acknowledging_first", "acknowledging_nodes", "unread_loads"]

WORD = 4  # bytes
ARRAY = 4096  # bytes: the largest span of an access to device registers that counts as known


class _Effect(IntEnum):
    """The effect of an access on a pending interrupt, the weakest first."""

    NONE = 0
    WITHDRAWS = 1
    ACKNOWLEDGES = 2


@dataclass(frozen=True, slots=True)
class AcknowledgingNodes:
    """The nodes with an access that may acknowledge: ``last``, as above, and ``others``.

    ``withdrawing``: those of both that access nothing of the controller but registers that disable
    or mask lines.
    """

    last: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    withdrawing: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """Both."""
        return self.last | self.others


def acknowledging_nodes(values: ValueResults, predicate: PendingPredicate) -> AcknowledgingNodes:
    """The nodes with an access of known address, or to a known array, that may acknowledge."""
    last, others, withdrawing = set[int](), set[int](), set[int]()
    hits = _hits(predicate)
    for node in range(len(values.graph.nodes)):
        accesses = list(_accesses(values, node, hits)) if values.reached(node) else []
        first = next((i for i, (_, effect) in enumerate(accesses) if effect), None)
        if first is None:
            continue
        memory = values.graph.nodes[node].block.insns[accesses[first][0]].memory
        assert memory is not None
        loads = memory.access is not AccessKind.STORE
        single = not loads or (memory.access is AccessKind.LOAD and memory.count == 1)
        (last if single and first == len(accesses) - 1 else others).add(node)
        if all(effect is _Effect.WITHDRAWS for _, effect in accesses):
            withdrawing.add(node)
    return AcknowledgingNodes(frozenset(last), frozenset(others), frozenset(withdrawing))


def acknowledging_first(values: ValueResults, node: int, predicate: PendingPredicate) -> bool:
    """Whether no access of ``node`` that may acknowledge comes behind another to the controller."""
    found = [effect for _, effect in _accesses(values, node, _hits(predicate))]
    return not any(found[1:])


def unread_loads(values: ValueResults, predicate: PendingPredicate) -> list[tuple[int, int]]:
    """The loads that acknowledge, and whose word the program never reads: node and instruction."""
    hits = _hits(predicate)
    return [
        (node, index)
        for node in range(len(values.graph.nodes))
        if values.reached(node)
        for index, effect in _accesses(values, node, hits)
        if effect and _drops(values, node, index)
    ]


# By the kind of an access, the registers to which one has each effect.
Hits = Mapping[AccessKind, tuple[frozenset[int], ...]]


def _hits(predicate: PendingPredicate) -> Hits:
    withdraw = predicate.disables
    stored = predicate.stores.union(predicate.registers) - withdraw
    read = predicate.loads.union(predicate.registers)
    swapped = predicate.loads | stored | withdraw
    return {
        AccessKind.STORE: (stored | withdraw, withdraw, stored),
        AccessKind.LOAD: (read, frozenset[int](), predicate.loads),
        AccessKind.SWAP: (read | swapped, frozenset[int](), swapped),
    }


def _accesses(values: ValueResults, node: int, hits: Hits) -> Iterator[tuple[int, _Effect]]:
    """The accesses to the controller in the block: the instruction, and its effect."""
    for index, insn in enumerate(values.graph.nodes[node].block.insns):
        if insn.memory is None or insn.memory.access not in hits:
            continue
        where = values.access(node, index)
        effects = zip(_Effect, hits[insn.memory.access], strict=True)
        found = [effect for effect, hit in effects if _may_hit(where, insn.memory, hit)]
        if found:
            yield index, found[-1]


def _may_hit(addresses: ValueSet | None, access: MemoryAccess, registers: frozenset[int]) -> bool:
    if addresses is None or addresses.high - addresses.low >= ARRAY:
        return False
    length = access.size * access.count
    if not registers or addresses.high <= min(registers) - length:
        return False  # most accesses are to memory below the devices
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
