# SPDX-License-Identifier: BSD-2-Clause
"""A fault: one edit of one statement, known by content, so that it outlives other edits."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A part of the source that a fault replaces as a whole.

    It is a "statement", an "expression", an "instruction", or the "case" of a switch, whose place
    is the compared expression and whose ``label`` is the label of the case.
    """

    shape: str
    start: int
    end: int
    label: bytes = b""


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of a file from ``start`` to ``end`` become ``new``; ``place`` is around them."""

    operator: str
    start: int
    end: int
    new: bytes
    place: Place

    def apply(self, source: bytes) -> bytes:
        """Lines keep their numbers."""
        lines = source[self.start : self.end].count(b"\n") - self.new.count(b"\n")
        return source[: self.start] + self.new + b"\n" * lines + source[self.end :]


@dataclass(frozen=True, slots=True)
class Site:
    """A statement, and the edits that each make a fault of it.

    ``nth``: of the statements of this function with the same text, from 0.
    """

    file: str  # below the kernel's folder
    function: str
    text: str
    nth: int
    start: int
    end: int
    edits: tuple[Edit, ...]

    def order(self, seed: int) -> list[Edit]:
        """The edits in the order in which they are tried: first an operator is drawn."""
        rng = random.Random(f"{seed}/{self.file}/{self.function}/{self.text}/{self.nth}")
        by_operator: dict[str, list[Edit]] = {}
        for edit in self.edits:
            by_operator.setdefault(edit.operator, []).append(edit)
        for edits in by_operator.values():
            rng.shuffle(edits)
        operators = list(by_operator)
        rng.shuffle(operators)
        found: list[Edit] = []
        while operators:
            found += [by_operator[operator].pop() for operator in operators]
            operators = [operator for operator in operators if by_operator[operator]]
        return found

    def fault(self, edit: Edit, source: bytes) -> Fault:
        mutated = source[self.start : edit.start] + edit.new + source[edit.end : self.end]
        return Fault(self.file, self.function, edit.operator, self.text, normal(mutated), self.nth)


@dataclass(frozen=True, slots=True)
class Fault:
    """A mutant, as recorded in a journal and in a list of reasons."""

    file: str
    function: str
    operator: str
    old: str
    new: str
    nth: int

    @property
    def key(self) -> str:
        text = "\0".join((self.file, self.function, self.old, self.new, str(self.nth)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.file}: {self.function}: {self.old} → {self.new or 'nothing'}"


def normal(text: bytes) -> str:
    return " ".join(text.decode().replace("\\\n", " ").split())
