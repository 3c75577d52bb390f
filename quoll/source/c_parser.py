"""The functions and the loop statements of a C file, each with its lines.

A recursive descent over the words that structure a file (C11, 6.8 and 6.9.1). Text like ``name(...)
{`` inside of a function is a loop too: a macro may begin one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.errors import FactsError
from quoll.source.tokens import CToken

__all__ = ["FunctionText", "LoopText", "structure"]

DEEPEST = 150  # most nested statements; the parser uses the stack of Python
NO_NAMES = ("__attribute__", "__asm__", "asm", "__declspec", "_Alignas", "_Static_assert")
NO_MACROS = (*NO_NAMES, "return", "sizeof", "defined")


@dataclass(frozen=True, slots=True)
class LoopText:
    """A loop statement: its first and last line, and the identifiers in it."""

    first: int
    last: int
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function: its possible names, its first and last line, and the identifiers in it."""

    names: frozenset[str]
    first: int
    last: int
    words: frozenset[str]


def structure(found: Sequence[CToken]) -> tuple[tuple[FunctionText, ...], tuple[LoopText, ...]]:
    """All functions, and all loops, inner ones first.

    Raises FactsError if statements nest too deep.
    """
    reader = _Reader(found)
    reader.declarations()
    return tuple(reader.functions), tuple(reader.loops)


class _Reader:
    def __init__(self, found: Sequence[CToken]) -> None:
        self._tokens = found
        self._at = self._depth = 0
        self.functions: list[FunctionText] = []
        self.loops: list[LoopText] = []

    @property
    def _text(self) -> str:
        """The next word; empty at the end of the file."""
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def declarations(self) -> None:
        """Parse up to a closing brace, or the end of the file."""
        self._enter()
        names: set[str] = set()
        begin, value = self._at, False
        while self._text and (self._text != "}" or self._depth == 1):
            text = self._text
            if text == "(":
                name = self._tokens[self._at - 1].text if self._at > begin else ""
                if name and self._tokens[self._at - 1].is_word and name not in NO_NAMES:
                    names.add(name)
                self._group()
                continue
            self._at += 1
            if text == "{" and names and not value:
                self._at -= 1
                self._statement()
                span = self._span(begin)
                self.functions.append(FunctionText(frozenset(names), *span, self._words(begin)))
            elif text == "{":
                self.declarations()
                self._at += 1
                continue
            value = value or text == "="
            if text in (";", "{", "}"):
                names, begin, value = set(), self._at, False
        self._depth -= 1

    def _statement(self) -> None:
        """Parse one statement; a closing brace is none."""
        self._enter()
        begin, text = self._at, self._text
        if text == "{":
            self._at += 1
            while self._text and self._text != "}":
                self._statement()
            self._at += 1
        elif text in ("for", "while"):
            self._at += 1
            self._group()
            self._statement()
            self._add_loop(begin)
        elif text == "do":
            self._at += 1
            self._statement()
            if self._text == "while":
                self._at += 1
                self._group()
            self._add_loop(begin)
        elif text in ("if", "switch"):
            self._at += 1
            self._group()
            self._statement()
            if self._text == "else":
                self._at += 1
                self._statement()
        else:
            self._simple()
        self._depth -= 1

    def _simple(self) -> None:
        """Parse up to a semicolon, or the colon of a label."""
        begin, chosen = self._at, 0
        while self._text and self._text != "}":
            text = self._text
            if text == "(":
                word = self._tokens[self._at - 1] if self._at > begin else None
                self._group()
                named = word is not None and word.is_word and word.text not in NO_MACROS
                if self._text == "{" and named:
                    self._statement()
                    self._add_loop(begin)
                    return
            elif text == "{":
                self._statement()
            else:
                self._at += 1
                chosen += text == "?"
                if text == ";" or (text == ":" and not chosen):
                    return
                chosen -= text == ":"

    def _group(self) -> None:
        """Parse a parenthesised group, if it comes next; blocks in it have statements."""
        if self._text != "(":
            return
        self._enter()
        self._at += 1
        while self._text and self._text != ")":
            if self._text == "(":
                self._group()
            elif self._text == "{":
                self._statement()
            else:
                self._at += 1
        self._at += 1
        self._depth -= 1

    def _add_loop(self, begin: int) -> None:
        self.loops.append(LoopText(*self._span(begin), self._words(begin)))

    def _span(self, begin: int) -> tuple[int, int]:
        """First and last line of the words since ``begin``."""
        last = max(begin, min(self._at, len(self._tokens)) - 1)
        return self._tokens[begin].line, self._tokens[last].line

    def _words(self, begin: int) -> frozenset[str]:
        return frozenset(t.text for t in self._tokens[begin : self._at] if t.is_word)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise FactsError(
                f"statements are nested more than {DEEPEST} deep",
                where=f"line {self._tokens[min(self._at, len(self._tokens) - 1)].line}",
            )
