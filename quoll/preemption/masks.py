"""The places where code may unmask interrupts (rule 33): a masked path ends there.

Taking an exception masks interrupts (ARM ARM B1.8.3). They stay masked up to the first ``cpsie i``,
or the first ``msr`` to the control field of the CPSR whose word may have bit I clear. The bit is
set if values prove it, or if the word was computed from a status word that was read earlier, while
interrupts were masked: ``mrs r0, cpsr; orr r1, r0, #128; msr cpsr_c, r1; ...; msr cpsr_c, r0``. An
exception return ends the path. Fast interrupts are not considered: an assumption says that none is
taken, because most exceptions leave them unmasked.
"""

from __future__ import annotations

from quoll.arm.immediates import immediate_operand
from quoll.arm.insn import PC, Insn, ShiftKind
from quoll.arm.operation import Operation
from quoll.arm.status import (
    INTERRUPT_MASK,
    StatusField,
    reads_current_status,
    state_change,
    status_written,
)
from quoll.inlining.supergraph import Supergraph
from quoll.intervals.strided_interval import ValueSet
from quoll.value_analysis.value_results import ValueResults

__all__ = ["may_unmask"]

FEW = 64  # members of a set of words that are analysed one by one


def may_unmask(values: ValueResults) -> tuple[int, ...]:
    """The instructions after which interrupts may be unmasked on a continuing path, in order."""
    graph = values.graph
    found: set[int] = set()
    words: list[tuple[int, int]] = []  # msr from a register: node and index in its block
    for n, node in enumerate(graph.nodes):
        exits = n in graph.exits and not graph.successors[n]
        insns = node.block.insns[:-1] if exits else node.block.insns
        for i, insn in enumerate(insns):
            if _enables(insn):
                found.add(insn.addr)
            elif StatusField.CONTROL in status_written(insn) and not _immediate_masks(insn):
                words.append((n, i))
    open_ = [(n, i) for n, i in words if not _known_masked(values, n, i)]
    masked = _masked_words(graph) if open_ else []
    for n, i in open_:
        insns = graph.nodes[n].block.insns
        held = masked[n]
        for insn in insns[:i]:
            held = _step(insn, held)
        if not (insns[i].sources and held >> insns[i].sources[0] & 1):
            found.add(insns[i].addr)
    return tuple(sorted(found))


def _enables(insn: Insn) -> bool:
    """Whether ``insn`` is a cpsie of interrupts."""
    change = state_change(insn)
    return change is not None and change.enables is True and change.interrupts


def _immediate_masks(insn: Insn) -> bool:
    value = immediate_operand(insn)
    return value is not None and bool(value & INTERRUPT_MASK)


def _known_masked(values: ValueResults, node: int, index: int) -> bool:
    insn = values.graph.nodes[node].block.insns[index]
    if not insn.sources:
        return False
    known: ValueSet = values.operand(node, index, insn.sources[0])
    return known.size <= FEW and all(word & INTERRUPT_MASK for word in known)


def _masked_words(graph: Supergraph) -> list[int]:
    """Per node, a bit mask of registers that surely hold a word with bit I set at its start."""
    every = (1 << PC) - 1
    held = [every] * len(graph.nodes)
    held[graph.entry] = 0
    pending = [graph.entry]
    seen = {graph.entry}
    while pending:
        node = pending.pop()
        after = held[node]
        for insn in graph.nodes[node].block.insns:
            after = _step(insn, after)
        for edge in graph.successors[node]:
            target = graph.edges[edge].dst
            joined = held[target] & after
            if joined != held[target] or target not in seen:
                held[target] = joined
                seen.add(target)
                pending.append(target)
    return held


def _step(insn: Insn, held: int) -> int:
    """The registers with such words after ``insn``."""
    written = sum(1 << r for r in insn.writes if r < PC)
    if not written:
        return held
    made = written if _makes(insn, held) else 0
    if insn.conditional:
        made &= held
    return held & ~written | made


def _makes(insn: Insn, held: int) -> bool:
    """Whether the word that ``insn`` writes surely has bit I set."""
    if insn.memory is not None or len(insn.writes) != 1:
        return False
    first = bool(insn.sources) and bool(held >> insn.sources[0] & 1)
    value = immediate_operand(insn)
    masks = value is not None and bool(value & INTERRUPT_MASK)
    plain = insn.shift is ShiftKind.NONE and value is None
    match insn.operation:
        case Operation.READ_STATUS:
            return reads_current_status(insn)
        case Operation.MOVE:
            return masks or (plain and first)
        case Operation.OR:
            return first or masks or (plain and bool(held >> insn.sources[-1] & 1))
        case Operation.BIT_CLEAR | Operation.EXCLUSIVE_OR:
            return first and value is not None and not masks
        case Operation.AND:
            return first and masks
    return False
