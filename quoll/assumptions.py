"""Every assumption that a report can list: one table, one row a kind (rule 40).

A bound rests on assumptions, which are passed from stage to stage as text. Each text is made by
``AssumptionKind.text`` of a row of this table, so that ``kind_of`` finds its row again: what would
prove it, what would refute it, and which command checks it. docs/soundness.md shows the table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "ABORTS",
    "ENDS",
    "FAST_INTERRUPTS",
    "FORCED_CORE",
    "KINDS",
    "MACHINE",
    "NOT_MASKED",
    "RETURNS_UNMASKED",
    "RUNS_ON",
    "S1",
    "S2",
    "S3",
    "TLB_REFILLED",
    "UNMASKED",
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

MACHINE = AssumptionKind(
    "machine",
    "{platform}: machine: the caches, the MMU and the memory system are as the platform file says "
    "when a path starts, and no store to a device changes that",
    proved_by="start-up code; that no instruction on a path writes a control register is proved, "
    "as such code is refused",
    refuted_by="a control register with another value at an entry",
    checked_by="nothing: the models of the emulated boards have no caches",
)
ABORTS = AssumptionKind(
    "aborts",
    "{platform}: aborts: no access and no fetch on a path is aborted, and no instruction on it is "
    "undefined",
    proved_by="page tables that map what the paths use",
    refuted_by="an execution that enters the abort or undefined vector from a path",
    checked_by="wcet replay: such an execution leaves its path",
)
FAST_INTERRUPTS = AssumptionKind(
    "fast-interrupts",
    "{platform}: fast interrupts: none is taken on a path; an exception does not mask them",
    proved_by="status words of user code that have bit F set, or a controller without FIQ",
    refuted_by="an execution that enters the FIQ vector from a path",
    checked_by="wcet replay: such an execution leaves its path",
)
NOT_MASKED = AssumptionKind(
    "not-masked",
    "{entry}: interrupts: masked when a path starts, or none is taken on it; {entry} is no "
    "exception of the platform, which would mask them",
    proved_by="all callers of the entry",
    refuted_by="an execution in which an interrupt is taken between entry and end",
    checked_by="wcet replay: such an execution leaves its path",
)
UNMASKED = AssumptionKind(
    "unmasked",
    "{entry}: interrupts: none is taken on a path after {place}, which may unmask them: no latency "
    "is given",
    proved_by="an end of paths there: path ends at PLACE",
    refuted_by="an execution in which an interrupt is taken between entry and end",
    checked_by="wcet replay: such an execution leaves its path",
)
RETURNS_UNMASKED = AssumptionKind(
    "returns-unmasked",
    "{entry}: ends: the exception return at {place} leaves the kernel, or unmasks interrupts",
    proved_by="the status word that it restores",
    refuted_by="an exception return to kernel code with interrupts masked",
    checked_by="nothing: recordings hold no status words",
)
ENDS = AssumptionKind(
    "ends",
    "ends: a path ends after the instruction at {place}",
    proved_by="nothing: it says which paths are asked for",
    refuted_by="masked code that goes on there",
    checked_by="nothing: what follows is not looked at",
)

TLB_REFILLED = AssumptionKind(
    "tlb-refilled",
    "{platform}: tlb: translations of the kernel that are invalidated at {place} are in the TLBs "
    "again when they are used",
    proved_by="translations of the kernel that are locked in the TLB; or nothing is assumed with "
    "--tlb last-page",
    refuted_by="a table walk for the kernel after that instruction",
    checked_by="wcet analyse --tlb last-page charges it",
)
RUNS_ON = AssumptionKind(
    "runs-on",
    "{platform}: processor: this binary runs on {core}; its build attributes ({said}) fit "
    "others too",
    proved_by="a Tag_CPU_name of this core alone, as assemblers write it",
    refuted_by="another processor on the board",
    checked_by="nothing: the processor is not in the binary",
)
FORCED_CORE = AssumptionKind(
    "forced-core",
    "{platform}: processor: this binary runs on {core} (--force-core), though {misfit}",
    proved_by="nothing: the build attributes contradict it",
    refuted_by="another processor on the board",
    checked_by="nothing: the processor is not in the binary",
)

KINDS: tuple[AssumptionKind, ...] = (
    S1,
    S2,
    S3,
    MACHINE,
    ABORTS,
    FAST_INTERRUPTS,
    NOT_MASKED,
    UNMASKED,
    RETURNS_UNMASKED,
    ENDS,
    TLB_REFILLED,
    RUNS_ON,
    FORCED_CORE,
)


def kind_of(text: str) -> AssumptionKind:
    """The row that ``text`` was made from. Raises KeyError if there is none: a defect."""
    for kind in KINDS:
        if kind.matches(text):
            return kind
    raise KeyError(text)
