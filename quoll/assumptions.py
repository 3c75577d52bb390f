"""Every assumption that a report can list: one table, one row a kind (rule 40).

A bound rests on assumptions, which are passed from stage to stage as text. Each text is made by
``AssumptionKind.text`` of a row of this table, so that ``kind_of`` finds its row again: what would
prove it, what would refute it, and which command checks it. docs/soundness.md shows the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["KINDS", "MEMORY_MAP", "S1", "S2", "S3", "S4", "AssumptionKind", "kind_of"]


@dataclass(frozen=True, slots=True)
class AssumptionKind:
    """A kind of assumption; ``template`` has fields in braces that ``text`` fills in."""

    name: str
    template: str
    proved_by: str
    refuted_by: str
    checked_by: str  # a command, or "nothing" with the reason

    def text(self, **fields: object) -> str:
        """The assumption as a report lists it."""
        return self.template.format(**fields)

    def matches(self, text: str) -> bool:
        """Whether ``text`` is of this kind."""
        pieces = re.split(r"\{\w+\}", self.template)
        return re.fullmatch(".+".join(map(re.escape, pieces)), text, re.DOTALL) is not None


S1 = AssumptionKind(
    "S1",
    "S1: a store of unknown address does not hit live stack frames",
    proved_by="nothing in the binary: it is the calling convention of correct compiled code",
    refuted_by="an execution in which a store of unknown address hits a live frame",
    checked_by="wcet check-facts, wcet replay",
)
S2 = AssumptionKind(
    "S2",
    "S2: a store of unknown address does not hit read-only memory",
    proved_by="page tables that map the region read-only for the kernel",
    refuted_by="an execution in which a store hits a read-only region",
    checked_by="wcet check-facts, wcet replay",
)
S3 = AssumptionKind(
    "S3",
    "S3: no two addresses whose translation the platform's memory map does not fix name the same "
    "word of live data",
    proved_by="fixed [[memory]] entries of the platform file, with 'physical', for the addresses",
    refuted_by="page tables that map one physical word at two such addresses",
    checked_by="nothing: recordings hold virtual addresses only",
)
S4 = AssumptionKind(
    "S4",
    "S4: a store to a known address does not hit live frames of a stack whose place is not known",
    proved_by="code that loads sp with a constant before the path uses the stack",
    refuted_by="an execution that begins with sp in memory that code names by its address",
    checked_by="wcet check-facts, wcet replay",
)

MEMORY_MAP = AssumptionKind(
    "memory map",
    "memory map: addresses name the memory that platform {name} says",
    proved_by="page tables that map the fixed [[memory]] entries as they say",
    refuted_by="a page table entry that maps one of these addresses elsewhere",
    checked_by="nothing: recordings hold virtual addresses only",
)

KINDS: tuple[AssumptionKind, ...] = (
    S1,
    S2,
    S3,
    S4,
    MEMORY_MAP,
)


def kind_of(text: str) -> AssumptionKind:
    """The row that ``text`` was made from. Raises KeyError if there is none: a defect."""
    for kind in KINDS:
        if kind.matches(text):
            return kind
    raise KeyError(text)
