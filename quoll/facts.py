"""Facts files: what the user knows and the binary does not say.

One fact per line; ``#`` starts a comment. Places are ``0xADDRESS``, ``symbol``,
``symbol+0xOFFSET`` or ``file.c:LINE``.

    loop PLACE at most N                      header executions per entry of the loop (rule 18)
    PLACE conflicts with PLACE in FUNCTION
    PLACE is consistent with PLACE in FUNCTION
    PLACE executes at most N times [in FUNCTION]
    PLACE never executes
    targets of PLACE are PLACE, PLACE, ...    an indirect jump or call
    FUNCTION never returns

``parse`` only reads; ``quoll.places`` turns a place into addresses, and each stage takes the
facts that are its own. Every fact that is used is an assumption of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

__all__ = [
    "AtMost",
    "Conflict",
    "Consistent",
    "Fact",
    "Facts",
    "LoopFact",
    "NeverReturns",
    "Source",
    "Targets",
]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact stands: file, line (from 1), and its text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class LoopFact:
    """``loop PLACE at most N``."""

    source: Source
    place: str
    bound: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """``a conflicts with b in function``: not both in one invocation."""

    source: Source
    a: str
    b: str
    function: str


@dataclass(frozen=True, slots=True)
class Consistent:
    """``a is consistent with b in function``: equally often in one invocation."""

    source: Source
    a: str
    b: str
    function: str


@dataclass(frozen=True, slots=True)
class AtMost:
    """``place executes at most n times``: in total, or per invocation of ``function``."""

    source: Source
    place: str
    count: int
    function: str | None


@dataclass(frozen=True, slots=True)
class Targets:
    """``targets of place are ...``: all targets of an indirect jump or call."""

    source: Source
    place: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeverReturns:
    """``function never returns``."""

    source: Source
    function: str


Fact = LoopFact | Conflict | Consistent | AtMost | Targets | NeverReturns
F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a run, in file order."""

    facts: tuple[Fact, ...] = ()

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one kind."""
        return tuple(f for f in self.facts if isinstance(f, kind))
