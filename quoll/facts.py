"""Facts files: what the user knows and the binary does not say.

One fact per line; ``#`` starts a comment. Places are ``0xADDRESS``, ``symbol``,
``symbol+0xOFFSET`` or ``file.c:LINE``; a FUNCTION is a symbol or an address.

    loop PLACE at most N                      header executions per entry of the loop (rule 18)
    loop PLACE at most NAME [+ N]             the same, where no binary says the number
    PLACE conflicts with PLACE in FUNCTION [when called from FUNCTION]
    PLACE is consistent with PLACE in FUNCTION [when called from FUNCTION]
    PLACE executes at most N times [in FUNCTION [when called from FUNCTION]]
    PLACE never executes [in FUNCTION [when called from FUNCTION]]
    targets of PLACE are PLACE, PLACE, ...    an indirect jump or call
    FUNCTION never returns

``parse`` only reads; ``quoll.places`` turns a place into addresses, and each stage takes the
facts that are its own. Every fact that is used is an assumption of the result.

A fact may be repeated word for word. Two facts that give different numbers or targets for the
same place, or that make two places conflict and be consistent in the same function, contradict
each other: one of them is out of date, and only the user knows which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from quoll.errors import FactsError

__all__ = [
    "AtMost",
    "Conflict",
    "Consistent",
    "Fact",
    "Facts",
    "LoopFact",
    "LoopParameter",
    "NeverReturns",
    "Source",
    "Targets",
    "load",
    "parse",
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

    def __str__(self) -> str:
        return f"loop {self.place} at most {self.bound}"


@dataclass(frozen=True, slots=True)
class LoopParameter:
    """``loop PLACE at most NAME + plus``: the answer is a function of NAME (rule 27)."""

    source: Source
    place: str
    name: str
    plus: int

    def __str__(self) -> str:
        tail = f" + {self.plus}" if self.plus else ""
        return f"loop {self.place} at most {self.name}{tail}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """``a conflicts with b in function``: not both in one invocation.

    With ``caller``, only in invocations whose call instruction stands in that function; the same
    for the other two forms.
    """

    source: Source
    a: str
    b: str
    function: str
    caller: str | None = None

    def __str__(self) -> str:
        return f"{self.a} conflicts with {self.b}{scope(self.function, self.caller)}"


@dataclass(frozen=True, slots=True)
class Consistent:
    """``a is consistent with b in function``: equally often in one invocation."""

    source: Source
    a: str
    b: str
    function: str
    caller: str | None = None

    def __str__(self) -> str:
        return f"{self.a} is consistent with {self.b}{scope(self.function, self.caller)}"


@dataclass(frozen=True, slots=True)
class AtMost:
    """``place executes at most n times``: in total, or per invocation of ``function``.

    ``place never executes`` is the same with ``count`` 0.
    """

    source: Source
    place: str
    count: int
    function: str | None
    caller: str | None = None

    def __str__(self) -> str:
        verb = f"executes at most {self.count} times" if self.count else "never executes"
        return f"{self.place} {verb}{scope(self.function, self.caller)}"


@dataclass(frozen=True, slots=True)
class Targets:
    """``targets of place are ...``: all targets of an indirect jump or call."""

    source: Source
    place: str
    targets: tuple[str, ...]

    def __str__(self) -> str:
        return f"targets of {self.place} are {', '.join(self.targets)}"


@dataclass(frozen=True, slots=True)
class NeverReturns:
    """``function never returns``."""

    source: Source
    function: str

    def __str__(self) -> str:
        return f"{self.function} never returns"


Fact = LoopFact | LoopParameter | Conflict | Consistent | AtMost | Targets | NeverReturns
F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a run, in file order."""

    facts: tuple[Fact, ...] = ()

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one kind."""
        return tuple(f for f in self.facts if isinstance(f, kind))


def load(paths: Iterable[Path | str]) -> Facts:
    """Read facts files as one list, contradictions between files included.

    Raises FactsError if a file cannot be read or a line is not a fact.
    """
    facts: list[Fact] = []
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise FactsError(f"cannot read the facts file: {reason}", where=str(path)) from error
        facts.extend(read_lines(text, str(path)))
    return uncontradicted(facts)


def parse(text: str, file: str) -> Facts:
    """The facts in ``text``; ``file`` is its name in messages.

    Raises FactsError naming the line and what was expected, or both lines of a contradiction.
    """
    return uncontradicted(read_lines(text, file))


def read_lines(text: str, file: str) -> list[Fact]:
    """One fact per line that is not blank or comment."""
    facts = []
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = " ".join(line.partition("#")[0].split())
        if stripped:
            facts.append(read_fact(Source(file, number, stripped)))
    return facts


ADDRESS = r"0[xX][0-9a-fA-F]+"
SYMBOL = r"[A-Za-z_$.][\w$.]*"
NUMBER = rf"(?:{ADDRESS}|[0-9]+)"
PLACE = rf"(?:{ADDRESS}|{SYMBOL}(?:\+{NUMBER})?|[^\s:,]+:[0-9]+)"
FUNCTION = rf"(?:{ADDRESS}|{SYMBOL})"
IN = rf" in (?P<function>{FUNCTION})(?: when called from (?P<caller>{FUNCTION}))?"

Reader = Callable[[Source, re.Match[str]], Fact]

FORMS: tuple[tuple[str, str, str, Reader], ...] = (
    (
        rf"loop {PLACE} at most [A-Za-z_]",
        rf"loop (?P<place>{PLACE}) at most (?P<name>[A-Za-z_]\w*)(?: ?\+ ?(?P<plus>{NUMBER}))?",
        "loop PLACE at most NAME [+ N]",
        lambda s, m: LoopParameter(s, m["place"], m["name"], number(m["plus"] or "0")),
    ),
    (
        r"loop (?!conflicts with|is consistent|executes at|never executes|never returns)",
        rf"loop (?P<place>{PLACE}) at most (?P<count>{NUMBER})",
        "loop PLACE at most N",
        lambda s, m: LoopFact(s, m["place"], at_least_one(s, number(m["count"]))),
    ),
    (
        r"targets of ",
        rf"targets of (?P<place>{PLACE}) are (?P<targets>{PLACE}(?: ?, ?{PLACE})*)",
        "targets of PLACE are PLACE, PLACE, ...",
        lambda s, m: Targets(s, m["place"], tuple(re.split(r" ?, ?", m["targets"]))),
    ),
    (
        r"\S+ conflicts\b",
        rf"(?P<a>{PLACE}) conflicts with (?P<b>{PLACE}){IN}",
        "PLACE conflicts with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: Conflict(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    (
        r"\S+ is\b",
        rf"(?P<a>{PLACE}) is consistent with (?P<b>{PLACE}){IN}",
        "PLACE is consistent with PLACE in FUNCTION [when called from FUNCTION]",
        lambda s, m: Consistent(s, m["a"], m["b"], m["function"], m["caller"]),
    ),
    (
        r"\S+ executes\b",
        rf"(?P<place>{PLACE}) executes at most (?P<count>{NUMBER}) times?(?:{IN})?",
        "PLACE executes at most N times [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: AtMost(s, m["place"], number(m["count"]), m["function"], m["caller"]),
    ),
    (
        r"\S+ never executes\b",
        rf"(?P<place>{PLACE}) never executes(?:{IN})?",
        "PLACE never executes [in FUNCTION [when called from FUNCTION]]",
        lambda s, m: AtMost(s, m["place"], 0, m["function"], m["caller"]),
    ),
    (
        r"\S+ never\b",
        rf"(?P<function>{FUNCTION}) never returns",
        "FUNCTION never returns",
        lambda s, m: NeverReturns(s, m["function"]),
    ),
)


def read_fact(source: Source) -> Fact:
    """Match one line against the forms; the first words decide which form was meant."""
    for opening, pattern, form, make in FORMS:
        if re.match(opening, source.text):
            match = re.fullmatch(pattern, source.text)
            if match is None:
                raise FactsError(
                    f"'{source.text}' is not a fact",
                    where=str(source),
                    hint=f"expected: {form}; a place is 0xADDRESS, symbol, symbol+0xOFFSET or "
                    "file.c:LINE, a number is decimal or 0x hexadecimal",
                )
            return make(source, match)
    raise FactsError(
        f"'{source.text}' is not a fact",
        where=str(source),
        hint="expected one of: " + "; ".join(form for _, _, form, _ in FORMS),
    )


def number(text: str) -> int:
    """A decimal or 0x hexadecimal number."""
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def at_least_one(source: Source, bound: int) -> int:
    """``bound``, refused if zero: the header of a loop that is entered executes."""
    if bound == 0:
        raise FactsError(
            "a loop bound counts executions of the header, which are at least 1 per entry",
            where=str(source),
            hint="for a loop that is never entered write: PLACE never executes",
        )
    return bound


def scope(function: str | None, caller: str | None) -> str:
    """The printed tail of a constraint."""
    inside = f" in {function}" if function else ""
    return f"{inside} when called from {caller}" if caller else inside


def uncontradicted(facts: list[Fact]) -> Facts:
    """``facts``, after checking that no two give different answers to one question."""
    answers: dict[tuple[object, ...], tuple[object, Fact]] = {}
    for fact in facts:
        question, answer = question_and_answer(fact)
        earlier_answer, earlier = answers.setdefault(question, (answer, fact))
        if earlier_answer != answer:
            raise FactsError(
                f"'{fact}' contradicts '{earlier}' at {earlier.source}",
                where=str(fact.source),
                hint="remove the one that is out of date",
            )
    return Facts(tuple(facts))


def question_and_answer(fact: Fact) -> tuple[tuple[object, ...], object]:
    """What a fact is about, and what it says of it."""
    match fact:
        case LoopFact():
            return ("loop", fact.place), fact.bound
        case LoopParameter():
            return ("loop", fact.place), (fact.name, fact.plus)
        case Conflict() | Consistent():
            pair = frozenset((fact.a, fact.b))
            return ("pair", pair, fact.function, fact.caller), type(fact)
        case AtMost():
            return ("count", fact.place, fact.function, fact.caller), fact.count
        case Targets():
            return ("targets", fact.place), frozenset(fact.targets)
        case NeverReturns():
            return ("returns", fact.function), False
