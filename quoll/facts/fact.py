"""A user fact: its source, its subject (two facts about one must agree), and its form.

The other files of this folder hold the kinds of fact, one file for each stage that uses them;
``quoll.facts.read`` lists their forms.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from quoll.assumptions import AssumptionKind
from quoll.errors import FactsError
from quoll.source.loop_statement import LoopStatement, SingleLoop

__all__ = [
    "ADDRESS",
    "FUNCTION",
    "IN",
    "NAME",
    "NUMBER",
    "PLACE",
    "SYMBOL",
    "CountedFact",
    "Fact",
    "FactForm",
    "FactSource",
    "FactStage",
    "FactSubject",
    "FunctionFact",
    "LimitedFact",
    "PlacedFact",
    "invocations",
    "number",
    "positive",
    "scope",
]

# The subject of a fact, and its statement: two facts with equal subjects and different statements
# contradict each other.
FactSubject = tuple[tuple[object, ...], object]


@dataclass(frozen=True, slots=True)
class FactSource:
    """The source of a fact: file, line (from 1), and text.

    ``statement``: the loop that the fact concerns, if no place names it. ``imported``: the file is
    of another analyser, which has no checksums.
    """

    file: str
    line: int
    text: str
    statement: LoopStatement | SingleLoop | None = None
    imported: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class FactStage(Enum):
    """The stage that applies a fact: the first whose result depends on it."""

    EXTRACTION = "extraction"
    INLINING = "inlining"
    VALUES = "values"
    LOOP_BOUNDS = "loop bounds"
    INTEGER_PROGRAM = "integer program"


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of a facts file. ``str`` gives text that reads back as the same fact.

    A kind of fact is one class, which overrides the defaults. ``assumption`` is its row in the
    table of assumptions, as listed in a report.
    """

    stage: ClassVar[FactStage]
    source: FactSource

    @property
    @abstractmethod
    def assumption(self) -> AssumptionKind:
        """The row of the table of assumptions that names the check of the fact."""

    @abstractmethod
    def fields(self) -> Mapping[str, str | int]:
        """The printed values of the fields of that row."""

    def __str__(self) -> str:
        return self.assumption.statement.format_map(self.fields())

    @abstractmethod
    def subject(self) -> FactSubject:
        """The subject of the fact, and its statement; every kind has its own.

        A test checks that: ``ABC`` itself has an attribute ``register``, which a dataclass would
        take for the default of the field of that name.
        """

    def places(self) -> tuple[str, ...]:
        """The places whose execution the fact concerns, as written."""
        return ()

    def functions(self) -> tuple[str, ...]:
        """The functions to whose invocations the fact is limited; none: it holds everywhere."""
        return ()

    def names(self) -> tuple[str, ...]:
        """Every text that names a place of the ELF, first the place that the fact is about."""
        return (*self.places(), *self.functions())

    @property
    def key(self) -> tuple[str, str]:
        """Its source and text: a line may state several facts, and a comment, too."""
        return str(self.source), self.source.text


@dataclass(frozen=True, slots=True)
class PlacedFact(Fact):
    """A fact about one place."""

    place: str

    @property
    def is_bare_offset(self) -> bool:
        """Whether the place is an offset without a checksum, where an edit may put other code."""
        return re.fullmatch(rf"{SYMBOL}\+{NUMBER}", self.place) is not None

    def fields(self) -> Mapping[str, str | int]:
        return {"place": self.place}

    def places(self) -> tuple[str, ...]:
        return (self.place,)


@dataclass(frozen=True, slots=True)
class FunctionFact(Fact):
    """A fact about one function as a whole."""

    function: str

    def fields(self) -> Mapping[str, str | int]:
        return {"function": self.function}

    def names(self) -> tuple[str, ...]:
        return (self.function,)


class LimitedFact(Fact):
    """A fact that may be limited to invocations of one function, from one caller."""

    __slots__ = ()
    function: str | None
    caller: str | None

    def functions(self) -> tuple[str, ...]:
        return tuple(name for name in (self.function, self.caller) if name is not None)


class CountedFact(Fact):
    """A fact about execution counts: rows of the integer program."""

    __slots__ = ()

    @property
    def monotone(self) -> bool:
        """Whether the fact also holds for every part of an execution for which it holds."""
        return True

    def broken(self, total: int) -> str:
        """The violation by a count over the whole path; "" if there is none."""
        return ""

    def fully_counted(self) -> tuple[str, ...]:
        """The places of which no execution may be left out, where the fact is applied to counts."""
        return ()


@dataclass(frozen=True, slots=True)
class FactForm:
    """One syntax of a fact.

    ``opening`` decides whether a line is meant to have this form, ``pattern`` reads it, and
    ``text`` is shown if that fails.
    """

    opening: str
    pattern: str
    text: str
    make: Callable[[FactSource, re.Match[str]], Fact]


ADDRESS = r"0[xX][0-9a-fA-F]+"
SYMBOL = r"[A-Za-z_$.][\w$.]*(?:::[A-Za-z_$.][\w$.]*)*"  # a path, for Rust
NAME = r"[A-Za-z_]\w*"
NUMBER = rf"(?:{ADDRESS}|[0-9]+)"
ANCHOR = r"[0-9a-f]{8}"  # a checksum of the function around a place
PLACE = rf"(?:{ADDRESS}|{SYMBOL}(?:\+{NUMBER}(?:~{ANCHOR})?)?|[^\s:,]+:[0-9]+)"
FUNCTION = rf"(?:{ADDRESS}|{SYMBOL})"
IN = rf" in (?P<function>{FUNCTION})(?: when called from (?P<caller>{FUNCTION}))?"


def number(text: str) -> int:
    """The value of a decimal or 0x hexadecimal number."""
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def positive(source: FactSource, text: str, message: str, hint: str) -> int:
    """The number in ``text``; raises FactsError if it is zero."""
    value = number(text)
    if value == 0:
        raise FactsError(message, where=str(source), hint=hint)
    return value


def scope(function: str | None, caller: str | None) -> str:
    """The printed tail of a constraint."""
    return f" in {invocations(function, caller)}" if function else ""


def invocations(function: str, caller: str | None) -> str:
    """The printed invocations that a constraint concerns."""
    return f"{function} when called from {caller}" if caller else function
