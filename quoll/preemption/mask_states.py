"""Whether interrupts are masked, at every node of a supergraph (rules 21 and 33).

Values follow bit I: ``cps``, ``msr`` to the control field of the CPSR, and the entry itself set it,
and a word that ``mrs`` has read has the bit as it was then, wherever the word was stored since. A
state is the set of possible masks: MASKED, UNMASKED or both.

    region: from an instruction that may mask where interrupts may be unmasked, or from an entry,
            to an instruction that surely unmasks, or to the end of the path

A longer region is safe, so a region ends only where interrupts are surely unmasked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import INTERRUPT_MASK, StatusField, state_change, status_written
from quoll.intervals.masked_words import hull
from quoll.value_analysis.value_results import ValueResults

__all__ = [
    "EITHER",
    "MASKED",
    "UNMASKED",
    "RegionStart",
    "left_at_exits",
    "mask_at",
    "possible_exits",
    "regions",
]

MASKED, UNMASKED = 1, 2
EITHER = MASKED | UNMASKED


@dataclass(frozen=True, slots=True)
class RegionStart:
    """The start of a region: ``node``, and the instruction in it; None for the entry.

    ``goes_on``: interrupts may still be masked behind the node.
    """

    node: int
    insn: Insn | None
    goes_on: bool


def mask_at(values: ValueResults, node: int) -> int:
    """The possible masks at the start of ``node``."""
    return _of_bit(values.masked(node))


def regions(values: ValueResults, *, at_entry: bool) -> tuple[list[RegionStart], frozenset[int]]:
    """The starts of regions, and the nodes in which a running region surely ends.

    ``at_entry``: a region starts at the entry, too.
    """
    graph = values.graph
    starts: list[RegionStart] = []
    exits: set[int] = set()
    for node in filter(values.reached, range(len(graph.nodes))):
        start = _start_in(values, node)
        if start is not None:
            starts.append(start)
        inside = _through(values, node, MASKED)
        if any(after == UNMASKED for insn, after in inside if insn):
            exits.add(node)
    if at_entry:
        goes_on = graph.entry not in exits
        starts = [start for start in starts if start.node != graph.entry or not goes_on]
        starts.insert(0, RegionStart(graph.entry, None, goes_on))
    return starts, frozenset(exits)


def _start_in(values: ValueResults, node: int) -> RegionStart | None:
    """The start of a region at the first instruction of ``node`` that may mask."""
    before, first = mask_at(values, node), None
    for insn, after in _through(values, node, before):
        if insn is not None and after & MASKED and before & UNMASKED and first is None:
            first = insn if _writes_masks(insn) else None
        before = after
    return None if first is None else RegionStart(node, first, bool(before & MASKED))


def possible_exits(values: ValueResults) -> tuple[int, ...]:
    """The nodes after which a path may end, halts included.

    Returns whose condition never holds are none of them.
    """
    graph = values.graph

    def possible(node: int) -> bool:
        block = graph.nodes[node].block
        return block.exits or bool(block.passes) or not block.returns or values.returns(node)

    return tuple(filter(possible, graph.exits))


def left_at_exits(values: ValueResults) -> int:
    """The possible masks where paths end and other code may run, which is not so at halts."""
    found = 0
    left = (node for node in possible_exits(values) if node not in values.graph.halts)
    for node in filter(values.reached, left):
        (*_, (_, after)) = _through(values, node, mask_at(values, node))
        found |= after
    return found


def _writes_masks(insn: Insn) -> bool:
    operations = (Operation.CHANGE_STATE, Operation.WRITE_STATUS)
    return insn.operation in operations or insn.flow is ControlFlow.EXCEPTION_RETURN


def _through(values: ValueResults, node: int, may: int) -> Iterator[tuple[Insn | None, int]]:
    """The initial masks, then the masks after each instruction that writes them."""
    yield None, may
    for index, insn in enumerate(values.graph.nodes[node].block.insns):
        written = _written(values, node, index, insn)
        if written is not None:
            may = written | (may if insn.conditional else 0)
            yield insn, may


def _written(values: ValueResults, node: int, index: int, insn: Insn) -> int | None:
    """The possible masks after ``insn`` if its condition holds; None if it preserves the masks."""
    if insn.flow is ControlFlow.EXCEPTION_RETURN:  # a followed one restores bit I (rule 49)
        return None if values.graph.nodes[node].block.exits else MASKED
    change = state_change(insn)
    if change is not None:
        if change.enables is None or not change.interrupts:
            return None
        return UNMASKED if change.enables else MASKED
    if StatusField.CONTROL not in status_written(insn):
        return None
    if not insn.sources:
        value = immediate_operand(insn)
        return EITHER if value is None else _of_bit(bool(value & INTERRUPT_MASK))
    bit = hull(values.field(node, index, insn.sources[0], INTERRUPT_MASK)).exact
    return _of_bit(None if bit is None else bool(bit))


def _of_bit(masked: bool | None) -> int:
    return EITHER if masked is None else MASKED if masked else UNMASKED
