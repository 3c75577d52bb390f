"""Whether interrupts are masked, at every node of a supergraph (rules 21 and 33).

``cps``, ``msr`` to the control field of the CPSR, and the entry itself set bit I. The word of an
msr is a constant; or a word that ``mrs`` has read, which holds the mask at the time of the read,
wherever it was stored since; or such a word with the bit set or cleared just before. For any other
word both values are possible. A state is the set of possible masks: MASKED, UNMASKED or both.

    region: from an instruction that may mask where interrupts may be unmasked, or from an entry,
            to an instruction that surely unmasks, or to the end of the path

A longer region is safe, so a region ends only where interrupts are surely unmasked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import (
    INTERRUPT_MASK,
    StatusField,
    reads_current_status,
    state_change,
    status_written,
)
from quoll.value_analysis.value_results import ValueResults

__all__ = [
    "EITHER",
    "MASKED",
    "UNMASKED",
    "MaskState",
    "RegionStart",
    "left_at_exits",
    "mask_states",
    "regions",
]

MASKED, UNMASKED = 1, 2
EITHER = MASKED | UNMASKED
FEW = 64  # members of a set of words that are analysed one by one
OFFSET = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class MaskState:
    """The possible masks, and the masks in saved status words, by symbol."""

    may: int
    saved: Mapping[int, int]

    def join(self, other: MaskState) -> MaskState:
        """The masks possible in either state; a word that only one knows may hold any mask."""
        both = self.saved.keys() & other.saved.keys()
        return MaskState(self.may | other.may, {s: self.saved[s] | other.saved[s] for s in both})


@dataclass(frozen=True, slots=True)
class RegionStart:
    """The start of a region: ``node``, and the instruction in it; None for the entry.

    ``goes_on``: interrupts may still be masked behind the node.
    """

    node: int
    insn: Insn | None
    goes_on: bool


def mask_states(values: ValueResults, at_entry: int) -> list[MaskState | None]:
    """The state at the start of each node; None for an unreachable node."""
    graph = values.graph
    states: list[MaskState | None] = [None] * len(graph.nodes)
    states[graph.entry] = MaskState(at_entry, {})
    pending = [graph.entry]
    while pending:
        node = pending.pop()
        state = states[node]
        assert state is not None
        (*_, (_, after)) = _through(values, node, state)
        for edge in graph.successors[node]:
            arriving = _along(values, edge, after)
            target = graph.edges[edge].dst
            known = states[target]
            joined = arriving if known is None else known.join(arriving)
            if joined != known:
                states[target] = joined
                pending.append(target)
    return states


def regions(
    values: ValueResults, states: list[MaskState | None], at_entry: int
) -> tuple[list[RegionStart], frozenset[int]]:
    """The starts of regions, and the nodes in which a running region surely ends."""
    graph = values.graph
    starts: list[RegionStart] = []
    exits: set[int] = set()
    for node, state in enumerate(states):
        if state is None:
            continue
        before, first = state.may, None
        for insn, after in _through(values, node, state):
            if insn is not None and after.may & MASKED and before & UNMASKED and first is None:
                first = insn if _writes_masks(insn) else None
            before = after.may
        if first is not None:
            starts.append(RegionStart(node, first, bool(before & MASKED)))
        inside = MaskState(MASKED, state.saved)
        if any(after.may == UNMASKED for insn, after in _through(values, node, inside) if insn):
            exits.add(node)
    if at_entry & MASKED:
        state = states[graph.entry]
        assert state is not None
        goes_on = graph.entry not in exits
        starts = [start for start in starts if start.node != graph.entry or not goes_on]
        starts.insert(0, RegionStart(graph.entry, None, goes_on))
    return starts, frozenset(exits)


def left_at_exits(values: ValueResults, states: list[MaskState | None]) -> int:
    """The possible masks where paths end."""
    found = 0
    for node in values.graph.exits:
        state = states[node]
        if state is not None:
            (*_, (_, after)) = _through(values, node, state)
            found |= after.may
    return found


def _writes_masks(insn: Insn) -> bool:
    operations = (Operation.CHANGE_STATE, Operation.WRITE_STATUS)
    return insn.operation in operations or insn.flow is ControlFlow.EXCEPTION_RETURN


def _through(
    values: ValueResults, node: int, state: MaskState
) -> Iterator[tuple[Insn | None, MaskState]]:
    """The initial state, then the state after each instruction that accesses the masks."""
    yield None, state
    saved = dict(state.saved)
    may = state.may
    made: dict[int, int] = {}  # registers with a status word whose bit I was set or cleared here
    for index, insn in enumerate(values.graph.nodes[node].block.insns):
        if insn.operation is Operation.READ_STATUS and reads_current_status(insn):
            (register,) = insn.writes
            term = values.word(node, index + 1, register)
            if term is not None and not insn.conditional and term >> 32 and not term & OFFSET:
                saved[term >> 32] = may
            made.pop(register, None)
            yield insn, MaskState(may, saved)
            continue
        written = _written(values, node, index, insn, saved, made)
        if written is not None:
            may = written | (may if insn.conditional else 0)
            yield insn, MaskState(may, saved)
            continue
        for register in insn.writes:
            made.pop(register, None)
        bit = _made(insn)
        if bit is not None and len(insn.writes) == 1:
            made[next(iter(insn.writes))] = bit


def _written(
    values: ValueResults,
    node: int,
    index: int,
    insn: Insn,
    saved: Mapping[int, int],
    made: Mapping[int, int],
) -> int | None:
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
        return EITHER if value is None else _of_word(value)
    register = insn.sources[0]
    if register in made:
        return made[register]
    known = values.operand(node, index, register)
    if known.size <= FEW:
        return _union(_of_word(word) for word in known)
    term = values.word(node, index, register)
    if term is None or term & OFFSET:
        return EITHER
    return saved.get(term >> 32, EITHER)


def _made(insn: Insn) -> int | None:
    """The mask in the word that ``insn`` writes for any input: bit I set, or cleared."""
    value = immediate_operand(insn)
    if value is None or insn.memory is not None or insn.conditional:
        return None
    if insn.operation is Operation.OR and value & INTERRUPT_MASK:
        return MASKED
    if insn.operation is Operation.BIT_CLEAR and value & INTERRUPT_MASK:
        return UNMASKED
    return None


def _of_word(word: int) -> int:
    return MASKED if word & INTERRUPT_MASK else UNMASKED


def _union(bits: Iterator[int]) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found or EITHER


def _along(values: ValueResults, edge: int, state: MaskState) -> MaskState:
    """The state after ``edge``, along which symbols change."""
    if not state.saved:
        return state
    found = {}
    for symbol, term in values.aliases(edge).items():
        if not term & OFFSET and term >> 32 in state.saved:
            found[symbol] = state.saved[term >> 32]
    return MaskState(state.may, found)
