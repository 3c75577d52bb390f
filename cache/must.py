"""The must analysis of a cache of which each set guarantees only the line used last.

A set is in one of two kinds of abstract state: *x is resident*, or *unknown*. What a piece of
code does to one set is one of four transformers, closed under composition (rule 11):

    identity;  CONSTANT x (x was accessed last);  KEEP x (resident afterwards only if it is x
    and was before);  UNKNOWN.

This is exact for a direct-mapped cache, and sound for a set-associative one that never evicts
the line it used last before the set is used again: LRU, FIFO, round-robin, also with one counter
for all sets, and random replacement all evict only to make room in the same set (rule 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNKNOWN", "Effect", "EffectBuilder", "MustStates"]

UNKNOWN = -1
Row = NDArray[np.int32]


def _keep(line: int) -> int:
    """Code of KEEP ``line``; a code >= 0 is CONSTANT, -1 UNKNOWN, below that KEEP."""
    return -2 - line


@dataclass(frozen=True, slots=True)
class Effect:
    """A transformer per set; sets that are not listed: identity, or UNKNOWN if ``wiped``."""

    wiped: bool
    codes: tuple[tuple[int, int], ...]  # (set, code), sorted


@dataclass(slots=True)
class EffectBuilder:
    """Composes the accesses of a piece of code, in program order.

    ``touched`` collects every line named, which the composition alone does not tell.
    """

    sets: int
    wiped: bool = False
    codes: dict[int, int] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)

    def access(self, line: int) -> None:
        """A certain access: ``line`` is resident afterwards."""
        self.touched.add(line)
        self.codes[line % self.sets] = line

    def may_access(self, line: int) -> None:
        """join(access, no access): ``line`` is resident afterwards if it was before."""
        self.touched.add(line)
        at = line % self.sets
        before = self.codes.get(at, UNKNOWN if self.wiped else None)
        if before is None:
            self.codes[at] = _keep(line)
        elif before not in (line, _keep(line)):
            self.codes[at] = UNKNOWN

    def may_access_any(self, lines: Iterable[int] | None) -> None:
        """An access to any number of ``lines`` (None: all lines there are), or to none."""
        if lines is None:
            self.wiped = True
            self.codes.clear()
            return
        for line in lines:
            self.may_access(line)

    def resident(self, line: int, row: Row) -> bool:
        """Whether ``line`` is resident after what was composed so far, started in ``row``."""
        at = line % self.sets
        code = self.codes.get(at, UNKNOWN if self.wiped else None)
        if code is None or code == _keep(line):
            return bool(row[at] == line)
        return code == line

    def build(self) -> Effect:
        """The composition."""
        return Effect(self.wiped, tuple(sorted(self.codes.items())))


class MustStates:
    """Interned states of all sets, and effects on them: equal numbers mean equal things.

    Applying an effect and joining are remembered, so that the copies of a block in many contexts
    cost little.
    """

    TOP = 0  # nothing is known

    def __init__(self, sets: int) -> None:
        self._rows: list[Row] = []
        self._numbers: dict[bytes, int] = {}
        self._effects: dict[Effect, int] = {}
        self._effect_list: list[Effect] = []
        self._applied: dict[tuple[int, int], int] = {}
        self._joined: dict[tuple[int, int], int] = {}
        self._intern(np.full(sets, UNKNOWN, np.int32))

    def _intern(self, row: Row) -> int:
        key = row.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._rows)
            self._rows.append(row)
        return number

    def row(self, state: int) -> Row:
        """Resident line per set, or UNKNOWN; not to be changed."""
        return self._rows[state]

    def effect(self, effect: Effect) -> int:
        """The number of ``effect``, as ``apply`` wants it."""
        number = self._effects.setdefault(effect, len(self._effect_list))
        if number == len(self._effect_list):
            self._effect_list.append(effect)
        return number

    def apply(self, state: int, effect: int) -> int:
        """The state after an effect, given by its number."""
        key = (state, effect)
        after = self._applied.get(key)
        if after is None:
            row = self._after(self._rows[state], self._effect_list[effect])
            after = self._applied[key] = self._intern(row)
        return after

    @staticmethod
    def _after(row: Row, effect: Effect) -> Row:
        row = np.full_like(row, UNKNOWN) if effect.wiped else row.copy()
        for at, code in effect.codes:
            if code >= UNKNOWN:
                row[at] = code
            elif row[at] != -2 - code:
                row[at] = UNKNOWN
        return row

    def join(self, a: int, b: int) -> int:
        """What both states know."""
        if a == b:
            return a
        key = (a, b) if a < b else (b, a)
        joined = self._joined.get(key)
        if joined is None:
            x, y = self._rows[a], self._rows[b]
            joined = self._intern(np.where(x == y, x, np.int32(UNKNOWN)))
            self._joined[key] = joined
        return joined

    def leq(self, a: int, b: int) -> bool:
        """Whether ``b`` covers ``a``: it knows no line that ``a`` does not know."""
        return self.join(a, b) == b

    def known(self, state: int) -> Mapping[int, int]:
        """The sets with a known line."""
        row = self._rows[state]
        return {int(s): int(row[s]) for s in np.flatnonzero(row != UNKNOWN)}
