"""Strict reading of TOML: every key known and present, every value of its type.

A ``TomlTable`` gives each key once; ``close`` refuses unknown keys. Errors name the file and the
key.
"""

from __future__ import annotations

import tomllib
from fractions import Fraction
from pathlib import Path
from types import UnionType
from typing import Any

from quoll.errors import InputError
from quoll.input_files import Unreadable, read_input
from quoll.printable import shortened

__all__ = ["TomlTable", "read_toml"]

LARGEST = 16 << 20  # bytes of a file


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a file. Raises InputError if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(read_input(path, LARGEST).decode("utf-8"))
    except Unreadable as error:
        raise InputError(f"{path} {error}") from error
    except (ValueError, RecursionError) as error:  # also for numbers of too many digits
        raise InputError(f"{path}: not a TOML file: {error}") from error


class TomlTable:
    """One table of a TOML file, with the path of keys that leads to it."""

    def __init__(self, content: dict[str, Any], file: str, path: str = "") -> None:
        self._content = dict(content)
        self._file = file
        self._path = path
        self.sources: dict[str, str] = {}  # key path of each figure -> where it comes from

    @classmethod
    def load(cls, path: Path) -> TomlTable:
        """The top table of a file. Raises InputError if it cannot be read or is not TOML."""
        return cls(read_toml(path), str(path))

    def error(self, key: str, message: str) -> InputError:
        """An error about ``key`` of this table."""
        return InputError(f"{self._file}: {self._path}{key}: {message}")

    @property
    def name(self) -> str:
        """The path of keys to this table."""
        return self._path.rstrip(".")

    def remaining(self) -> list[str]:
        """Keys not yet taken."""
        return list(self._content)

    def _take(self, key: str, kind: type | UnionType, name: str) -> Any:
        if key not in self._content:
            raise self.error(key, "missing")
        value = self._content.pop(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"must be {name}, not {_shown(value)}")
        return value

    def text(self, key: str, allowed: tuple[str, ...] | None = None) -> str:
        """A string, one of ``allowed`` if given."""
        value: str = self._take(key, str, "a string")
        if allowed is not None and value not in allowed:
            raise self.error(key, f"must be one of {', '.join(allowed)}, not {_shown(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self._take(key, list, "a list of strings")
        if not all(isinstance(v, str) for v in values):
            raise self.error(key, "must be a list of strings")
        return tuple(values)

    def flag(self, key: str) -> bool:
        """True or false."""
        value: bool = self._take(key, bool, "true or false")
        return value

    def number(self, key: str, low: int = 0, high: int = 1 << 40) -> int:
        """An integer from ``low`` to ``high``."""
        value: int = self._take(key, int, "an integer")
        if not low <= value <= high:
            raise self.error(key, f"must be from {low} to {high}, not {_shown(value)}")
        return value

    def fraction(self, key: str) -> Fraction:
        """A number that is not negative, with or without a point."""
        value = self._take(key, int | float, "a number")
        if isinstance(value, bool) or not 0 <= value < 1 << 40:
            raise self.error(key, f"must be a number from 0 on, not {_shown(value)}")
        return Fraction(str(value))

    def number_or_text(self, key: str) -> str:
        """A string, or an integer as a string."""
        value = self._take(key, int | str, "an integer or a string")
        if isinstance(value, bool):
            raise self.error(key, f"must be an integer or a string, not {_shown(value)}")
        return str(value)

    def addresses(self, key: str) -> tuple[int, ...]:
        """A list of 32-bit addresses."""
        values = self._take(key, list, "a list of addresses")
        if not all(_is_address(v) for v in values):
            raise self.error(key, "must be a list of 32-bit addresses")
        return tuple(values)

    def numbers(self, key: str) -> tuple[int, ...]:
        """A list of integers from 0 on, of 32 bits."""
        values = self._take(key, list, "a list of integers")
        if not all(_is_address(v) for v in values):
            raise self.error(key, "must be a list of integers from 0 to 4294967295")
        return tuple(values)

    def address_range(self, key: str) -> tuple[int, int]:
        """``[low, high]``: 32-bit addresses, both included."""
        values = self._take(key, list, "[low, high]")
        ints = all(_is_address(v) for v in values)
        if len(values) != 2 or not ints or values[0] > values[1]:
            raise self.error(key, "must be [low, high], 32-bit addresses in ascending order")
        return values[0], values[1]

    def figure(self, key: str, low: int = 0) -> int:
        """``{ value = N, source = "..." }``; the source goes into ``sources``."""
        with_source = self.table(key)
        value = with_source.number("value", low)
        self.sources[f"{self._path}{key}"] = with_source.text("source")
        with_source.close()
        return value

    def present(self, key: str) -> bool:
        """Whether an optional key is there."""
        return key in self._content

    def table(self, key: str) -> TomlTable:
        """A table inside this one; it shares ``sources``."""
        inner = TomlTable(self._take(key, dict, "a table"), self._file, f"{self._path}{key}.")
        inner.sources = self.sources
        return inner

    def tables(self, key: str) -> list[TomlTable]:
        """A list of tables."""
        values = self._take(key, list, "a list of tables")
        if not all(isinstance(v, dict) for v in values):
            raise self.error(key, "must be a list of tables")
        return [TomlTable(v, self._file, f"{self._path}{key}[{i}].") for i, v in enumerate(values)]

    def close(self) -> None:
        """Raise InputError for keys that were not read."""
        if self._content:
            raise self.error(sorted(self._content)[0], "unknown key")


def _is_address(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32


def _shown(value: object) -> str:
    """A value for a message; very long numbers, which Python does not print, are replaced."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length():,} bits"
    return shortened(repr(value)) if isinstance(value, str | int | float) else type(value).__name__
