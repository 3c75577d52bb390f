"""How many random cases a test tries, and how many rows of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

__all__ = ["cases", "in_turn", "spread"]

S = TypeVar("S")
T = TypeVar("T")


def cases(few: int) -> int:
    """``few``, as often as the environment's ``CASES`` says: ``make test CASES=10``.

    ``few`` keeps a test at seconds. The campaigns that are recorded have many more.
    """
    return few * int(os.environ.get("CASES", "1"))


def spread(rows: Iterable[T], few: int) -> list[T]:
    """``cases(few)`` of the rows, at equal distances, the first among them; all if there are fewer.

    For parameters that differ in boards, presets, compilers or sizes: each is seconds of building
    or analysing, and finds the faults that the others find.
    """
    all_of_them = list(rows)
    count = min(len(all_of_them), cases(few))
    return [all_of_them[i * len(all_of_them) // count] for i in range(count)]


def in_turn(rows: Iterable[T], ways: Sequence[S]) -> list[tuple[T, S]]:
    """Each row with ``cases(1)`` of the ways, all ways in turn; each with all if there are fewer.

    For programs (rows) at levels of optimisation or on boards (ways).
    """
    count = min(len(ways), cases(1))
    return [(row, ways[(i + k) % len(ways)]) for i, row in enumerate(rows) for k in range(count)]
