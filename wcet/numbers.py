"""Numbers on the command line, each in its range. Raises UsageError that names the option."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from quoll.errors import UsageError
from quoll.printable import shortened

__all__ = ["LARGEST", "percentage", "seconds", "whole"]

LARGEST = (1 << 63) - 1
DIGITS = 19  # of the largest number
LONGEST = 1_000_000.0  # seconds: more than eleven days


def whole(option: str, low: int, high: int = LARGEST) -> Callable[[str], int]:
    """The reader of an integer from ``low`` to ``high``."""

    def read(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]+", text.strip(), re.ASCII) and len(text) <= DIGITS + 1:
            value = int(text)
            if low <= value <= high:
                return value
        raise UsageError(
            f"{option} must be a whole number from {low} to {high}, not {shortened(text)!r}"
        )

    return read


def seconds(option: str) -> Callable[[str], float]:
    """The reader of a time, more than 0."""

    def read(text: str) -> float:
        value = _number(text)
        if not 0 < value <= LONGEST:  # excludes nan
            raise UsageError(
                f"{option} must be more than 0 seconds and at most {LONGEST:,.0f}, "
                f"not {shortened(text)!r}"
            )
        return value

    return read


def percentage(option: str) -> Callable[[str], float]:
    """The reader of a share from 0 to 100."""

    def read(text: str) -> float:
        value = _number(text)
        if not 0 <= value <= 100:
            raise UsageError(f"{option} must be from 0 to 100 percent, not {shortened(text)!r}")
        return value

    return read


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() else math.nan
    except ValueError:
        return math.nan
