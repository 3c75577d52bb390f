"""The entries of a kernel that its exception vectors lead to, and which of them can have a bound.

A handler from which control gets to no end of a path is endless, such as ``b .``: it has no bound,
and no entry is made of it. Nor is one made of the reset, behind which the kernel runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quoll.arm.exception_table import EXCEPTIONS, exception_tables
from quoll.cfg.cfg import Program
from quoll.errors import WcetError
from quoll.extraction.extract import extract
from quoll.image.image import Image

__all__ = ["EntryKind", "ExceptionEntry", "exception_entries"]

RESET = EXCEPTIONS[0]


class EntryKind(Enum):
    """Whether an exception has a bound, and the reason if not."""

    HANDLER = "handler"
    RESET = "the kernel starts there"
    ENDLESS = "it never ends"
    NO_CODE = "no code is there"


@dataclass(frozen=True, slots=True)
class ExceptionEntry:
    """A handler, and the exceptions whose vectors lead to it.

    ``name``: a symbol that denotes it alone, else its address, odd for Thumb code.
    """

    name: str
    word: int
    exceptions: tuple[str, ...]
    kind: EntryKind


def exception_entries(image: Image) -> tuple[ExceptionEntry, ...]:
    """All handlers of all exception tables, in the order of the vectors."""
    found: dict[int, dict[str, None]] = {}
    for table in exception_tables(image):
        for exception, handler in zip(EXCEPTIONS, table.handlers, strict=True):
            if handler is not None:
                found.setdefault(handler, {}).setdefault(exception)
    return tuple(
        ExceptionEntry(_name(image, word), word, tuple(names), _kind(image, word, *names))
        for word, names in found.items()
    )


def _name(image: Image, word: int) -> str:
    """A symbol of the handler that is unique, else its address."""
    addr = word & ~1
    named = [s for s in reversed(image.symbols.at(addr)) if image.only_symbol(s.name) is not None]
    functions = [s.name for s in named if s.kind == "func"]
    plain = [s.name for s in named if s.name.isprintable()]
    return next(iter((*functions, *plain)), f"{word:#x}")


def _kind(image: Image, word: int, *exceptions: str) -> EntryKind:
    if RESET in exceptions:
        return EntryKind.RESET
    try:
        program = extract(image, [word])
    except WcetError:
        return EntryKind.NO_CODE
    return EntryKind.HANDLER if _may_end(program, word & ~1) else EntryKind.ENDLESS


def _may_end(program: Program, entry: int) -> bool:
    """Whether control gets to a return or another end of a path, as far as it is followed."""
    blocks = (block for cfg in program.functions.values() for block in cfg.blocks)
    returns = program.functions[entry].returns
    return returns or bool(program.unresolved) or any(block.exits for block in blocks)
