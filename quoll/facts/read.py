"""Facts files: knowledge of the user that the binary does not contain.

One fact per line; ``#`` starts a comment. docs/facts.md lists the forms.

``parse`` only reads; ``quoll.facts.located`` finds the places in a binary, and each stage takes the
facts that are its own. Every fact that is used is an assumption of the result.

A fact may be repeated word for word. Two facts contradict each other if they give different numbers
or targets for one place, or make two places both conflict and be consistent in one function: one of
them is out of date, and only the user knows which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from quoll.errors import FactsError
from quoll.exchange.ait import read_ais
from quoll.exchange.otawa_text import read_ff
from quoll.exchange.otawa_xml import read_ffx
from quoll.exchange.stated import ImportedFacts
from quoll.facts import (
    control_flow_facts,
    count_facts,
    entry_invariants,
    guidance,
    interrupt_facts,
    invariants,
    linear,
    memory_facts,
)
from quoll.facts.fact import Fact, FactForm, FactSource
from quoll.facts.line_anchors import ANCHORED, LineAnchors
from quoll.facts.misspelt import forms_meant, meant
from quoll.input_files import Unreadable, read_input
from quoll.printable import shortened
from quoll.source.loop_statement import SingleLoop

__all__ = ["FORMS", "Facts", "load", "parse", "read_fact", "uncontradicted"]

# Tried in this order; the first form whose opening matches is the intended one.
FORMS: tuple[FactForm, ...] = (
    *linear.FORMS,
    *guidance.FORMS,
    *count_facts.FORMS,
    *control_flow_facts.FORMS,
    *interrupt_facts.FORMS,
    *entry_invariants.FORMS,
    *invariants.FORMS,
    *memory_facts.FORMS,
)
SEVERAL = re.compile(
    r"(?P<opening>loop|list at|recursion of|path (?:must|may) end at) "
    r"(?P<places>[^\s,]+(?:, ?[^\s,]+)+)(?P<rest>| .*)"
)
F = TypeVar("F", bound=Fact)
LARGEST = 16 << 20  # bytes of a facts file
LARGEST_NUMBER = (1 << 63) - 1
NUMBERS = re.compile(r"(?<![\w.$])(?:0[xX]([0-9a-fA-F]+)|([0-9]+))\b")


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a run, in file order; ``remarks`` name ignored lines of a file."""

    facts: tuple[Fact, ...] = ()
    remarks: tuple[str, ...] = ()

    def of(self, kind: type[F]) -> tuple[F, ...]:
        """The facts of one kind."""
        return tuple(f for f in self.facts if isinstance(f, kind))


def load(paths: Iterable[Path | str], lines: LineAnchors | None = None) -> Facts:
    """Read facts files as one list, contradictions between files included.

    ``lines`` follows anchored source lines; without it these are refused. Files that end in
    ``.ff``, ``.ffx`` or ``.ais`` come from other analysers. Raises FactsError if a file cannot be
    read or a line is not a fact.
    """
    facts: list[Fact] = []
    remarks: list[str] = []
    for path in paths:
        try:
            data = read_input(path, LARGEST)
            text = "\n".join(data.decode("utf-8-sig").splitlines())
        except (Unreadable, UnicodeDecodeError) as error:
            reason = error if isinstance(error, Unreadable) else "is not UTF-8 text"
            raise FactsError(f"the facts file {reason}", where=str(path)) from error
        exchanged = _exchanged(data, text, str(path))
        if exchanged is None:
            facts.extend(read_lines(text, str(path), lines))
            continue
        remarks.extend(exchanged.remarks)
        for line in exchanged.facts:
            only = None if line.single_loop is None else SingleLoop(line.single_loop)
            facts.append(
                read_fact(FactSource(str(path), line.line, line.text, only, imported=True))
            )
    remarks += lines.remarks if lines else ()
    return replace(uncontradicted(facts), remarks=tuple(remarks))


def _exchanged(data: bytes, text: str, path: str) -> ImportedFacts | None:
    """The facts of another analyser's file; None for a facts file of our own."""
    match Path(path).suffix:
        case ".ff":
            return read_ff(text, path)
        case ".ffx":
            return read_ffx(data, path)
        case ".ais":
            return read_ais(text, path)
    return None


def parse(text: str, file: str) -> Facts:
    """The facts in ``text``; ``file`` is its name in messages.

    Raises FactsError naming the line and the expected form, or both lines of a contradiction.
    """
    return uncontradicted(read_lines(text, file))


def read_lines(text: str, file: str, lines: LineAnchors | None = None) -> list[Fact]:
    """A fact for each line that is not blank or comment, and each place that it names.

    Every Unicode line separator ends a line, so that no comment hides a fact. ``lines``: as in
    ``load``.
    """
    facts: list[Fact] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = _followed(" ".join(line.partition("#")[0].split()), f"{file}:{number}", lines)
        if stripped:
            facts += (read_fact(FactSource(file, number, text)) for text in apart(stripped))
    return facts


def _followed(text: str, where: str, lines: LineAnchors | None) -> str:
    """``text`` with source lines as they are numbered today."""
    if lines is not None:
        return lines.followed(text, where)
    if match := ANCHORED.search(text):
        raise FactsError(
            f"the text of {match[0]} cannot be compared here",
            where=where,
            hint=f"write {match['file']}:{match['line']}",
        )
    return text


def apart(text: str) -> list[str]:
    """A line for each place of an invariant that is stated for several places."""
    match = SEVERAL.fullmatch(text)
    if match is None:
        return [text]
    places = dict.fromkeys(re.split(", ?", match["places"]))
    return [f"{match['opening']} {place}{match['rest']}" for place in places]


def read_fact(source: FactSource) -> Fact:
    """The fact in one line; its first words select the form."""
    for form in FORMS:
        if re.match(form.opening, source.text):
            match = re.fullmatch(form.pattern, source.text)
            if match is None:
                raise _refusal(source, form)
            _refuse_large_numbers(source)
            return form.make(source, match)
    raise _refusal(source, None)


def _refusal(source: FactSource, opened: FactForm | None) -> FactsError:
    """The error for a line that is no fact, or that only begins as the form ``opened``."""
    fact = meant(source.text, FORMS)
    likely = [opened] if opened else [] if fact else forms_meant(source.text, FORMS)
    hints = [f"did you mean '{fact}'?"] if fact else []
    if likely:
        hints.append(
            f"expected: {'; '.join(form.text for form in likely)}; a place is 0xADDRESS, symbol, "
            "symbol+0xOFFSET or file.c:LINE, a number is decimal or 0x hexadecimal"
        )
    return FactsError(
        f"'{shortened(source.text)}' is not a fact",
        where=str(source),
        hint=" ".join(hints) or "expected one of: " + "; ".join(form.text for form in FORMS),
    )


def _refuse_large_numbers(source: FactSource) -> None:
    """Raise FactsError for a number beyond every machine word and every count."""
    for digits in NUMBERS.finditer(source.text):
        text = (digits[1] or digits[2]).lstrip("0")
        if len(text) > 19 or (text and int(text, 16 if digits[1] else 10) > LARGEST_NUMBER):
            raise FactsError(
                f"the number {shortened(digits[0])} is too large",
                where=str(source),
                hint=f"at most {LARGEST_NUMBER}",
            )


def uncontradicted(facts: Sequence[Fact]) -> Facts:
    """``facts``, after checking that no two contradict each other about one subject."""
    stated: dict[tuple[object, ...], tuple[object, Fact]] = {}
    for fact in facts:
        subject, value = fact.subject()
        earlier_value, earlier = stated.setdefault(subject, (value, fact))
        if earlier_value != value:
            raise FactsError(
                f"'{fact}' contradicts '{earlier}' at {earlier.source}",
                where=str(fact.source),
                hint="remove the one that is out of date",
            )
    return Facts(tuple(facts))
