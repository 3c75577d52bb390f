"""Where code may unmask interrupts (rule 33): from there on a path is no masked one any more.

Taking an exception masks interrupts (ARM ARM B1.8.3). They stay masked up to the first ``cpsie i``,
or the first ``msr`` to the control field of the CPSR whose word may have bit I clear. The word has
it set where values say so, and where it was made from a status word that was read before, while
interrupts were masked: ``mrs r0, cpsr; orr r1, r0, #128; msr cpsr_c, r1; ...; msr cpsr_c, r0``. An
exception return ends the path. Fast interrupts are not considered: that none is taken is an
assumption, because most exceptions leave them as they were.
"""

from __future__ import annotations

from quoll.arm.decode import status_mask
from quoll.arm.insn import PC, Insn, Shift
from quoll.inlining.supergraph import Supergraph
from quoll.values.values import Values
from quoll.words.strided_interval import ValueSet

__all__ = ["may_unmask"]

I_BIT = 1 << 7
CONTROL = 1  # of the fields that an msr writes
FEW = 64  # members of a set of words that are looked at one by one


def may_unmask(values: Values) -> tuple[int, ...]:
    """The instructions after which interrupts may be unmasked and the path goes on, in order."""
    graph = values.graph
    found: set[int] = set()
    words: list[tuple[int, int]] = []  # msr with a word: node and number in its block
    for n, node in enumerate(graph.nodes):
        ends = n in graph.exits and not graph.successors[n]
        insns = node.block.insns[:-1] if ends else node.block.insns
        for i, insn in enumerate(insns):
            if _enables(insn):
                found.add(insn.addr)
            elif _writes_control(insn) and not _immediate_masks(insn):
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
    """Whether ``insn`` is a cpsie of interrupts (B9.3.2)."""
    if insn.mnemonic != "cps":
        return False
    word = insn.encoding
    if insn.thumb and insn.size == 2:
        return not word & 1 << 4 and bool(word & 1 << 1)
    enable = word >> 9 & 3 if insn.thumb else word >> 18 & 3
    interrupts = word & 1 << 6 if insn.thumb else word & I_BIT
    return enable == 2 and bool(interrupts)


def _writes_control(insn: Insn) -> bool:
    return insn.mnemonic == "msr" and bool(status_mask(insn.raw, insn.thumb) & CONTROL)


def _immediate_masks(insn: Insn) -> bool:
    value = _immediate(insn) if not insn.sources else None
    return value is not None and bool(value & I_BIT)


def _immediate(insn: Insn) -> int | None:
    """The immediate operand of data processing or msr; None if there is none, or it is rotated."""
    word = insn.encoding
    if not insn.thumb:  # A5.2.4
        value, rotation = word & 0xFF, word >> 7 & 30
        return (value >> rotation | value << 32 - rotation) if word >> 25 & 7 == 1 else None
    plain = insn.size == 4 and word >> 27 == 0b11110 and not word & 1 << 15
    return word & 0xFF if plain and not word & (1 << 26 | 7 << 12) else None


def _known_masked(values: Values, node: int, index: int) -> bool:
    insn = values.graph.nodes[node].block.insns[index]
    if not insn.sources:
        return False
    known: ValueSet = values.operand(node, index, insn.sources[0])
    return known.size <= FEW and all(word & I_BIT for word in known)


def _masked_words(graph: Supergraph) -> list[int]:
    """Per node the registers that surely hold a word with bit I set at its start, as bits."""
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
    """The registers that hold such words after ``insn``."""
    written = sum(1 << r for r in insn.writes if r < PC)
    if not written:
        return held
    made = written if _makes(insn, held) else 0
    if insn.conditional:
        made &= held
    return held & ~written | made


def _makes(insn: Insn, held: int) -> bool:
    """Whether the word that ``insn`` writes has bit I set."""
    if insn.memory is not None or len(insn.writes) != 1:
        return False
    if insn.mnemonic == "mrs":
        return _reads_cpsr(insn)
    first = bool(insn.sources) and bool(held >> insn.sources[0] & 1)
    value = _immediate(insn)
    plain = insn.shift is Shift.NONE and value is None
    if insn.mnemonic == "mov":
        return bool(value & I_BIT) if value is not None else plain and first
    if insn.mnemonic == "orr":
        if value is not None:
            return first or bool(value & I_BIT)
        return first or (plain and bool(held >> insn.sources[-1] & 1))
    if value is None:
        return False
    keeps = {"bic": not value & I_BIT, "eor": not value & I_BIT, "and": bool(value & I_BIT)}
    return first and keeps.get(insn.mnemonic, False)


def _reads_cpsr(insn: Insn) -> bool:
    """Not the SPSR, nor a register of another mode (B9.3.8, B9.3.9)."""
    word = insn.encoding
    elsewhere = (1 << 20 | 1 << 5) if insn.thumb else (1 << 22 | 1 << 9)
    return not word & elsewhere
