"""Loop bounds in aiT's annotation languages (AIS, AIS2).

    loop "f" + 1 loop max 10 end;       loop 0x8260 max 10;       loop "f.L1" { bound: 0..10; }

With ``end`` the test stands at the end of the loop, and the number counts executions of the header.
With ``begin`` the header executes once more than the body. Without either, the loop may have either
form: the header then executes at most once more than the number. A loop named by its position in a
function is read only if the function has one loop: the order is unknown here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quoll.errors import FactsError
from quoll.exchange.stated import ABOVE, ImportedFact, ImportedFacts, label_place, number, refused
from quoll.exchange.tokenizer import ExchangeToken, statements

__all__ = ["read_ais"]

NAMED = re.compile(r"(?P<function>.+)\.L(?P<position>[0-9]+)")
FIRST = "1"


def read_ais(text: str, file: str) -> ImportedFacts:
    """The loop bounds of a file; raises FactsError for any other statement."""
    return ImportedFacts(tuple(_Statement(file, words).fact() for words in statements(text, file)))


class _Statement:
    def __init__(self, file: str, words: Sequence[ExchangeToken]) -> None:
        self._file, self._words, self._at = file, words, 0

    def fact(self) -> ImportedFact:
        """The fact that the statement expresses."""
        if self._word() != "loop":
            raise self._refused("only loop bounds are")
        place, only = self._place()
        most = self._bound()
        if self._at < len(self._words):
            raise self._refused(f"'{self._words[self._at].text}' is not known of a loop")
        return ImportedFact(self._words[0].line, f"loop {place} at most {most}", only)

    def _place(self) -> tuple[str, str | None]:
        """A place in the loop, and the function whose only loop it is."""
        start = self._words[self._at] if self._at < len(self._words) else None
        name = self._word()
        if start is not None and not start.quoted and (address := number(name)) is not None:
            return f"{address:#x}", None
        if start is None or not start.quoted:
            raise self._refused("a place is expected")
        named = NAMED.fullmatch(name)
        if named is not None:
            return self._only(named["function"], named["position"])
        if self._peek() != "+":
            raise self._refused("it names no loop of the routine")
        self._at += 1
        text = self._word()
        match self._peek():
            case "loop" | "loops":
                self._at += 1
                return self._only(name, text)
            case "byte" | "bytes":
                self._at += 1
                offset = number(text)
                place = None if offset is None else label_place(name, offset)
                if place is None:
                    raise self._refused("the place cannot be read")
                return place, None
            case _:
                raise self._refused("'loop' or 'bytes' is expected after the number")

    def _only(self, function: str, position: str) -> tuple[str, str]:
        place = label_place(function, 0)
        if place is None or position != FIRST:
            raise self._refused("only the first loop of a routine that has no other is named so")
        return place, function

    def _bound(self) -> int:
        """Most executions of the header per entry of the loop."""
        if self._peek() == "{":
            return self._block()
        least, most = 0, None
        while self._peek() in ("min", "max", "exactly"):
            kind = self._word()
            value = self._number()
            if kind != "min" and most is not None:
                raise self._refused("its maximum is said twice")
            least, most = (value, most) if kind == "min" else (least, value)
        return self._executions(least, most)

    def _block(self) -> int:
        """Most executions of the header, from ``{ bound: 0..10; }``."""
        self._at += 1
        for expected in ("bound", ":"):
            if self._word() != expected:
                raise self._refused("only 'bound' is known of a loop")
        least = self._number()
        if self._word() != "..":
            raise self._refused("a range is expected")
        most = self._executions(least, self._number())
        for expected in (";", "}"):
            if self._word() != expected:
                raise self._refused("only one 'bound' is known of a loop")
        return most

    def _executions(self, least: int, count: int | None) -> int:
        if count is None:
            raise self._refused("it has no maximum")
        if count < least:
            raise self._refused(ABOVE)
        where = self._peek()
        if where in ("begin", "end"):
            self._at += 1
        return max(count if where == "end" else count + 1, 1)

    def _peek(self) -> str:
        word = self._words[self._at] if self._at < len(self._words) else None
        return "" if word is None or word.quoted else word.text

    def _word(self) -> str:
        word = self._words[self._at].text if self._at < len(self._words) else ""
        self._at += 1
        return word

    def _number(self) -> int:
        value = number(self._word())
        if value is None:
            raise self._refused("a number is expected")
        return value

    def _refused(self, why: str) -> FactsError:
        shown = " ".join(word.text for word in self._words[:8])
        return refused(self._file, self._words[0].line, shown, why)
