"""Every assumption that a report can list: one table, one row a kind (rule 40).

A bound rests on assumptions, which are passed from stage to stage as text. Each text is made by
``AssumptionKind.text`` of a row of this table, so that ``kind_of`` finds its row again: what would
prove it, what would refute it, and which command checks it. docs/soundness.md shows the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "HANDED_OVER",
    "KEPT_PENDING",
    "KINDS",
    "OTHERS_FIRST",
    "S1",
    "S2",
    "S3",
    "TAKEN_AT_ONCE",
    "AssumptionKind",
    "kind_of",
]


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
    "S3: no two addresses outside the platform's memory map name the same word of live data",
    proved_by="[[memory]] entries of the platform file that cover the addresses",
    refuted_by="page tables that map one physical word at two such addresses",
    checked_by="nothing: recordings hold virtual addresses only",
)

KEPT_PENDING = AssumptionKind(
    "kept pending",
    "interrupts: one that is pending stays so to the end of the path under way: nothing on it "
    "acknowledges, disables or masks that interrupt",
    proved_by="the code between a test and an end of the path; where it stores to a register of "
    "'pending' the tests are not used",
    refuted_by="an execution in which a test sees the interrupt, and a later one does not",
    checked_by="nothing: recordings hold no values",
)
OTHERS_FIRST = AssumptionKind(
    "others first",
    "interrupts: between the arrival of one and its own path {others} others are handled at most, "
    "besides the one whose path was under way",
    proved_by="the least time between interrupts of the board's devices, and their priorities",
    refuted_by="more interrupts that are pending at once and taken before it (--interrupts)",
    checked_by="nothing: recordings hold no arrivals",
)
TAKEN_AT_ONCE = AssumptionKind(
    "taken at once",
    "interrupts: where they are unmasked, one that is pending is taken before the next instruction",
    proved_by="the architecture manual's priorities of exceptions, and the core's manual",
    refuted_by="an instruction or another exception between the end of a masked path and the "
    "interrupt's",
    checked_by="nothing: recordings hold no arrivals",
)
HANDED_OVER = AssumptionKind(
    "handed over",
    "interrupts: what runs after {exits} takes no longer than the interrupt path",
    proved_by="the code there, if it is the rest of the interrupt path behind its entry",
    refuted_by="a path from there on that takes longer than the interrupt path's bound",
    checked_by="wcet analyse --entry with what is called there",
)

KINDS: tuple[AssumptionKind, ...] = (
    S1,
    S2,
    S3,
    KEPT_PENDING,
    OTHERS_FIRST,
    TAKEN_AT_ONCE,
    HANDED_OVER,
)


def kind_of(text: str) -> AssumptionKind:
    """The row that ``text`` was made from. Raises KeyError if there is none: a defect."""
    for kind in KINDS:
        if kind.matches(text):
            return kind
    raise KeyError(text)
