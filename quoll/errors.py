"""The exceptions that this project raises on purpose, with the exit status of each class.

An error is one paragraph: the event, its place (address, symbol, source line), and a remedy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "PATH_END",
    "PROPOSED",
    "BuildError",
    "ControlFlowError",
    "FactsError",
    "InfeasibleError",
    "InputError",
    "MissingKind",
    "MissingStatement",
    "ResourceError",
    "SolverError",
    "TimingError",
    "UnansweredLoop",
    "UnboundedLoop",
    "UnsoundBound",
    "UsageError",
    "WcetError",
]


PATH_END = "path must end at PLACE"
PROPOSED = "# Missing facts about "  # the beginning of a file of proposed facts


class MissingKind(Enum):
    """The subject of a missing fact, in the words and order of reports: root causes first."""

    ENDS = "ends of paths"
    SWITCHES = "context switches"
    TARGETS = "targets"
    SUPERVISOR_CALLS = "supervisor calls"
    RETURNS = "returns"
    FUNCTIONS = "functions"
    RECURSION = "recursion"
    LOOPS = "loops"


@dataclass(frozen=True, slots=True)
class MissingStatement:
    """The fact that the user has to state about the instruction or function at ``addr``.

    ``fact`` has PLACE for it, and N or PLACE, ... for values that only the user knows.
    ``provisional`` is a fact under which an analysis continues, to find other missing facts.
    ``cycles``: cycles per unit of N. ``several``: one fact may name all places that miss the same,
    and have the same ``group``. Without it, places of one ``group`` are listed together, with a
    fact for each.
    """

    addr: int
    kind: MissingKind
    why: str
    fact: str
    provisional: str
    cycles: int | None = None
    several: bool = False
    group: str = ""

    @property
    def key(self) -> tuple[int, str]:
        """The key of equal facts: a fact without a place is stated once."""
        once = self.kind is MissingKind.SUPERVISOR_CALLS
        return 0 if once else self.addr, self.fact


class WcetError(Exception):
    """Base of all errors; ``exit_status`` is the exit status of the command line.

    ``code`` never changes: ``quoll/explanations.py`` explains it. ``where`` is a printed place such
    as ``0xf0010234 <sched_next+0x14> sched.c:41``; ``hint`` is a remedy for the user. Both may be
    absent. ``missing`` are the facts that would remove the error. ``paragraphs`` describes each of
    several faults.
    """

    code = ""
    exit_status = 1

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        hint: str | None = None,
        missing: Sequence[MissingStatement] = (),
        paragraphs: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.paragraphs = tuple(paragraphs)
        self.missing = tuple(missing)
        self.message = message
        self.where = where
        self.hint = hint

    @property
    def coded(self) -> tuple[str, ...]:
        """The text with the error code, a line per fault, as the command line prints it."""
        return tuple(f"error {self.code}: {text}" for text in self.faults)

    @property
    def faults(self) -> tuple[str, ...]:
        """The text, a line per fault."""
        *others, last = self.paragraphs or (str(self),)
        if self.paragraphs and self.hint:
            last += f" ({self.hint})"
        return (*others, last)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(WcetError):
    """The command line is invalid."""

    code = "E101"
    exit_status = 2


class InputError(WcetError):
    """A file is invalid."""

    code = "E102"
    exit_status = 3


class FactsError(WcetError):
    """A fact is malformed, contradictory, unused, or names a place that does not exist."""

    code = "E103"
    exit_status = 4
    # The fact that an execution contradicts: its source as FILE:LINE, and its text.
    about: tuple[str, str] | None = None

    @staticmethod
    def contradicted(message: str, about: tuple[str, str], hint: str) -> FactsError:
        """The error about a fact that an execution, or every execution, contradicts."""
        error = FactsError(message, where=about[0], hint=hint)
        error.about = about
        return error


class ControlFlowError(WcetError):
    """Control flow that the binary alone does not determine, or that is not supported."""

    code = "E104"
    exit_status = 5


class UnboundedLoop(WcetError):
    """At least one loop on a path has no bound."""

    code = "E105"
    exit_status = 6


class UnansweredLoop(UnboundedLoop):
    """A loop has no bound because the solver for its proof is missing or failed."""

    code = "E106"
    exit_status = 8


class TimingError(WcetError):
    """A timing description lacks a row; there are no default latencies."""

    code = "E107"
    exit_status = 7


class SolverError(WcetError):
    """An external solver is missing, failed, or did not prove its result."""

    code = "E108"
    exit_status = 8


class InfeasibleError(WcetError):
    """The facts exclude every path."""

    code = "E109"
    exit_status = 9


class ResourceError(WcetError):
    """The system, or a limit of the shell, denies a resource that a run needs."""

    code = "E110"
    exit_status = 10


class BuildError(WcetError):
    """The build command of ``wcet.toml`` failed."""

    code = "E114"
    exit_status = 11


class UnsoundBound(WcetError):
    """An execution takes longer than the bound of its entry."""

    code = "E115"
    exit_status = 12
