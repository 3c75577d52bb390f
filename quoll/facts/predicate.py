"""Predicates over words of memory: comparisons of sums of words, joined by ``and`` and ``or``.

    head <= 7 and tail <= 7
    byte object+4 & 0x1f <= 24 or object = 0
    signed credit >= -1
    word +8 < limit                 in ``for each of``: a field of the element

A word is 4 bytes; ``half`` 2, ``byte`` 1, zero-extended, or sign-extended in a ``signed``
comparison. Sums are modulo 2**32. ``and`` binds tighter than ``or``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quoll.errors import FactsError
from quoll.facts.fact import NUMBER, SYMBOL, FactSource, number

__all__ = ["Comparison", "MemoryWord", "Predicate", "WordSum", "read_predicate"]

MASK = (1 << 32) - 1
SIZES = {"byte": 1, "half": 2, "word": 4}
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "=": operator.eq,
    "!=": operator.ne,
}
TOKEN = re.compile(
    rf"\s*(?:(?P<field>\+{NUMBER})|(?P<place>{SYMBOL}(?:\+{NUMBER})?)|(?P<number>-?{NUMBER})"
    r"|(?P<sign><=|>=|!=|[<>=&+]))"
)
KEYWORDS = frozenset(("and", "or", "signed", *SIZES))
FORM = "PREDICATE compares words: SYMBOL, SYMBOL+OFFSET, byte or half SYMBOL, perhaps & MASK"


@dataclass(frozen=True, slots=True)
class MemoryWord:
    """``size`` bytes at a place, of which the bits ``mask`` count.

    ``place``: a symbol with its offset; in an element of an array ``+OFFSET``.
    """

    place: str
    size: int = 4
    mask: int = MASK

    @property
    def symbol(self) -> str:
        """The symbol of its place."""
        return self.place.partition("+")[0]

    @property
    def offset(self) -> int:
        """The bytes from the symbol to its place."""
        return number(self.place.partition("+")[2] or "0")

    def __str__(self) -> str:
        kind = {1: "byte ", 2: "half ", 4: ""}[self.size]
        return f"{kind}{self.place}{'' if self.mask == MASK else f' & {self.mask:#x}'}"


Read = Callable[[MemoryWord], int]  # the bytes of a word, little-endian, before its mask


@dataclass(frozen=True, slots=True)
class WordSum:
    """The sum of words and a constant, modulo 2**32."""

    words: tuple[MemoryWord, ...]
    constant: int

    def value(self, read: Read, *, signed: bool) -> int:
        """The sum, as a signed number if ``signed``."""
        total = self.constant
        for word in self.words:
            value = read(word) & word.mask
            total += signed_value(value, 8 * word.size) if signed else value
        return signed_value(total & MASK, 32) if signed else total & MASK

    def __str__(self) -> str:
        parts = list(map(str, self.words))
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sums, unsigned or ``signed``."""

    left: WordSum
    relation: str
    right: WordSum
    signed: bool = False

    def compares(self, read: Read) -> bool:
        """Whether it holds in a memory."""
        values = (side.value(read, signed=self.signed) for side in (self.left, self.right))
        return RELATIONS[self.relation](*values)

    def reads(self) -> Iterator[MemoryWord]:
        """The words of both sides."""
        yield from self.left.words
        yield from self.right.words

    def __str__(self) -> str:
        return f"{'signed ' if self.signed else ''}{self.left} {self.relation} {self.right}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """At least one of ``ways`` holds, each of which is a conjunction of comparisons."""

    ways: tuple[tuple[Comparison, ...], ...]

    def holds(self, read: Read) -> bool:
        """Whether it holds in a memory."""
        return any(all(one.compares(read) for one in way) for way in self.ways)

    @property
    def words(self) -> tuple[MemoryWord, ...]:
        """The words that it reads, each once."""
        found = (word for way in self.ways for one in way for word in one.reads())
        return tuple(dict.fromkeys(found))

    @property
    def always(self) -> tuple[Comparison, ...]:
        """The comparisons that hold wherever the predicate does."""
        return self.ways[0] if len(self.ways) == 1 else ()

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, way)) for way in self.ways)


def signed_value(value: int, bits: int) -> int:
    """The number that the lowest ``bits`` bits of a word stand for in two's complement."""
    return (value ^ 1 << bits - 1) - (1 << bits - 1)


def read_predicate(source: FactSource, text: str, *, fields: bool = False) -> Predicate:
    """The predicate in ``text``; ``fields``: its words are fields of an element.

    Raises FactsError for text of another form, and for a constant that no word can be.
    """
    return _Reader(source, text, fields=fields).predicate()


class _Reader:
    """Reads a predicate; ``kind`` and ``_token``: the token to be read next."""

    def __init__(self, source: FactSource, text: str, *, fields: bool) -> None:
        self._source, self._rest, self._fields = source, text, fields
        self.kind, self._token = "", ""
        self._next()

    def _refusal(self, why: str) -> FactsError:
        return FactsError(f"no predicate: {why}", where=str(self._source), hint=FORM)

    def _next(self) -> str:
        """Move to the next token; returns the text of the one before."""
        before, match = self._token, TOKEN.match(self._rest)
        if match is None:
            if self._rest.strip():
                raise self._refusal(f"'{self._rest.strip()}' is not expected")
            self.kind = self._token = ""
            return before
        self._rest = self._rest[match.end() :]
        self.kind, self._token = match.lastgroup or "", match[0].strip()
        if self._token in KEYWORDS:
            self.kind = "keyword"
        return before

    def _took(self, *texts: str) -> str:
        """The next token, if it is one of ``texts``, which is then read; else ""."""
        return self._next() if self._token in texts and self.kind != "place" else ""

    def predicate(self) -> Predicate:
        ways = [self._way()]
        while self._took("or"):
            ways.append(self._way())
        if self.kind:
            raise self._refusal(f"'{self._token}' is not expected")
        return Predicate(tuple(ways))

    def _way(self) -> tuple[Comparison, ...]:
        parts = [self._comparison()]
        while self._took("and"):
            parts.append(self._comparison())
        return tuple(parts)

    def _comparison(self) -> Comparison:
        signed = bool(self._took("signed"))
        left = self._sum()
        relation = self._took(*RELATIONS)
        if not relation:
            raise self._refusal(f"no comparison stands behind '{left}'")
        compared = Comparison(left, relation, self._sum(), signed)
        if not tuple(compared.reads()):
            raise self._refusal(f"'{compared}' names no word")
        return compared

    def _sum(self) -> WordSum:
        words, constant = list[MemoryWord](), 0
        while True:
            if self.kind == "number":
                constant += self._constant()
            else:
                words.append(self._word())
            if not self._took("+"):
                return WordSum(tuple(words), constant)

    def _constant(self) -> int:
        text = self._next()
        value = -number(text[1:]) if text.startswith("-") else number(text)
        if not -(1 << 31) <= value <= MASK:
            raise self._refusal(f"no word is {text}")
        return value

    def _word(self) -> MemoryWord:
        size = SIZES[self._took(*SIZES) or "word"]
        wanted = "field" if self._fields else "place"
        if self.kind != wanted:
            expected = "a field, +OFFSET," if self._fields else "a symbol"
            raise self._refusal(f"{expected} is expected, not '{self._token or 'the end'}'")
        place = self._next()
        if not self._took("&"):
            return MemoryWord(place, size)
        if self.kind != "number":
            raise self._refusal("a mask is a number")
        mask = self._constant()
        if not 0 < mask < 1 << 8 * size:
            raise self._refusal(f"no mask of {size} bytes is {mask:#x}")
        return MemoryWord(place, size, mask)
