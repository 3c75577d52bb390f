"""Readable names of Rust's symbols, as paths that facts and options can name.

Source: RFC 2603 (symbols that begin with ``_R``), and the older form ``_ZN...17h<hash>E``. Generic
arguments are left out, and ``<Type as Trait>::method`` becomes ``Type::Trait::method``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["rust_name"]

LEGACY = re.compile(r"_ZN(?P<path>\w[\w$.]*)17h[0-9a-f]{16}E(?P<more>(?:\.\w+)*)")
ESCAPE = re.compile(r"\$(\w+)\$")
ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
IMPLEMENTED = re.compile(r"<(?P<type>.+) as (?P<trait>[^<>]+).*>")
PLAIN = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*")
BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8",
    "i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "s": "i16",
    "t": "u16", "u": "unit", "x": "i64", "y": "u64", "z": "never", "p": "_",
}  # fmt: skip
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
DEEPEST = 64  # paths inside of paths
LONGEST = 2048  # characters


def rust_name(symbol: str) -> str | None:
    """The path that the symbol names; None if it is no symbol of Rust, or has no plain path."""
    if len(symbol) > LONGEST:
        return None
    if legacy := LEGACY.fullmatch(symbol):
        path = _of_components(legacy["path"])
        return None if path is None else path + legacy["more"]
    if not symbol.startswith("_R"):
        return None
    mangled, dot, more = symbol.partition(".")
    try:
        found = _Reader(mangled[2:]).path()
    except (IndexError, ValueError):
        return None
    return found + dot + more if PLAIN.fullmatch(found) else None


def _of_components(text: str) -> str | None:
    """The path of the older form: lengths and components."""
    components: list[str] = []
    while text:
        number = re.match(r"\d+", text)
        if number is None:
            return None
        end = number.end() + int(number[0])
        if end > len(text):
            return None
        components.append(_plain(text[number.end() : end]))
        text = text[end:]
    path = "::".join(components)
    return path if PLAIN.fullmatch(path) else None


def _plain(component: str) -> str:
    """A component without escapes; the type and the trait of an implementation as a path."""
    text = component.removeprefix("_") if component.startswith("_$") else component
    text = ESCAPE.sub(_character, text.replace("..", "::"))
    if implemented := IMPLEMENTED.fullmatch(text):
        trait = implemented["trait"].rsplit("::", 1)[-1]
        text = f"{implemented['type']}::{trait}"
    text = re.sub(r"<.*>", "", text.strip("<>{}")) or text
    return re.sub(r"^[&*]*(?:mut |const |dyn )?", "", text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if re.fullmatch(r"u[0-9a-f]{1,5}", code):
        return chr(int(code[1:], 16))
    return ESCAPES.get(code, "$")


@dataclass(slots=True)
class _Reader:
    """A cursor in a symbol of RFC 2603, behind ``_R``; raises IndexError or ValueError."""

    symbol: str
    at: int = 0
    depth: int = 0

    def path(self) -> str:
        """A path, without generic arguments."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError
        kind = self._next()
        if kind == "C":
            found = self._identifier()
        elif kind == "N":
            found = self._nested()
        elif kind == "M":
            self._implementation()
            found = self._type()
        elif kind in ("X", "Y"):
            if kind == "X":
                self._implementation()
            found = f"{self._type()}::{self.path().rsplit('::', 1)[-1]}"
        elif kind == "I":
            found = self.path()
            while not self._is_next("E"):
                self._argument()
        elif kind == "B":
            found = self._earlier().path()
        else:
            raise ValueError
        self.depth -= 1
        return found

    def _nested(self) -> str:
        space = self._next()
        outer, number = self.path(), self._disambiguator()
        name = self._plain_identifier()
        if space.isupper():
            name = f"{name or {'C': 'closure', 'S': 'shim'}.get(space, space)}_{number}"
        return f"{outer}::{name}"

    def _implementation(self) -> None:
        """The place of an implementation, which is not shown."""
        self._disambiguator()
        self.path()

    def _identifier(self) -> str:
        self._disambiguator()
        return self._plain_identifier()

    def _disambiguator(self) -> int:
        return self._number() + 1 if self._is_next("s") else 0

    def _plain_identifier(self) -> str:
        if self._is_next("u"):
            raise ValueError  # Punycode: no ASCII
        start = self.at
        while self.symbol[self.at].isdigit() and not (
            self.at > start and self.symbol[start] == "0"
        ):
            self.at += 1
        length = int(self.symbol[start : self.at])
        self._is_next("_")
        self.at += length
        if self.at > len(self.symbol):
            raise ValueError
        return self.symbol[self.at - length : self.at]

    def _number(self) -> int:
        """A number of base 62, which ends with ``_``."""
        start = self.at
        self.at = self.symbol.index("_", start) + 1
        digits = self.symbol[start : self.at - 1]
        value = 0
        for digit in digits:
            value = value * len(DIGITS) + DIGITS.index(digit)
        return value + 1 if digits else 0

    def _type(self) -> str:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError
        kind = self._next()
        if kind in BASIC:
            found = BASIC[kind]
        elif kind in ("R", "Q", "P", "O", "S"):
            if kind in ("R", "Q") and self._is_next("L"):
                self._number()
            found = self._type()
        elif kind == "A":
            found = self._type()
            self._constant()
        elif kind == "T":
            found = "tuple"
            while not self._is_next("E"):
                self._type()
        elif kind == "D":
            if self._is_next("G"):
                self._number()
            found = "dyn"
            while not self._is_next("E"):
                found = self.path()
                while self._is_next("p"):
                    self._plain_identifier()
                    self._type()
            if self._is_next("L"):
                self._number()
        elif kind == "B":
            found = self._earlier()._type()
        elif kind == "F":
            raise ValueError  # a function pointer has no path
        else:
            self.at -= 1
            found = self.path()
        self.depth -= 1
        return found

    def _argument(self) -> None:
        if self._is_next("L"):
            self._number()
        elif self._is_next("K"):
            self._constant()
        else:
            self._type()

    def _constant(self) -> None:
        if self._is_next("B"):
            self._number()
        elif not self._is_next("p"):
            self._type()
            self.at = self.symbol.index("_", self.at) + 1

    def _earlier(self) -> _Reader:
        """A reader of the part of the symbol to which a back reference points."""
        start, here = self.at - 1, self._number()
        if here >= start:
            raise ValueError
        return _Reader(self.symbol, here, self.depth)

    def _next(self) -> str:
        self.at += 1
        return self.symbol[self.at - 1]

    def _is_next(self, letter: str) -> bool:
        if self.symbol[self.at : self.at + 1] != letter:
            return False
        self.at += 1
        return True
