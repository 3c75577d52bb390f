"""The facts of another analyser's file, as text with their lines.

OTAWA counts the back edges of a loop; aiT counts tests of the condition or executions of the body.
A fact counts executions of the header per entry of the loop: one more than its back edges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quoll.errors import FactsError

__all__ = ["ABOVE", "ImportedFact", "ImportedFacts", "label_place", "number", "refused"]

NUMBER = re.compile(r"(?P<hex>0[xX][0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*)")
SYMBOL = re.compile(r"[A-Za-z_$.][\w$.]*")
ABOVE = "its minimum is above its maximum"
FILE = re.compile(r"[^\s:,]+\.[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class ImportedFact:
    """``text`` as in a facts file; ``single_loop``: the function whose only loop it is about."""

    line: int
    text: str
    single_loop: str | None = None


@dataclass(frozen=True, slots=True)
class ImportedFacts:
    """The supported facts, and remarks on ignored ones, which could only lower a bound."""

    facts: tuple[ImportedFact, ...]
    remarks: tuple[str, ...] = ()


def refused(file: str, line: int, what: str, why: str) -> FactsError:
    """The error for a statement without an equivalent fact."""
    return FactsError(
        f"'{what}' is not read: {why}",
        where=f"{file}:{line}",
        hint="leave it out, or say it in a facts file; 'wcet help interchange' lists the "
        "supported elements",
    )


def number(text: str) -> int | None:
    """The value of a number as in C, where a leading 0 means octal; None for other text."""
    match = NUMBER.fullmatch(text)
    if match is None or len(text) > 40:
        return None
    if match["hex"]:
        return int(text, 16)
    return int(text, 8) if match["octal"] else int(text)


def label_place(label: str, offset: int) -> str | None:
    """``label+0xOFFSET``; None if no place can express it."""
    if SYMBOL.fullmatch(label) is None or offset < 0:
        return None
    return f"{label}+{offset:#x}" if offset else label


def line_place(file: str, line: int) -> str | None:
    """``file.c:LINE``; None if no place can express it."""
    return f"{file}:{line}" if FILE.fullmatch(file) else None
