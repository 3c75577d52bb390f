"""Readable names of C++ symbols, as paths that facts and options can name.

Source: Itanium C++ ABI, 5.1. Parameters and template arguments are left out, as is the name of an
unnamed namespace; a thunk has the name of its function with ``.thunk``. Operators, destructors and
tables have no path: facts cannot name them so. ``itanium-demangler`` 1.1 of PyPI reads neither
local names, as of lambdas, nor references to arrays, nor functions as template arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["itanium_name"]

PLAIN = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
THUNK = re.compile(r"_ZT(?:h[n\d]+_|v[n\d]+_[n\d]+_)")
UNNAMED = "_GLOBAL__N"
BUILT_IN = "vwbcahstijlmxynofdegz"
OF_TWO_LETTERS = "defhisuacn"  # types that begin with D
QUALIFIERS = "rVKPROCG"
STANDARD = {
    "t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::basic_string",
    "i": "std::basic_istream", "o": "std::basic_ostream", "d": "std::basic_iostream",
}  # fmt: skip
DEEPEST = 64  # names inside of names
LONGEST = 2048  # characters


def itanium_name(symbol: str) -> str | None:
    """The path that the symbol names; None if it is no symbol of C++, or has no plain path."""
    if len(symbol) > LONGEST or not symbol.startswith("_Z"):
        return None
    mangled, dot, more = symbol.partition(".")
    thunk = THUNK.match(mangled)
    try:
        found = _Reader(mangled[thunk.end() if thunk else 2 :]).name()
    except (IndexError, ValueError):
        return None
    return found + (".thunk" if thunk else "") + dot + more if PLAIN.fullmatch(found) else None


@dataclass(slots=True)
class _Reader:
    """A cursor in a symbol behind ``_Z``; raises IndexError or ValueError."""

    symbol: str
    at: int = 0
    depth: int = 0

    def name(self) -> str:
        """A name, without template arguments."""
        self._deeper()
        if self._is_next("N"):
            found = self._nested()
        elif self._is_next("Z"):
            found = self._local()
        elif self._is_next("St"):
            found = f"std::{self._unqualified('')}"
        else:
            found = self._unqualified("")
        if self._is_next("I"):
            self._arguments()
        self.depth -= 1
        return found

    def _nested(self) -> str:
        """The components up to E."""
        while self._next_is_one_of("rVKRO"):
            self.at += 1
        path: list[str] = []
        while not self._is_next("E"):
            if self._is_next("S"):
                path.append(self._abbreviation())
            elif self._is_next("I"):
                self._arguments()
            elif self._is_next("M"):
                continue  # a lambda in the initial value of a member
            elif path and path[-1].startswith("lambda_") and self._is_next("cl"):
                continue  # the function of a lambda
            elif component := self._unqualified(path[-1] if path else ""):
                path.append(component)
        return "::".join(path)

    def _abbreviation(self) -> str:
        """A name of the standard; no plain path for an earlier part, which only types have."""
        kind = self._next()
        if kind not in STANDARD:
            self.at = self.symbol.index("_", self.at - 1) + 1
        return STANDARD.get(kind, "?")

    def _local(self) -> str:
        """An entity in a function."""
        outer = self.name()
        while not self._is_next("E"):
            self._type()
        if self._next_is_one_of("sd"):
            raise ValueError  # a string, or a default argument
        return f"{outer}::{self.name()}"

    def _unqualified(self, outer: str) -> str:
        """One component; "" for an unnamed namespace. A constructor has the name ``outer``."""
        if self._is_next("Ul"):
            while not self._is_next("E"):
                self._type()
            return f"lambda_{self._number()}"
        if self._is_next("Ut"):
            return f"unnamed_{self._number()}"
        if outer and self._is_next("C"):
            self.at += 1
            return outer.rsplit("::", 1)[-1]
        self._is_next("L")
        found = self._source_name()
        while self._is_next("B"):
            self._source_name()
        return "" if found.startswith(UNNAMED) else found

    def _source_name(self) -> str:
        digits = re.compile(r"[1-9]\d*").match(self.symbol, self.at)
        if digits is None:
            raise ValueError
        start, self.at = digits.end(), digits.end() + int(digits[0])
        if self.at > len(self.symbol):
            raise ValueError
        return self.symbol[start : self.at]

    def _number(self) -> int:
        """A number of lambdas or unnamed types before this one, which ends with ``_``."""
        end = self.symbol.index("_", self.at)
        digits, self.at = self.symbol[self.at : end], end + 1
        return int(digits) + 1 if digits else 0

    def _arguments(self) -> None:
        """Template arguments up to E."""
        self._deeper()
        while not self._is_next("E"):
            if self._is_next("J") or self._is_next("I"):
                self._arguments()
            elif self._is_next("Xad"):  # the address of an entity
                self._literal()
                if not self._is_next("E"):
                    raise ValueError
            elif self.symbol[self.at : self.at + 1] == "L":
                self._literal()
            else:
                self._type()
        self.depth -= 1

    def _literal(self) -> None:
        if self._next() != "L":
            raise ValueError
        if self._is_next("_Z"):
            self.name()
            while not self._is_next("E"):
                self._type()
            return
        self._type()
        self.at = self.symbol.index("E", self.at) + 1

    def _type(self) -> None:
        self._deeper()
        kind = self._next()
        if kind in QUALIFIERS:
            self._type()
        elif kind == "D":
            self._type_of_two_letters()
        elif kind == "F":
            while not self._is_next("E"):
                if not self._is_next("RE") and not self._is_next("OE"):
                    self._type()
                else:
                    self.at -= 1
        elif kind == "A":
            if self._next_is_one_of("0123456789"):
                self.at = self.symbol.index("_", self.at)
            if self._next() != "_":
                raise ValueError
            self._type()
        elif kind == "M":
            self._type()
            self._type()
        elif kind in "ST" and not self._next_is_one_of("t"):
            self._abbreviation()
            if self._is_next("I"):
                self._arguments()
        elif kind not in BUILT_IN:
            self.at -= 1
            self.name()
        self.depth -= 1

    def _type_of_two_letters(self) -> None:
        kind = self._next()
        if kind in "po":
            self._type()
        elif kind not in OF_TWO_LETTERS:
            raise ValueError

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError

    def _next(self) -> str:
        self.at += 1
        return self.symbol[self.at - 1]

    def _next_is_one_of(self, letters: str) -> bool:
        return self.symbol[self.at : self.at + 1] in [*letters]

    def _is_next(self, text: str) -> bool:
        if not self.symbol.startswith(text, self.at):
            return False
        self.at += len(text)
        return True
