"""References of one entry, weighed by how often its worst path makes them.

Data references are told apart by what is known of their address: one line, within 4 KiB, a region
that facts name, unknown but followed (a hit by rule 13), unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cache.reference import Classification, Hit, Kind, Reference
from pipeline.charge import due_cycles
from pipeline.timing import MemoryLatencies
from quoll.arm.insn import Insn
from quoll.facts.regions import Regions
from quoll.inlining.supergraph import Supergraph

__all__ = [
    "SHARES",
    "Weighed",
    "address_kind",
    "competing",
    "costliest",
    "known_line",
    "pressure",
    "weighed",
]

PAGE = 4096
SHARES = ("exact line", "within 4 KiB", "named region", "symbolic hit", "unknown")


@dataclass(frozen=True, slots=True)
class Weighed:
    """A reference in one context: executions on the worst path, and cycles charged for all."""

    node: int
    insn: Insn
    reference: Reference
    executions: int
    cycles: int


def weighed(
    graph: Supergraph, classes: Classification, counts: Sequence[int], memory: MemoryLatencies
) -> Iterator[Weighed]:
    """The references of nodes with a count; those past transfers are charged on edges."""
    for node, count in enumerate(counts):
        if not count:
            continue
        insns = graph.nodes[node].block.insns
        for reference in classes.references[node]:
            cycles = due_cycles(reference, memory)
            yield Weighed(node, insns[reference.insn], reference, count, count * cycles)


def address_kind(reference: Reference, regions: Regions, line_bytes: int) -> str:
    """Which of ``SHARES`` a data reference is."""
    low, high = reference.low, reference.high
    if low is not None and high is not None:
        if low // line_bytes == high // line_bytes:
            return "exact line"
        if high - low < PAGE:
            return "within 4 KiB"
    if reference.symbolic and reference.l1 is Hit.AH:
        return "symbolic hit"
    if low is not None and high is not None and regions.named(low, high):
        return "named region"
    return "unknown"


def costliest(references: Iterator[Weighed] | Sequence[Weighed], most: int) -> list[list[Weighed]]:
    """The instructions whose references cost most, each with its references in all contexts."""
    by_insn: dict[tuple[int, Kind], list[Weighed]] = {}
    for found in references:
        by_insn.setdefault((found.insn.addr, found.reference.kind), []).append(found)
    ranked = sorted(by_insn.values(), key=lambda found: -sum(w.cycles for w in found))
    return [found for found in ranked[:most] if sum(w.cycles for w in found)]


def known_line(reference: Reference, line_bytes: int) -> int | None:
    """The line of a cached reference of known address."""
    low, high = reference.low, reference.high
    if low is None or high is None or not reference.cacheable:
        return None
    return low // line_bytes if low // line_bytes == high // line_bytes else None


def competing(
    classes: Classification, kinds: Sequence[Kind], sets: int, line_bytes: int
) -> dict[int, set[int]]:
    """The different lines of known address that are referred to, by set."""
    lines: dict[int, set[int]] = {}
    every = (*classes.references, *classes.prefetches, *classes.leaving.values())
    for reference in (r for references in every for r in references if r.kind in kinds):
        line = known_line(reference, line_bytes)
        if line is not None:
            lines.setdefault(line % sets, set()).add(line)
    return lines


def pressure(
    classes: Classification, kinds: Sequence[Kind], sets: int, line_bytes: int
) -> Counter[int]:
    """How many sets have how many different lines of known address competing in them."""
    lines = competing(classes, kinds, sets, line_bytes)
    found = Counter(map(len, lines.values()))
    found[0] = sets - len(lines)
    return found
