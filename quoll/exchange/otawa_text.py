"""OTAWA's flow facts as text (F4, ``.ff``): ``loop "f" + 0x2c 10 ;``.

The number of a loop bounds its back edges per entry from outside: ``sum of back edges <= max * sum
of entries`` (ipet_FlowFactConstraintBuilder.cpp, processBB). Its header then executes at most ``max
+ 1`` times. A ``total`` bounds the back edges of a whole run, which no fact expresses: next to a
``max`` it is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoll.errors import FactsError
from quoll.exchange.stated import (
    ABOVE,
    ImportedFact,
    ImportedFacts,
    label_place,
    line_place,
    number,
    refused,
)
from quoll.exchange.tokenizer import ExchangeToken, statements

__all__ = ["read_ff"]

NOT_READ = "no fact means the same"


def read_ff(text: str, file: str) -> ImportedFacts:
    """The facts of a file; raises FactsError for a statement that it does not support."""
    reader = _Reader(file)
    for statement in statements(text, file):
        reader.read(statement)
    return ImportedFacts(tuple(reader.facts), tuple(reader.remarks))


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._words: Sequence[ExchangeToken] = ()
        self._at = 0
        self.facts: list[ImportedFact] = []
        self.remarks: list[str] = []

    def read(self, words: Sequence[ExchangeToken]) -> None:
        """Read one statement."""
        self._words, self._at = words, 1
        match words[0].text:
            case "loop":
                self._loop()
            case "return":
                self._fact(f"{self._place()} returns to its caller")
            case "noreturn":
                self._fact(f"{self._place()} never returns")
            case "multibranch" | "multicall":
                source = self._place()
                self._expect("to")
                targets = [self._place()]
                while self._next() == ",":
                    self._at += 1
                    targets.append(self._place())
                self._fact(f"targets of {source} are {', '.join(targets)}")
            case "checksum":
                self._at = len(words)
                self.remarks.append(f"{self._file}:{words[0].line}: the checksum is not compared")
            case _:
                raise self._refused(NOT_READ)
        if self._at < len(words):
            inside = self._next() == "in"
            raise self._refused(
                "it holds in one calling context only" if inside else "more follows than is known"
            )

    def _loop(self) -> None:
        place = self._place()
        counts: dict[str, int] = {}
        if self._next() == "?":
            raise self._refused("the bound is not known")
        if number(self._next()) is not None:
            counts["max"] = self._number()
        while (kind := self._next()) in ("max", "min", "total"):
            self._at += 1
            if kind in counts:
                raise self._refused(f"'{kind}' is said twice")
            counts[kind] = self._number()
        if "max" not in counts and "total" in counts:
            raise self._refused("a total without a maximum is no bound of a loop")
        if "max" not in counts:
            raise self._refused("it has no maximum")
        if counts.get("min", 0) > counts["max"]:
            raise self._refused(ABOVE)
        if "total" in counts:
            line = self._words[0].line
            self.remarks.append(f"{self._file}:{line}: the total is ignored, the maximum is used")
        self._fact(f"loop {place} at most {counts['max'] + 1}")

    def _place(self) -> str:
        """The place: an address, a label with an offset, or a file with a line."""
        word = self._words[self._at] if self._at < len(self._words) else None
        self._at += 1
        if word is not None and not word.quoted and (address := number(word.text)) is not None:
            return f"{address:#x}"
        if word is None or not word.quoted:
            raise self._refused("a place is expected")
        place: str | None
        match self._next():
            case "+":
                self._at += 1
                place = label_place(word.text, self._number())
            case ":":
                self._at += 1
                place = line_place(word.text, self._number())
            case "-":
                raise self._refused("a place before a label")
            case _:
                place = label_place(word.text, 0)
        if place is None:
            raise self._refused(f"'{word.text}' is no name of a place")
        return place

    def _next(self) -> str:
        word = self._words[self._at] if self._at < len(self._words) else None
        return "" if word is None or word.quoted else word.text

    def _number(self) -> int:
        value = number(self._next())
        if value is None:
            raise self._refused("a number is expected")
        self._at += 1
        return value

    def _expect(self, text: str) -> None:
        if self._next() != text:
            raise self._refused(f"'{text}' is expected")
        self._at += 1

    def _fact(self, text: str) -> None:
        self.facts.append(ImportedFact(self._words[0].line, text))

    def _refused(self, why: str) -> FactsError:
        shown = " ".join(word.text for word in self._words[:8])
        return refused(self._file, self._words[0].line, shown, why)
