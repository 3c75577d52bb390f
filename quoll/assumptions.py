"""Every assumption that a report can list: one table, one row a kind (rule 40).

A bound rests on assumptions, which are passed from stage to stage as text. Each text is made by
``AssumptionKind.text`` of a row of this table, so that ``kind_of`` finds its row again: what would
prove it, what would refute it, and which command checks it. docs/soundness.md shows the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "EXIT",
    "F1",
    "KINDS",
    "RETURN",
    "S1",
    "S2",
    "S3",
    "TARGETS",
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
F1 = AssumptionKind(
    "F1",
    "F1: a store into a stack frame, at an index that is not known or through an address that a "
    "function was handed, hits no saved register and no return address",
    proved_by="values in calling contexts: the report of an entry lists the returns that they "
    "leave open instead, unless contexts are shared",
    refuted_by="an execution in which such a store hits a saved register or a return address",
    checked_by="wcet analyse",
)
RETURN = AssumptionKind(
    "return",
    "{transfer} at {place} goes on where its function was called, although a store into the "
    "stack, at a place that is not known, may have hit the word that says where",
    proved_by="nothing: values in calling contexts do not know the word",
    refuted_by="an execution of the instruction that goes anywhere else",
    checked_by="wcet check-facts, wcet replay",
)
TARGETS = AssumptionKind(
    "targets",
    "{transfer} at {place} goes to the targets that were found by what calls leave alone in the "
    "registers and the frame of its function",
    proved_by="nothing: values in calling contexts do not know the word",
    refuted_by="an execution of the instruction that goes anywhere else",
    checked_by="wcet check-facts, wcet replay",
)
EXIT = AssumptionKind(
    "exit",
    "{transfer} at {place} returns from the exception that began the path: the path ends there",
    proved_by="nothing: the exits of the platform, or the fact that a path ends there, state it",
    refuted_by="an execution in which it resumes analysed code on behalf of the same path",
    checked_by="wcet check-facts",
)

KINDS: tuple[AssumptionKind, ...] = (
    S1,
    S2,
    S3,
    F1,
    RETURN,
    TARGETS,
    EXIT,
)


def kind_of(text: str) -> AssumptionKind:
    """The row that ``text`` was made from. Raises KeyError if there is none: a defect."""
    for kind in KINDS:
        if kind.matches(text):
            return kind
    raise KeyError(text)
