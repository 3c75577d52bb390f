"""Transfers of control that extraction does not resolve: one table, one row per kind.

An ``UnresolvedTransfer`` names its row and gives the values of its text. The row also holds the
missing fact, so that no caller parses the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from string import Formatter

from quoll.errors import PATH_END, MissingKind, MissingStatement

__all__ = [
    "STATE_TARGETS",
    "UnresolvedKind",
    "UnresolvedTransfer",
    "WritableSection",
]

STATE_TARGETS = "targets of PLACE are PLACE, ..."
RETURNS = "PLACE returns to its caller"
SWITCHES = "PLACE switches context"
STATE_RETURN = f"state it, if that is so: {RETURNS}"
SUPERVISOR = "every supervisor call takes at most {} cycles"
NOTHING = "targets of PLACE are 0xfffffff0\nfunction 0xfffffff0 takes at most 1 cycles"
LONGEST_PROPOSAL = 120  # characters of a hint
FORMS = {MissingKind.TARGETS: STATE_TARGETS, MissingKind.RETURNS: RETURNS}  # else ``PATH_END``


@dataclass(frozen=True, slots=True)
class _Row:
    """``reason`` has values in braces; ``advice``, after ``lead``, names a fact for the user."""

    reason: str
    advice: str
    asks: MissingKind = MissingKind.ENDS
    lead: str = ""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the values that the reason shows."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.reason) if name)


class UnresolvedKind(Enum):
    """The reason why the successors of an instruction are unknown."""

    TARGETS = _Row(
        "the targets of {text} are not known: {doubt}",
        STATE_TARGETS,
        MissingKind.TARGETS,
        "state them: ",
    )
    RETURN_TARGETS = _Row(
        "the targets of {text} are not known: {doubt}", STATE_RETURN, MissingKind.RETURNS
    )
    NO_VTABLE = _Row(
        "no vtable that is stated for {text} has a function where it loads one",
        STATE_TARGETS,
        MissingKind.TARGETS,
        "state them: ",
    )
    NOT_PROVED_TO_RETURN = _Row(
        "{text} is not proved to return to the caller: {doubt}{lost}",
        STATE_RETURN,
        MissingKind.RETURNS,
    )
    OTHER_STACK = _Row(
        "{text} leaves with a stack pointer that is not the caller's: it may go on in another "
        "context{lost}",
        f"state it, if that is so: FUNCTION switches context; {STATE_RETURN}",
        MissingKind.SWITCHES,
    )
    NOT_CODE = _Row(
        "control may pass to {target}, {problem}",
        STATE_TARGETS,
        MissingKind.TARGETS,
        "state the real targets: ",
    )
    REPLACED_TARGET = _Row(
        "the jump to {target} does not leave sp and lr as a call does",
        "where it comes back is not known: do not replace the function by a bound",
    )
    EXCEPTION_RETURN = _Row(
        "{text} leaves by an exception return inside a called function: it may restore any context",
        "state it, if a path ends there: path must end at PLACE; or, if that is so of all of "
        "them: path must end at every exception return",
    )
    MISPLACED_IN_IT_BLOCK = _Row(
        "{problem}, which is UNPREDICTABLE (A8.8.54)",
        "no assembler writes that: if these bytes are no code, state that the call before them "
        "never returns, or end the path before them",
    )
    INTO_IT_BLOCK = _Row("a branch leads into an IT block", "that is unpredictable: rewrite it")
    BOTH_SETS = _Row(
        "control reaches this address as ARM and as Thumb code",
        "if one of the branches to it is resolved wrongly, state its targets",
    )
    CALLED_IN_BOTH_SETS = _Row(
        "the function is called as ARM and as Thumb code",
        "one of its callers is resolved wrongly: state its targets",
    )
    RUNS_OFF = _Row(
        "control runs on to {target}, which is not code",
        "state that the call before it never returns: FUNCTION never returns",
    )
    UNPREDICTABLE = _Row(
        "{text} is UNPREDICTABLE: {problem} ({section})",
        "if these bytes are data, state that the call before them never returns, or end the path "
        "before them; otherwise rewrite the instruction",
    )
    WAITS = _Row(
        "{text} waits for an interrupt or an event: its duration is not known",
        "if the path ends here, state it: path must end at PLACE, or --end PLACE; or state the "
        "cycles of its function: function NAME takes at most N cycles",
    )
    SUPERVISOR_CALL = _Row(
        "{text} calls the supervisor inside the analysed code",
        "state one fact for all of them: every supervisor call takes at most N cycles; or their "
        "handler: every supervisor call enters FUNCTION; or end the path: path must end at every "
        "supervisor call",
        MissingKind.SUPERVISOR_CALLS,
    )
    EXCEPTION = _Row(
        "{text} raises an exception inside the analysed code",
        "analyse its handler as an entry of its own and end this path here, or state the cycles "
        "of its function: function NAME takes at most N cycles",
    )
    NO_INSTRUCTION = _Row(
        "{text} is no known instruction",
        "state that the call before it never returns, or end the path before it",
    )


@dataclass(frozen=True, slots=True)
class WritableSection:
    """A writable section of the ELF that holds the instruction; first and last address included."""

    name: str
    first: int
    last: int

    def __str__(self) -> str:
        return (
            f"if nothing is stored to {self.name}, which the ELF says is writable: region NAME "
            f"from {self.first:#x} to {self.last:#x} is read-only"
        )


@dataclass(frozen=True, slots=True)
class CandidateFact:
    """A fact with all candidates of a call, where PLACE stands for its place.

    ``note``: the candidates that it omits, and the assumption this makes. ``place``: its place.
    """

    fact: str
    candidates: int
    note: str
    place: str = "PLACE"

    def __str__(self) -> str:
        if len(self.fact) > LONGEST_PROPOSAL:
            return f"{self.candidates} candidates: wcet analyse --suggest-facts FILE"
        return f"state it, if that is so: {self.fact.replace('PLACE', self.place, 1)}"


@dataclass(frozen=True, slots=True)
class UnresolvedTransfer:
    """A transfer whose successors are unknown."""

    addr: int
    where: str  # printed place
    kind: UnresolvedKind
    values: tuple[tuple[str, str], ...] = ()  # values of its kind's text
    comes_back: bool = False  # it is a call: control continues behind it
    set_not_known: tuple[int, ...] = ()  # addresses of code whose instruction set is unknown
    writable: WritableSection | None = None
    behind: UnresolvedTransfer | None = None  # the transfer to resolve first
    proposal: CandidateFact | None = None
    function: int | None = None  # the entry of a function with it

    def __post_init__(self) -> None:
        assert {name for name, _ in self.values} == self.kind.value.fields, self.kind

    @property
    def reason(self) -> str:
        """The unknown transfer, as printed."""
        return self.kind.value.reason.format(**dict(self.values))

    @property
    def hint(self) -> str:
        """The remedy, as printed."""
        first = self._first
        row, section = first.kind.value, first.writable
        text = f"{self.proposal}; or " if self.proposal else row.lead
        text += row.advice if section is None else f"{row.advice}; or, {section}"
        return text + "".join(map(_either_set, first.set_not_known))

    @property
    def asks(self) -> MissingKind:
        """The subject of the missing fact."""
        return self._first.kind.value.asks

    @property
    def _first(self) -> UnresolvedTransfer:
        """The transfer to resolve first, which may resolve this one too."""
        found = self
        while found.behind is not None:
            found = found.behind
        return found

    @property
    def missing(self) -> MissingStatement:
        """The first fact that would resolve the transfer.

        Provisionally, an analysis may continue as if paths ended here, or as if a call did nothing.
        """
        if self.proposal is not None:
            why = "; ".join(filter(None, (self.reason, self.proposal.note)))
            fact = self.proposal.fact
            return MissingStatement(self.addr, MissingKind.TARGETS, why, fact, fact, several=True)
        if self.asks is MissingKind.SWITCHES:
            place = self.addr if self.function is None else self.function
            return MissingStatement(place, self.asks, self.reason, SWITCHES, SWITCHES)
        if self.asks is MissingKind.SUPERVISOR_CALLS:
            fact, provisional = SUPERVISOR.format("N"), SUPERVISOR.format(1)
        else:
            fact = FORMS.get(self.asks, PATH_END)
            provisional = NOTHING if self.comes_back else PATH_END
        several = self.kind is UnresolvedKind.EXCEPTION_RETURN
        why = self.reason
        return MissingStatement(self.addr, self.asks, why, fact, provisional, several=several)


def _either_set(addr: int) -> str:
    return (
        f"; nothing in the file says whether there is ARM or Thumb code at {addr:#x}: if it is "
        f"Thumb code, write {addr | 1:#x}, or keep the mapping symbols ($t) of the ELF"
    )
