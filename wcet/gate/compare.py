"""An old and a new record: which entries became worse, and which lines of their paths did it.

Functions are matched by name, and those that are left by their lines; lines within a function by
their text and order, else by their number. So a renamed file or lines that moved change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from fractions import Fraction

from wcet.gate.record import EntryRecord, LineRecord, LoopRecord, Record

__all__ = ["EntryChange", "LineChange", "RecordChange", "Verdict", "compare"]

ALIKE = 0.6  # of the lines of two functions, from which on one is the other with a new name
NOTHING = EntryRecord(None, "", {}, (), ())


class Verdict(Enum):
    """What is said of one entry; the value is for people."""

    SAME = "same"
    BETTER = "better"
    WITHIN = "worse, within the tolerance"
    WORSE = "worse than the baseline"
    OVER = "over its budget"
    UNBOUNDED = "no bound"
    NEW = "not in the baseline"
    GONE = "not analysed"

    @property
    def fails(self) -> bool:
        """Whether the gate is closed to it."""
        return self in (Verdict.WORSE, Verdict.OVER, Verdict.UNBOUNDED, Verdict.GONE)


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of a worst path; ``before`` or ``after`` is None where it is not on that path."""

    before: LineRecord | None
    after: LineRecord | None

    @property
    def cycles(self) -> int:
        """What it takes more."""
        return (self.after.cycles if self.after else 0) - (self.before.cycles if self.before else 0)

    @property
    def line(self) -> LineRecord:
        """As it is now, if it is."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One entry. ``lines``: those that take more or less, the greatest increase first."""

    name: str
    verdict: Verdict
    before: EntryRecord
    after: EntryRecord
    budget: int | None  # cycles
    lines: tuple[LineChange, ...]
    loops: tuple[str, ...]
    reason: str = ""  # why there is no bound

    @property
    def cycles(self) -> int | None:
        """What it takes more, if both are numbers."""
        if self.before.cycles is None or self.after.cycles is None:
            return None
        return self.after.cycles - self.before.cycles


@dataclass(frozen=True, slots=True)
class RecordChange:
    """All entries, in the order of the new record; assumptions that are new, or gone."""

    entries: tuple[EntryChange, ...]
    new_assumptions: tuple[str, ...]
    gone_assumptions: tuple[str, ...]

    @property
    def failed(self) -> tuple[EntryChange, ...]:
        """The entries for which the gate is closed."""
        return tuple(e for e in self.entries if e.verdict.fails)


def compare(
    old: Record | None, new: Record, budgets: Mapping[str, int], tolerance: Fraction
) -> RecordChange:
    """``tolerance`` is the part of a bound by which it may grow; without ``old`` budgets decide."""
    known = old.entries if old else {}
    changes = [
        _entry(name, known.get(name), entry, budgets.get(name), tolerance)
        for name, entry in new.entries.items()
    ]
    for name, reason in new.unbounded.items():
        before = known.get(name, NOTHING)
        changes.append(
            EntryChange(name, Verdict.UNBOUNDED, before, NOTHING, budgets.get(name), (), (), reason)
        )
    seen = {change.name for change in changes}
    for name in (*known, *(b for b in budgets if b not in known)):
        if name not in seen:
            before = known.get(name, NOTHING)
            changes.append(
                EntryChange(name, Verdict.GONE, before, NOTHING, budgets.get(name), (), ())
            )
    earlier = old.assumed if old else new.assumed
    return RecordChange(
        tuple(changes),
        tuple(a for a in new.assumed if a not in earlier),
        tuple(a for a in earlier if a not in new.assumed),
    )


def _entry(
    name: str,
    before: EntryRecord | None,
    after: EntryRecord,
    budget: int | None,
    tolerance: Fraction,
) -> EntryChange:
    verdict = _verdict(before, after, tolerance)
    if budget is not None and (after.cycles is None or after.cycles > budget):
        verdict = Verdict.OVER
    old = before or NOTHING
    pairs = _matched(old.lines, after.lines) if before else []
    lines = [change for change in pairs if change.cycles]
    lines.sort(key=lambda c: (-c.cycles, c.line.function, c.line.line))
    loops = tuple(_loops(old.loops, after.loops)) if before else ()
    return EntryChange(name, verdict, old, after, budget, tuple(lines), loops)


def _verdict(before: EntryRecord | None, after: EntryRecord, tolerance: Fraction) -> Verdict:
    if before is None:
        return Verdict.NEW
    if before.cycles is None or after.cycles is None:
        same = (before.cycles, before.formula) == (after.cycles, after.formula)
        return Verdict.SAME if same else Verdict.WORSE  # another function: nobody says it is less
    if after.cycles == before.cycles:
        return Verdict.SAME
    if after.cycles < before.cycles:
        return Verdict.BETTER
    allowed = before.cycles * (1 + tolerance)
    return Verdict.WITHIN if after.cycles <= allowed else Verdict.WORSE


def _matched(old: Sequence[LineRecord], new: Sequence[LineRecord]) -> list[LineChange]:
    """Every line of both, with its like in the other."""
    before, after = _by_function(old), _by_function(new)
    names = _renamed(before, after)
    changes: list[LineChange] = []
    for name, lines in after.items():
        changes += _paired(before.pop(names.get(name, name), []), lines)
    changes += [LineChange(line, None) for lines in before.values() for line in lines]
    return changes


def _by_function(lines: Sequence[LineRecord]) -> dict[str, list[LineRecord]]:
    found: dict[str, list[LineRecord]] = {}
    for line in sorted(lines, key=lambda one: (one.function, one.path, one.line)):
        found.setdefault(line.function, []).append(line)
    return found


def _renamed(
    before: Mapping[str, list[LineRecord]], after: Mapping[str, list[LineRecord]]
) -> dict[str, str]:
    """New names of functions, with the old ones."""
    found: dict[str, str] = {}
    gone = [name for name in before if name not in after]
    for name in after:
        if name not in before:
            alike = {g: _likeness(before[g], after[name]) for g in gone if g not in found.values()}
            best = max(alike, key=lambda g: alike[g], default=None)
            if best is not None and alike[best] >= ALIKE:
                found[name] = best
    return found


def _likeness(old: Sequence[LineRecord], new: Sequence[LineRecord]) -> float:
    return SequenceMatcher(None, _keys(old), _keys(new), autojunk=False).ratio()


def _keys(lines: Sequence[LineRecord]) -> list[str]:
    """The text of each line, or where it stands in the function."""
    first = lines[0].line if lines else 0
    return [line.text or f"+{line.line - first}" for line in lines]


def _paired(old: Sequence[LineRecord], new: Sequence[LineRecord]) -> list[LineChange]:
    matcher = SequenceMatcher(None, _keys(old), _keys(new), autojunk=False)
    changes: list[LineChange] = []
    for tag, i, to_i, j, to_j in matcher.get_opcodes():
        if tag == "equal":
            changes += map(LineChange, old[i:to_i], new[j:to_j])
        else:
            changes += [LineChange(line, None) for line in old[i:to_i]]
            changes += [LineChange(None, line) for line in new[j:to_j]]
    return changes


def _loops(old: Sequence[LoopRecord], new: Sequence[LoopRecord]) -> list[str]:
    """New loops, and those with another bound."""
    known: dict[tuple[str, str], list[LoopRecord]] = {}
    for loop in old:
        known.setdefault((loop.function, loop.text or str(loop.line)), []).append(loop)
    found = []
    for loop in new:
        same = known.get((loop.function, loop.text or str(loop.line)), [])
        before = same.pop(0) if same else None
        place = f"{loop.function} {loop.path}:{loop.line}"
        if before is None:
            found.append(f"new loop in {place}: {_bound(loop)}")
        elif (before.low, before.high) != (loop.low, loop.high):
            found.append(f"loop in {place}: {_bound(before)} before, {_bound(loop)} now")
    return found


def _bound(loop: LoopRecord) -> str:
    if loop.high is None:
        return "no number"
    return f"at most {loop.high:,}" if loop.low == loop.high else f"{loop.low:,} to {loop.high:,}"
