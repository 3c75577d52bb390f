"""Every assumption that a report can list: one table, one row a kind (rule 40).

A bound depends on assumptions. Stages pass them on as records: the name of a row, a value for each
field of its text, and the place of the fact that states it. Only the rows of this table make them.
A row names the proof of the assumption, its refutation, and the command that checks it;
docs/soundness.md shows the table. Stages compare kinds and sources; the text is made where it is
printed.

    str(S1.of())             "S1: a store of unknown address ..."
    LOCKED.of(cache="L1I", spans="0x0 to 0x1f").kind.refuted_by
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from string import Formatter
from typing import Protocol

__all__ = [
    "KINDS",
    "Assumption",
    "AssumptionKind",
    "if_they_hold",
    "of_platform",
    "stated",
    "table",
]


@dataclass(frozen=True, slots=True)
class AssumptionKind:
    """A row of the table: a kind of assumption, with the text that a report lists.

    ``template`` has the fields of an assumption in braces. A kind of fact has ``statement``, its
    form in facts files, and may have ``promises``: the text of further assumptions.
    """

    name: str
    template: str
    proved_by: str
    refuted_by: str
    checked_by: str  # a command, or "nothing" with the reason
    statement: str = ""
    promises: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the values that its text shows, without the source of a fact."""
        return _fields(self.template)

    @property
    def of_program(self) -> bool:
        """Whether executions of the program can contradict it, as a command then shows."""
        return "wcet " in self.checked_by

    def of(self, source: str = "", /, **values: str | int) -> Assumption:
        """An assumption of this kind, with a value for each of its fields."""
        assert values.keys() == self.fields, (self.name, *values)
        return Assumption(self.name, source, tuple(sorted(values.items())))


@cache
def _fields(template: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name) - {"source"}


@dataclass(frozen=True, slots=True, order=True)
class Assumption:
    """An assumption of a bound; ``str`` gives the text that reports list.

    ``name`` is the name of its kind; ``source`` is the place of the fact that states it, as
    FILE:LINE, or "" without a fact.
    """

    name: str
    source: str = ""
    values: tuple[tuple[str, str | int], ...] = ()  # values of the fields, sorted by name

    @property
    def kind(self) -> AssumptionKind:
        """Its row. Raises KeyError if the table has no row of that name: a defect."""
        return _BY_NAME[self.name]

    @property
    def claim(self) -> str:
        """Its text without the further promises of a fact."""
        return self.kind.template.format(source=self.source, **dict(self.values))

    def __str__(self) -> str:
        return self.claim + self.kind.promises

    def moved(self, sources: Mapping[str, str]) -> Assumption:
        """The same assumption, with the new place of its fact from ``sources``."""
        new = sources.get(self.source, self.source)
        return self if new == self.source else replace(self, source=new)


class _Fact(Protocol):
    """A line of a facts file."""

    @property
    def source(self) -> object: ...

    @property
    def assumption(self) -> AssumptionKind: ...

    def fields(self) -> Mapping[str, str | int]: ...


BOARD = "nothing: it is about the board, which no recording shows"
LEAVES = "wcet check-facts, wcet replay: an execution that goes where the graph has no edge"
JUDGED = "wcet check-facts: every invocation of every recorded execution"
VOUCHED = "nothing: whoever writes the fact vouches for it"

STANDARD = "; it preserves r4 to r11, sp, the mode and the registers of other modes"
UNCHANGED = "; it leaves masks, caches and translation as they were"


def _fact(
    name: str,
    statement: str,
    proved_by: str,
    refuted_by: str,
    checked_by: str,
    promises: str = "",
) -> AssumptionKind:
    """The row of a kind of fact."""
    template = f"fact: {{source}}: {statement}"
    return AssumptionKind(
        f"fact: {name}", template, proved_by, refuted_by, checked_by, statement, promises
    )


# Values and control flow.
S1 = AssumptionKind(
    "S1",
    "S1: a store of unknown address does not hit live stack frames",
    proved_by="nothing in the binary: compiled code does so if no memory but frames holds the "
    "address of a local variable",
    refuted_by="an execution in which a store of unknown address hits a live frame",
    checked_by=f"{LEAVES}, because a store changed its frame",
)
S2 = AssumptionKind(
    "S2",
    "S2: a store of unknown address does not hit read-only memory",
    proved_by="page tables that map the region read-only for the kernel",
    refuted_by="an execution in which a store hits a read-only region",
    checked_by="wcet check-facts: stores into regions that facts call read-only; and "
    "executions that leave the graph",
)
S3 = AssumptionKind(
    "S3",
    "S3: no two addresses whose translation the platform's memory map does not fix name the same "
    "word of live data",
    proved_by="fixed [[memory]] entries of the platform file, with 'physical', for the addresses",
    refuted_by="page tables that map one physical word at two such addresses",
    checked_by="nothing: recordings hold virtual addresses only",
)
F1 = AssumptionKind(
    "F1",
    "F1: a store into a stack frame, at a place that is not known or through an address that a "
    "function was handed, hits no saved register and no return address",
    proved_by="values in calling contexts: the report of an entry lists the returns that they "
    "leave open instead, unless contexts are merged",
    refuted_by="an execution in which such a store hits a saved register or a return address",
    checked_by=f"{LEAVES}, because a store changed its frame",
)
RETURN_IN_CONTEXT = AssumptionKind(
    "return in context",
    "return in its context: {insn} at {place} goes on where its function was called, although a "
    "store into the stack, at a place that is not known, may have hit the word that says where",
    proved_by="nothing: values in calling contexts do not know the word",
    refuted_by="an execution in which it goes elsewhere",
    checked_by=LEAVES,
)
TARGETS_IN_CONTEXT = AssumptionKind(
    "targets in context",
    "targets in their context: {insn} at {place} has the targets of extraction, by the registers "
    "and the frame that calls preserve",
    proved_by="nothing: values in calling contexts do not know the word",
    refuted_by="an execution in which it goes elsewhere",
    checked_by=LEAVES,
)
EXCEPTION_RETURN = AssumptionKind(
    "exception return",
    "exception return: {insn} at {place} ends the path",
    proved_by="the exits of the platform, or a fact: path must end at PLACE",
    refuted_by="an execution in which it resumes analysed code on behalf of the same path",
    checked_by=LEAVES,
)
HALTS = AssumptionKind(
    "halts",
    "halt: control that gets to {place} stays for ever in an endless loop that does nothing, at "
    "{loops}, so that its path ends there",
    proved_by="values that exclude the way there (the text is then not listed)",
    refuted_by="an execution that leaves the loop on behalf of the same path: an interrupt handler "
    "that changes where it returns",
    checked_by=LEAVES,
)
MASKED_HALT = AssumptionKind(
    "masked halt",
    "halt: no interrupt arrives on a path to {place}, where control stays for ever: interrupts may "
    "be masked there, and one that arrives would never be served",
    proved_by="values that exclude the way there, or by which interrupts are unmasked there (the "
    "text is then not listed)",
    refuted_by="an execution that gets there in which an interrupt has arrived, or arrives later",
    checked_by="nothing: recordings hold no arrivals",
)
ENTRY_MODE = AssumptionKind(
    "entry mode",
    "mode: {function} is called in Supervisor mode, in which it returns to its caller",
    proved_by="all callers of the function, as values follow them; of an entry, who calls it",
    refuted_by="a call of it in another mode, which has another sp and lr",
    checked_by=f"nothing but {LEAVES}",
)
VECTOR_MODE = AssumptionKind(
    "vector mode",
    "mode: {function} is entered by the exception of the vector at {vector}, in mode {mode}",
    proved_by="that neither Monitor nor Hyp mode takes the exception, and nothing else enters it",
    refuted_by="an execution that enters it in another mode, which has another sp and lr",
    checked_by="nothing: recordings have no modes",
)
RESTORES_MODE = AssumptionKind(
    "restores mode",
    "mode: the status words that {function} writes have the mode in which it runs",
    proved_by="values in calling contexts, where they know the words (the text is then not listed)",
    refuted_by="an execution of it that writes a word of another mode, which has another sp and lr",
    checked_by=f"nothing but {LEAVES}",
)
RETURN_BY_FORM = AssumptionKind(
    "return",
    "return by its form: {insn} at {place} returns to the caller and restores the callee-saved "
    "registers",
    proved_by="the values of the function, where they are known (the text is then not listed)",
    refuted_by="an execution in which it goes elsewhere, or a caller that finds r4 to r11 changed",
    checked_by=LEAVES,
)
TAIL_CALL_BY_FORM = AssumptionKind(
    "tail call",
    "tail call by its form: {insn} at {place} leaves the return address in lr",
    proved_by="the values of the function, where they are known (the text is then not listed)",
    refuted_by="an execution in which the function jumped to returns elsewhere",
    checked_by=LEAVES,
)
SPILLED_TABLE = AssumptionKind(
    "spilled table",
    "spilled table: {insn} at {place} jumps through the table at {table}, whose address nothing "
    "changes on the stack",
    proved_by="nothing in the binary: it is how compilers spill the address of a jump table",
    refuted_by="an execution that jumps elsewhere, because a call or a store to an array changed "
    "the word",
    checked_by=LEAVES,
)
STORED_FUNCTIONS = AssumptionKind(
    "stored functions",
    "stored functions: {insn} at {place} goes to a function that code stores into {object} by "
    "constants; no pointer but its own address leads there, and no null pointer is called",
    proved_by="values in calling contexts that know the word, as where the path stores it itself",
    refuted_by="an execution in which it goes elsewhere",
    checked_by=LEAVES,
)
SUMMARISED = AssumptionKind(
    "shared",
    "shared: {function} analysed once for all its calls: {cycles} cycles at most",
    proved_by="the analysis itself, from any caches, registers and pipeline; its assumptions are "
    "listed, too",
    refuted_by="an execution of the function that takes longer",
    checked_by="wcet replay",
)
PREEMPTIBLE = AssumptionKind(
    "preemptible",
    "preemptible: {function} analysed once for all its calls, with an interrupt that waits or "
    "arrives in it: {cycles} cycles at most",
    proved_by="the analysis itself, from any caches, registers and pipeline; its assumptions are "
    "listed, too",
    refuted_by="an execution of the function that takes longer with such an interrupt",
    checked_by="wcet replay",
)
# Facts: one row for each form.
TARGETS = _fact(
    "targets",
    "targets of {place} are {targets}",
    proved_by="nothing: values did not tell",
    refuted_by="an execution that goes from there to another target",
    checked_by="wcet check-facts",
)
CALLS_THROUGH = _fact(
    "calls",
    "calls at {places} go {where}",
    proved_by="nothing: the objects, or the indices, that choose the function are not known",
    refuted_by="an execution that calls another function from there",
    checked_by=LEAVES,
    promises="; these tables, and the vtables of the classes, have their loaded contents, and no "
    "null pointer is called",
)
NEVER_RETURNS = _fact(
    "never returns",
    "{function} never returns",
    proved_by="nothing: extraction did not find it to be so",
    refuted_by="an execution in which a call of it comes back",
    checked_by="wcet check-facts",
)
SWITCHES = _fact(
    "switches context",
    "{function} switches context",
    proved_by="nothing: the loaded word is unknown",
    refuted_by="an execution in which a call of it comes back with other registers, or in which "
    "the context that it loads goes on anywhere but behind such a call, or where an entry starts",
    checked_by="nothing: a recording ends with its path",
    promises=STANDARD + UNCHANGED,
)
RETURNS = _fact(
    "returns",
    "{place} returns to its caller",
    proved_by="nothing: values did not tell",
    refuted_by="an execution that goes elsewhere from there, or comes back with other registers",
    checked_by="wcet check-facts: where it goes",
    promises=STANDARD,
)
LOOP_FACT = AssumptionKind(
    "fact: loop",
    "loop bound by fact: {source}{evidence}",
    proved_by="wcet analyse, if a proof gives the same number or less (the fact is then labelled "
    "proved and not listed)",
    refuted_by="an execution with more iterations; the model of the loop, if it has no free inputs",
    checked_by=f"wcet loops, wcet analyse; {JUDGED}",
)
LIST = _fact(
    "list",
    "list at {place} has at most {most} elements",
    proved_by="nothing: the list is in memory without known contents",
    refuted_by="an execution with more iterations than are proved from the length",
    checked_by="wcet check-facts",
)
REGISTER = _fact(
    "register",
    "register r{register} at {place} is at most {most}",
    proved_by="nothing: values did not bound it",
    refuted_by="an execution in which the register holds more there",
    checked_by="wcet check-facts: where the instruction accesses memory through the register",
)
POINTER = _fact(
    "pointer",
    "{what} at {place} points into {region}",
    proved_by="nothing: values did not tell",
    refuted_by="an execution in which it points elsewhere",
    checked_by="wcet check-facts: where the instruction accesses memory through the register",
)
UNKNOWN_POINTER = _fact(
    "unknown addresses",
    "accesses of unknown address point into {region}",
    proved_by="nothing: values did not tell",
    refuted_by="an execution in which such an access lies elsewhere",
    checked_by="wcet check-facts",
)
REGION = _fact(
    "region",
    "region {name} from {low} to {high} is {kind}",
    proved_by="the page tables of the kernel",
    refuted_by="a store into a region that is read-only; page tables that say otherwise",
    checked_by="wcet check-facts: stores into read-only regions; no recording shows whether "
    "memory is cached, or its translation fixed",
)
OBJECT_REGION = _fact(
    "region of an object",
    "region {object} is {kind}",
    proved_by="the page tables of the kernel",
    refuted_by="as a region that is named by its addresses, which reports list instead",
    checked_by="wcet check-facts: stores into read-only regions",
)
INITIAL = _fact(
    "initial contents",
    "region {name} holds its initial contents at {entry}",
    proved_by="nothing in the binary: code that runs before the path may store there",
    refuted_by="a store there before the path starts",
    checked_by="wcet check-facts: stores there by executions that come before one of the entry in "
    "the same recording",
)
INVARIANT = _fact(
    "invariant",
    "invariant {name}: {predicate}",
    proved_by="wcet prove: it holds in the loaded image, and every entry preserves it",
    refuted_by="an execution of an entry that begins where it holds, and ends where it does not",
    checked_by="wcet prove; no recording has words of memory",
)
BEGINS_UNMASKED = _fact(
    "begins unmasked",
    "{function} begins unmasked",
    proved_by="all its callers; of an entry, who calls it",
    refuted_by="an execution that enters the function with interrupts masked",
    checked_by="wcet masked, wcet analyse: masks that values know at its calls; no recording has "
    "masks",
)
BRANCH = _fact(
    "branch",
    "branch at {place} is {way} taken{scope}",
    proved_by=VOUCHED,
    refuted_by="an execution that goes the other way",
    checked_by="wcet check-facts, wcet replay",
)
IGNORE_EDGE = _fact(
    "ignore edge",
    "ignore edge {start} -> {end}",
    proved_by=VOUCHED,
    refuted_by="an execution that goes from the one place to the other",
    checked_by="wcet check-facts, wcet replay",
)
IGNORE = _fact(
    "ignore",
    "ignore {place}",
    proved_by=VOUCHED,
    refuted_by="an execution that gets there",
    checked_by="wcet check-facts, wcet replay",
)
REQUIRE = _fact(
    "require",
    "require {place}",
    proved_by=VOUCHED,
    refuted_by="an execution that does not pass there",
    checked_by="wcet check-facts, wcet replay",
)
PATH_STARTS = _fact(
    "path starts",
    "path starts at {place}",
    proved_by="nothing: it defines the query",
    refuted_by="nothing: earlier code is not part of the result",
    checked_by="nothing: it defines the query",
)
PATH_EXITS = _fact(
    "path ends",
    "path {way} end at {place}",
    proved_by="nothing: it defines the query",
    refuted_by="nothing: later code is not part of the result",
    checked_by="nothing: it defines the query",
)
SUPERVISOR_CALLS = _fact(
    "supervisor calls",
    "every supervisor call takes at most {cycles}",
    proved_by=VOUCHED,
    refuted_by="an execution with more instructions between an svc and its successor than cycles",
    checked_by="wcet check-facts, wcet replay: the number of instructions",
    promises=STANDARD + UNCHANGED,
)
SUPERVISOR_ENTERS = _fact(
    "supervisor calls enter",
    "every supervisor call enters {function}",
    proved_by="the bound of the handler, by the analysis; nothing that it preserves the stated "
    "registers",
    refuted_by="an execution in which an svc goes elsewhere, or comes back with other registers",
    checked_by=LEAVES,
    promises=STANDARD + UNCHANGED,
)
REPLACED = _fact(
    "function",
    "function {function} takes at most {cycles}",
    proved_by=VOUCHED,
    refuted_by="an execution with more instructions in the function than the core issues in the "
    "cycles, or of which a caller finds registers or preserved memory changed",
    checked_by="wcet analyse: the fewest instructions of a call; wcet check-facts, wcet replay: "
    "the number of instructions",
    promises=STANDARD + UNCHANGED,
)
RECURSION = _fact(
    "recursion",
    "recursion of {function} at most {activations}",
    proved_by="wcet analyse, if a proof gives the same depth or less (the text is then not listed)",
    refuted_by="an execution with more activations at a time",
    checked_by="wcet check-facts, wcet replay",
)
CONFLICT = _fact(
    "conflict",
    "{a} conflicts with {b} in {function}",
    proved_by=VOUCHED,
    refuted_by="an execution in which both run in one invocation",
    checked_by=JUDGED,
)
CONSISTENT = _fact(
    "consistent",
    "{a} is consistent with {b} in {function}",
    proved_by=VOUCHED,
    refuted_by="an execution in which they run differently often in one invocation",
    checked_by=JUDGED,
)
COUNT = _fact(
    "count",
    "{place} executes at most {count}",
    proved_by="wcet analyse, if loop bounds alone imply it (the fact is then labelled proved)",
    refuted_by="an execution in which the place runs more often",
    checked_by=f"wcet analyse: the least count; {JUDGED}",
)
NEVER = _fact(
    "never executes",
    "{place} never executes{scope}",
    proved_by="wcet analyse, if loop bounds alone imply it (the fact is then labelled proved)",
    refuted_by="an execution in which the place runs",
    checked_by=JUDGED,
)
LINEAR = _fact(
    "linear",
    "{counts} {relation} {number}{scope}",
    proved_by=VOUCHED,
    refuted_by="an execution with counts that do not satisfy it",
    checked_by=JUDGED,
)

# The board, from its platform file.
PENDING = AssumptionKind(
    "pending",
    "platform {platform}: pending: an interrupt is pending: {predicate} from the start of the path "
    "on, or from just after the read with which it starts",
    proved_by="nothing: it selects the paths (rule 21)",
    refuted_by="nothing: paths without a pending interrupt end no latency",
    checked_by="nothing: it selects the paths",
)
CONTROLLER_DELAY = AssumptionKind(
    "controller delay",
    "platform {platform}: controller: the registers and the interrupt input of the processor show "
    "a line at most {cycles} cycles after its device asserts it",
    proved_by="the manual of the controller: its synchronisers, and how long it sorts lines",
    refuted_by="a test that sees no interrupt later than that",
    checked_by=BOARD,
)
TABLE_WALKS = AssumptionKind(
    "platform: tlb-walks",
    "platform {platform}: tlb-walks: a translation that is not of the page used last takes at "
    "most {refill} cycles and, if it is not locked, {reads} accesses to memory",
    proved_by="the manual of the core: the levels of its page tables",
    refuted_by="a page walk that takes longer",
    checked_by=BOARD,
)

WRONG_PATHS = AssumptionKind(
    "platform: wrong-path",
    "platform {platform}: wrong-path: a branch with a direct target sends fetch to that target or "
    "behind it, no other instruction is predicted, and no data is accessed before a branch is "
    "resolved",
    proved_by="nothing: the manual gives neither the tags of the predictor's entries nor the stage "
    "in which a data access begins",
    refuted_by="a line or a translation that only a wrong path from elsewhere could have loaded",
    checked_by=BOARD,
)
WRONG_RETURNS = AssumptionKind(
    "platform: wrong-path, returns",
    "platform {platform}: wrong-path: a branch with a direct target sends fetch to that target or "
    "behind it, a return to an address that the return stack predicts or behind it, no other "
    "instruction is predicted, and no data is accessed before a branch is resolved",
    proved_by=WRONG_PATHS.proved_by,
    refuted_by=WRONG_PATHS.refuted_by,
    checked_by=BOARD,
)
RETURN_STACK = AssumptionKind(
    "platform: return-stack",
    "platform {platform}: return-stack: an executed call has pushed its return address before the "
    "next return is predicted, and code that is not executed leaves the return stack as it was",
    proved_by="nothing: the manual says that the address comes from the Execute stage, not when "
    "the stack is popped; without it: branch.predictor = arm1136-any-returns",
    refuted_by="a return that is predicted wrong although its call is one of the last three",
    checked_by=BOARD,
)


def _board(key: str, proved_by: str, refuted_by: str) -> AssumptionKind:
    """The row of a key of ``[assumptions]`` in platform files."""
    return AssumptionKind(
        f"platform: {key}", f"platform {{platform}}: {key}: {{text}}", proved_by, refuted_by, BOARD
    )


TLB_RESIDENT = _board(
    "tlb",
    "locked entries of the TLB that map the kernel; else charge walks: --tlb last-page",
    "a page walk while the kernel runs",
)
OF_PLATFORM: tuple[AssumptionKind, ...] = (
    _board(
        "clock",
        "the set-up of the board's clocks, which is not part of the binary",
        "a clock that is lower, or changes, as by voltage scaling",
    ),
    _board(
        "memory",
        "a manual or a measurement of the memory controller",
        "an access that takes longer on the board",
    ),
    _board(
        "predictor",
        "code that leaves SCTLR.Z and ACTLR as the board has them",
        "a write to SCTLR or ACTLR that changes them",
    ),
    _board(
        "branches",
        "nothing: the manual says more; the paper assumes it",
        "the manual of the core",
    ),
    _board(
        "dual-issue",
        "the manual's pairing rules",
        "a pair that the rules allow and the core does not issue together",
    ),
    _board(
        "level-2",
        "code that sets up the level-2 cache and leaves it so",
        "code that locks lines, switches it off, or chooses another replacement",
    ),
    TLB_RESIDENT,
    _board(
        "aligned",
        "SCTLR.A = 1, by which an access that is not aligned aborts",
        "an access that is not aligned to its size",
    ),
    _board(
        "fetch-ahead",
        "the manual of the core: the size of its fetch buffers",
        "a fetch further beyond a transfer of control",
    ),
    _board(
        "outstanding",
        "the manual of the core: the sizes of its buffers",
        "an exception that is taken with more under way",
    ),
    _board(
        "entry",
        "nothing: the paper assumes it",
        "an exception that is taken with accesses under way",
    ),
    _board(
        "victims",
        "nothing: the paper assumes it",
        "a dirty line that is written back while an access waits",
    ),
    _board(
        "write-back",
        "the manual of the memory controller: a burst of one line",
        "a line that takes longer to write back",
    ),
    _board(
        "bus",
        "a system whose other masters are off or have their own memory",
        "a transfer of another master",
    ),
    _board(
        "devices",
        "the manual of the bus: wait states of its devices",
        "an access to a device that takes longer",
    ),
    _board(
        "physical-caches",
        "the page tables of the kernel",
        "page tables that map the kernel elsewhere, or not cached",
    ),
)
OF_ANOTHER_PLATFORM = AssumptionKind(
    "platform: another key",
    "platform {platform}: {key}: {text}",
    proved_by="the sources that the platform file names",
    refuted_by="a board that does otherwise",
    checked_by=BOARD,
)

# The caches.
NOTHING_KNOWN = AssumptionKind(
    "caches: contents",
    "caches: nothing is known of their contents at the entry, and every line may be dirty",
    proved_by="nothing needs to: it is the worst case",
    refuted_by="nothing",
    checked_by="nothing: it is the worst case",
)
EVICTION = AssumptionKind(
    "caches: eviction",
    "caches: replacement evicts a line only to make room in its own set",
    proved_by="the manual of the core",
    refuted_by="a cache that drops lines by itself, or another master that removes them",
    checked_by=BOARD,
)
LOCKED = AssumptionKind(
    "caches: locked",
    "caches: {cache} holds these addresses, locked, and nothing unlocks them: {spans}",
    proved_by="code that locks them before the first entry",
    refuted_by="an execution that unlocks or invalidates them",
    checked_by=BOARD,
)
LOCKED_AGAIN = AssumptionKind(
    "caches: locked again",
    "caches: locked lines of {cache} that the code at {places} may drop are locked again before "
    "the next entry",
    proved_by="code that locks them again, or operations on other lines only",
    refuted_by="an entry that is reached after their loss",
    checked_by=BOARD,
)
AT_ENTRY = AssumptionKind(
    "caches: at the entry",
    "caches: at the entry {cache} {state}; no recording shows caches, so none can refute this",
    proved_by="whoever says so in the platform file",
    refuted_by="an entry that is reached with other contents",
    checked_by=BOARD,
)

STAYS_PENDING = AssumptionKind(
    "stays pending",
    "interrupts: one that is pending stays so to the end of the path under way: nothing on it "
    "acknowledges, disables or masks that interrupt",
    proved_by="the code between a test and an end of the path; behind a store to a register of "
    "'pending' nothing is assumed",
    refuted_by="an execution in which a test sees the interrupt, and a later one does not",
    checked_by="nothing: recordings hold no values",
)
ACKNOWLEDGED_BY_LOAD = AssumptionKind(
    "acknowledged by a load",
    "interrupts: a load from a register in controller.loads of platform {platform} is the "
    "exception: behind it nothing is assumed about the controller, and its path handles the "
    "interrupt",
    proved_by="the code, which tests the word that the load gave; a word never read is refused",
    refuted_by="a path that makes such a load and does not handle the interrupt that it names",
    checked_by="nothing: recordings hold no values",
)
WITHDRAWN_BY_STORE = AssumptionKind(
    "withdrawn by a store",
    "interrupts: a store to a register in controller.disables of platform {platform}, before a "
    "test on the path has shown the interrupt, serves none: an interrupt that it disables or "
    "masks arrives anew when it is enabled again",
    proved_by="nothing: it says which moment counts as the arrival",
    refuted_by="a path that serves the interrupt without a test, and disables its line then",
    checked_by="nothing: recordings hold no values",
)
COUNTER_APART = AssumptionKind(
    "counter apart",
    "a store with more than one possible address does not hit the word at {address}, which counts "
    "the work between tests for interrupts",
    proved_by="nothing in the binary: no pointer and no array of the program leads to this word",
    refuted_by="an execution in which such a store hits the word",
    checked_by="nothing: no command compares recorded stores with it",
)
OTHERS_FIRST = AssumptionKind(
    "others first",
    "interrupts: between the arrival of one and its own path {others} others are handled at most, "
    "besides the one whose path was under way",
    proved_by="the least time between interrupts of the board's devices, and their priorities",
    refuted_by="more interrupts that are pending at once and taken before it (--interrupts)",
    checked_by="nothing: recordings hold no arrivals",
)
TAKEN_IMMEDIATELY = AssumptionKind(
    "taken at once",
    "interrupts: where they are unmasked, one that is pending is taken before the next instruction",
    proved_by="the architecture manual's priorities of exceptions, and the core's manual",
    refuted_by="an instruction or another exception between the end of a masked path and the "
    "interrupt's",
    checked_by="nothing: recordings hold no arrivals",
)
HANDED_OVER = AssumptionKind(
    "handed over",
    "interrupts: code after {exits} takes no longer than the interrupt path",
    proved_by="the code there, if it is the rest of the interrupt path behind its entry",
    refuted_by="a path from there on that takes longer than the interrupt path's bound",
    checked_by="wcet analyse --entry with the code called there",
)

AS_LOADED = AssumptionKind(
    "as loaded",
    "{entry}: memory as loaded: when a path starts, these addresses have their initial contents, "
    "and no stack at an unknown address reaches them: {spans}",
    proved_by="nothing in the binary: the loader, and all code that runs before the path",
    refuted_by="a store there before the path starts, or a stack that reaches there",
    checked_by="wcet check-facts, for stated regions: stores there by earlier executions",
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
    proved_by="page tables that map the memory of the paths",
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
    proved_by="an end of paths there: path must end at PLACE",
    refuted_by="an execution in which an interrupt is taken between entry and end",
    checked_by="wcet replay: such an execution leaves its path",
)
PRIVILEGED = AssumptionKind(
    "privileged",
    "mode: the status word that {insn} at {place} writes names a privileged mode, and the "
    "instruction set that runs",
    proved_by="a constant, or a word of mrs with bits set and cleared by constants in its block",
    refuted_by="an execution that goes on in User mode, where changes of mode have no effect",
    checked_by=f"nothing but {LEAVES}",
)
LITTLE_ENDIAN = AssumptionKind(
    "little-endian",
    "data: the status word that {insn} at {place} writes leaves bit E clear: data is little-endian",
    proved_by="a constant, or a word of mrs with bits set and cleared by constants in its block",
    refuted_by="an execution that goes on with bit E set",
    checked_by=f"nothing but {LEAVES}",
)
UNDISTURBED = AssumptionKind(
    "undisturbed",
    "{entry}: interrupts: handlers and threads that run while interrupts are unmasked preserve "
    "registers, stack and the words that the path reads, except words that the interrupt path of "
    "the binary stores to at known addresses",
    proved_by="handlers that save registers, and locks around shared words",
    refuted_by="a path that finds another word than it left, after it was unmasked",
    checked_by="nothing: recordings hold no interrupts on a path",
)
HANDLER_STORES = AssumptionKind(
    "handler stores",
    "{entry}: interrupts: stores of the binary's interrupt path, {stores}, whose addresses are not "
    "known, hit no word that the path reads",
    proved_by="values of the addresses: facts about their pointers, register rN at PLACE points "
    "into NAME",
    refuted_by="a handler that stores to a word of a path that it interrupts",
    checked_by="nothing: recordings hold no interrupts on a path",
)
BETWEEN_ENTRIES = AssumptionKind(
    "between entries",
    "invariants: between the end of a path and the next entry nothing writes their words: no user "
    "program, no thread, no handler of fast interrupts, no other master of the bus",
    proved_by="page tables that hide the words from user programs; the code of the others",
    refuted_by="a store there between two entries",
    checked_by="nothing: recordings hold no words of memory, and no other masters",
)
FIRST_ENTRY = AssumptionKind(
    "first entry",
    "invariant {name}: it holds when the first exception is taken; in the loaded image it {holds}",
    proved_by="start-up code, which runs before",
    refuted_by="start-up code that leaves other words there",
    checked_by="nothing: start-up code is no entry of the platform",
)
BEHIND_END = AssumptionKind(
    "behind an end",
    "invariants: code behind {place}, where paths end, writes none of their words before the next "
    "entry",
    proved_by="the code there, which is not analysed",
    refuted_by="a store there by that code",
    checked_by="nothing: later code is not analysed",
)
STILL_MASKED = AssumptionKind(
    "still-masked",
    "{entry}: interrupts: unmasked where its path ends after {exits}; other code that runs there "
    "first is not included",
    proved_by="an entry that begins there, whose longest region is added by hand",
    refuted_by="masked code that goes on there: another thread, or the rest of a handler",
    checked_by="wcet masked --entry with the code that runs there",
)
OTHER_CALLS = AssumptionKind(
    "other-calls",
    "calls: functions called while interrupts are unmasked preserve r4 to r11 and sp, and leave "
    "interrupts unmasked",
    proved_by="the regions of the callees, analysed as well: regions without a bound are listed",
    refuted_by="an execution in which a call comes back masked, or with another r4 to r11 or sp",
    checked_by="nothing: recordings hold no masks",
)
RETURNS_UNMASKED = AssumptionKind(
    "returns-unmasked",
    "{entry}: ends: the exception return at {place} leaves the kernel, or unmasks interrupts",
    proved_by="the status word that it restores",
    refuted_by="an exception return to kernel code with interrupts masked",
    checked_by="nothing: recordings hold no status words",
)
EXITS = AssumptionKind(
    "ends",
    "ends: a path ends after the instruction at {place}",
    proved_by="nothing: it selects the paths",
    refuted_by="masked code that goes on there",
    checked_by="nothing: later code is not analysed",
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
CORE_HAS = AssumptionKind(
    "core-has",
    "{platform}: processor: {core} has {extension}, which {insn} at {place} needs",
    proved_by="the revision of the chip, or its manual",
    refuted_by="a chip that takes the undefined vector there",
    checked_by="nothing: the processor is not in the binary",
)
FORCED_CORE = AssumptionKind(
    "forced-core",
    "{platform}: processor: this binary runs on {core} (--force-core), though {misfit}",
    proved_by="nothing: the build attributes contradict it",
    refuted_by="another processor on the board",
    checked_by="nothing: the processor is not in the binary",
)
S4 = AssumptionKind(
    "S4",
    "S4: a store to a known address, or into a known section, does not hit live frames of a stack "
    "whose place is not known, nor a store into these frames a word at a known address",
    proved_by="code that loads sp with a constant before the path uses the stack",
    refuted_by="an execution that begins with sp in memory that code names by its address",
    checked_by="wcet check-facts, wcet replay",
)
S5 = AssumptionKind(
    "S5",
    "S5: no address within a mebibyte of a stack whose place is not known is 0",
    proved_by="code that loads sp with a constant before the path uses the stack",
    refuted_by="an execution that begins with sp near address 0",
    checked_by=f"nothing but {LEAVES}",
)
S6 = AssumptionKind(
    "S6",
    "S6: a change of translations leaves the frames of a stack whose place is not known where "
    "they are",
    proved_by="code that loads sp with a constant before the path uses the stack, in memory whose "
    "translation the platform fixes",
    refuted_by="page tables that map the stack elsewhere behind such an instruction",
    checked_by=f"nothing but {LEAVES}",
)
S7 = AssumptionKind(
    "S7",
    "S7: a word that a path reads through a pointer is in none of its stacks, and only stores of "
    "the path change it during the path: it is in no device, and its translation stays",
    proved_by="nothing in the binary: it is the calling convention of correct compiled code, on a "
    "system whose other masters write elsewhere; facts about the pointer, register rN at PLACE "
    "points into NAME, exclude devices and translations that change",
    refuted_by="a pointer into a stack that is not computed from its address, or, between two "
    "reads of a word, a device or another master that changes it, or a translation that does",
    checked_by=f"{LEAVES}, because the second word was another one",
)
S8 = AssumptionKind(
    "S8",
    "S8: a store of unknown address does not hit {object}, an object of its own: no word of the "
    "image holds its address, and code uses it only to load from the object and to store to it",
    proved_by="nothing in the binary: it is so for C, where no pointer leads to an object whose "
    "address is not taken, and no pointer into one object leads to another",
    refuted_by="an execution in which such a store hits the object: its address was computed from "
    "other numbers, or a pointer left its object",
    checked_by="wcet check-facts, wcet replay: a store to the object by an instruction that does "
    "not store to it by its own address, in any execution of a recording; a recording has no code "
    "before the first exception, no program outside of the kernel, and no executions that "
    "variants=N leaves out, and a text file of addresses has no stores",
)
MAPPED_AS_BEFORE = AssumptionKind(
    "mapped as before",
    "translations: {insn} at {place} leaves all addresses that the path uses their memory; no "
    "platform says which translations are fixed",
    proved_by="a platform whose [[memory]] is fixed there",
    refuted_by="page tables that map one of these addresses elsewhere behind it",
    checked_by="nothing: recordings hold virtual addresses only",
)
CACHE_REGISTERS = AssumptionKind(
    "cache registers",
    "cache registers: CLIDR reads as caches.clidr of the platform file; CCSIDR reads as the sizes "
    "of the cache that the last write of CSSELR selects, even without an isb between; an interrupt "
    "between the write and the read leaves CSSELR as it was",
    proved_by="the manual of the core, and the sizes that the chip's maker chose",
    refuted_by="a core whose registers read other numbers of sets and ways, or the numbers of the "
    "cache selected before, or a handler that selects another cache",
    checked_by="nothing: recordings hold no registers of the system",
)

_ROWS = [row for row in globals().values() if isinstance(row, AssumptionKind)]
KINDS = tuple(dict.fromkeys((*_ROWS, *OF_PLATFORM)))
_BY_NAME = {kind.name: kind for kind in KINDS}


def stated(fact: _Fact) -> Assumption:
    """The assumption of a fact, with its place."""
    return fact.assumption.of(str(fact.source), **fact.fields())


def if_they_hold(hypotheses: Sequence[Assumption]) -> str:
    """The condition after a claim that assumes something."""
    assumed = ", ".join(assumption.name for assumption in hypotheses)
    return f", if {assumed} hold{'s' * (len(hypotheses) == 1)}" if assumed else ""


def of_platform(platform: str, key: str, text: str) -> Assumption:
    """A line of ``[assumptions]`` of a platform file."""
    kind = _BY_NAME.get(f"platform: {key}")
    if kind in OF_PLATFORM:
        return kind.of(platform=platform, text=text)
    return OF_ANOTHER_PLATFORM.of(platform=platform, key=key, text=text)


def table(assumptions: Iterable[Assumption]) -> list[dict[str, str]]:
    """The assumptions of a report with their rows, for JSON."""
    return [
        {
            "text": str(assumption),
            "kind": (kind := assumption.kind).name,
            "proved_by": kind.proved_by,
            "refuted_by": kind.refuted_by,
            "checked_by": kind.checked_by,
        }
        for assumption in assumptions
    ]
