"""The comparison of an old and a new record: slower entries, with the lines that made them slower.

Functions are matched by name, without suffixes of compilers (``f.part.0``), and remaining functions
by their lines; lines within a function are matched by their text and order, else by their number;
remaining lines by their text alone, if it occurs equally often before and now. So renamed files,
moved lines, and functions that are split or inlined differently change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from fractions import Fraction

from wcet.gate.record import BaselineRecord, EntryRecord, LineRecord, LoopRecord

__all__ = ["EntryChange", "EntryVerdict", "LineChange", "RecordChange", "compare"]

ALIKE = 0.6  # share of common lines from which on a function counts as renamed
# Suffixes that GCC and Clang append to the names of parts and copies of a function.
APPENDED = re.compile(r"(\.(part|isra|constprop|cold|lto_priv|clone|llvm)(\.[0-9]+)*)+$")
NOTHING = EntryRecord(None, "", {}, (), ())


class EntryVerdict(Enum):
    """The verdict on one entry; the value is the printed text."""

    SAME = "same"
    BETTER = "better"
    WITHIN = "worse, within the tolerance"
    WORSE = "worse than the baseline"
    OVER = "over its budget"
    UNBOUNDED = "no bound"
    NEW = "not in the baseline"
    GONE = "not analysed"
    UNSOUND = "not valid: an execution takes longer"

    @property
    def fails(self) -> bool:
        """Whether the gate rejects it."""
        return self in (
            EntryVerdict.WORSE,
            EntryVerdict.OVER,
            EntryVerdict.UNBOUNDED,
            EntryVerdict.GONE,
            EntryVerdict.UNSOUND,
        )


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of a worst path; ``before`` or ``after`` is None where it is not on that path."""

    before: LineRecord | None
    after: LineRecord | None

    @property
    def cycles(self) -> int:
        """The increase in cycles."""
        return (self.after.cycles if self.after else 0) - (self.before.cycles if self.before else 0)

    @property
    def misses(self) -> int | None:
        """The increase in cycles of misses and possible misses of a line on both paths."""
        if self.before is None or self.after is None:
            return None
        return self.after.misses - self.before.misses

    @property
    def line(self) -> LineRecord:
        """The new line, or the old one if it is gone."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One entry. ``lines``: changed lines, the greatest increase first."""

    name: str
    verdict: EntryVerdict
    before: EntryRecord
    after: EntryRecord
    budget: int | None  # cycles
    lines: tuple[LineChange, ...]
    loops: tuple[str, ...]
    reason: str = ""  # why there is no bound, or why it is not valid

    @property
    def increases(self) -> tuple[LineChange, ...]:
        """The lines of source files with more cycles, the greatest increase first."""
        return tuple(c for c in self.lines if c.cycles > 0 and c.after is not None and c.line.line)

    @property
    def cycles(self) -> int | None:
        """The increase in cycles, if both are numbers."""
        if self.before.cycles is None or self.after.cycles is None:
            return None
        return self.after.cycles - self.before.cycles


@dataclass(frozen=True, slots=True)
class RecordChange:
    """All entries, in the order of the new record, and new and former assumptions.

    ``notes``: other differences, if a bound differs. ``differences``: the accepted differences of
    configuration.
    """

    entries: tuple[EntryChange, ...]
    new_assumptions: tuple[str, ...]
    gone_assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[EntryChange, ...]:
        """The entries for which the gate is closed."""
        return tuple(e for e in self.entries if e.verdict.fails)


def compare(
    old: BaselineRecord | None, new: BaselineRecord, budgets: Mapping[str, int], tolerance: Fraction
) -> RecordChange:
    """The changes from ``old``, or against ``budgets`` alone without it.

    ``tolerance``: the share of a bound by which it may grow.
    """
    known = old.entries if old else {}
    seen = _seen(old, new)
    changes = [
        _sound(
            _entry(name, known.get(name), entry, budgets.get(name), tolerance), seen.get(name, 0)
        )
        for name, entry in new.entries.items()
    ]
    for name, reason in new.unbounded.items():
        before = known.get(name, NOTHING)
        changes.append(
            EntryChange(
                name, EntryVerdict.UNBOUNDED, before, NOTHING, budgets.get(name), (), (), reason
            )
        )
    matched = {change.name for change in changes}
    for name in (*known, *(b for b in budgets if b not in known)):
        if name not in matched:
            before = known.get(name, NOTHING)
            changes.append(
                EntryChange(name, EntryVerdict.GONE, before, NOTHING, budgets.get(name), (), ())
            )
    earlier = old.assumed if old else new.assumed
    return RecordChange(
        tuple(changes),
        tuple(a for a in new.assumed if a not in earlier),
        tuple(a for a in earlier if a not in new.assumed),
        tuple(_notes(old, new))
        if old and any(c.verdict is not EntryVerdict.SAME for c in changes)
        else (),
    )


def _seen(old: BaselineRecord | None, new: BaselineRecord) -> Mapping[str, int]:
    """The longest executions that are known of this kernel, in cycles by entry.

    Executions of the baseline count, too, if it has the same kernel, facts and options.
    """
    if old is None or _inputs(old) != _inputs(new):
        return new.seen
    names = old.seen.keys() | new.seen.keys()
    return {name: max(old.seen.get(name, 0), new.seen.get(name, 0)) for name in names}


def _inputs(record: BaselineRecord) -> tuple[object, ...]:
    return record.kernel, record.facts, record.platform, record.asked


def _sound(change: EntryChange, seen: int) -> EntryChange:
    """The change of an entry; its bound is not valid if an execution takes longer."""
    bound = change.after.cycles
    if bound is None or seen <= bound:
        return change
    reason = f"an execution takes {seen:,} cycles: a fact is wrong, or the analysis is"
    return replace(change, verdict=EntryVerdict.UNSOUND, reason=reason)


def _notes(old: BaselineRecord, new: BaselineRecord) -> Iterator[str]:
    """Exclusions of one of the records alone; changed facts files; another version of this program.

    A report contains neither files nor version.
    """
    for name in sorted({*old.proved, *new.proved} & old.entries.keys() & new.entries.keys()):
        before, after = old.proved.get(name, 0), new.proved.get(name, 0)
        if before != after:
            yield (
                f"the bound of {name} used {before} proved exclusions and uses {after} now: "
                f"'wcet refine --entry {name}' proves and stores them"
            )
    if not (old.version and new.version):
        return
    names = sorted({*old.facts, *new.facts})
    changed = [name for name in names if old.facts.get(name) != new.facts.get(name)]
    if changed:
        yield f"facts that changed: {', '.join(changed)}"
    if old.kernel == new.kernel and not changed:
        yield "the kernel and its facts files are the same as before"
    if old.version != new.version:
        yield f"the baseline was written by version {old.version}, this is {new.version}"


def _entry(
    name: str,
    before: EntryRecord | None,
    after: EntryRecord,
    budget: int | None,
    tolerance: Fraction,
) -> EntryChange:
    verdict = _verdict(before, after, tolerance)
    if budget is not None and (after.cycles is None or after.cycles > budget):
        verdict = EntryVerdict.OVER
    old = before or NOTHING
    names = _renamed(_by_function(old.lines), _by_function(after.lines))
    pairs = _matched(old.lines, after.lines, names) if before else []
    lines = [change for change in pairs if change.cycles]
    lines.sort(key=lambda c: (-c.cycles, c.line.function, c.line.line))
    loops = tuple(_loops(old.loops, after.loops, names)) if before else ()
    return EntryChange(name, verdict, old, after, budget, tuple(lines), loops)


def _verdict(before: EntryRecord | None, after: EntryRecord, tolerance: Fraction) -> EntryVerdict:
    if before is None:
        return EntryVerdict.NEW
    if before.cycles is None or after.cycles is None:
        same = (before.cycles, before.formula) == (after.cycles, after.formula)
        return (
            EntryVerdict.SAME if same else EntryVerdict.WORSE
        )  # another function, which may not be smaller
    if after.cycles == before.cycles:
        return EntryVerdict.SAME
    if after.cycles < before.cycles:
        return EntryVerdict.BETTER
    allowed = before.cycles * (1 + tolerance)
    return EntryVerdict.WITHIN if after.cycles <= allowed else EntryVerdict.WORSE


def _matched(
    old: Sequence[LineRecord], new: Sequence[LineRecord], names: Mapping[str, str]
) -> list[LineChange]:
    """Every line of both records, with its match in the other one."""
    before, after = _by_function(old), _by_function(new)
    changes: list[LineChange] = []
    for name, lines in after.items():
        changes += _paired(before.pop(names.get(name, name), []), lines)
    changes += [LineChange(line, None) for lines in before.values() for line in lines]
    return _moved(changes)


def _moved(changes: Sequence[LineChange]) -> list[LineChange]:
    """``changes`` in which a line that moved to another function is one change."""
    gone = _by_text(c.before for c in changes if c.after is None)
    came = _by_text(c.after for c in changes if c.before is None)
    both = {
        t: zip(gone[t], came[t], strict=True) for t in gone if len(gone[t]) == len(came.get(t, ()))
    }
    found = [c for c in changes if (c.before and c.after) or c.line.text not in both]
    return found + [LineChange(*pair) for pairs in both.values() for pair in pairs]


def _by_text(lines: Iterable[LineRecord | None]) -> dict[str, list[LineRecord]]:
    """Lines by their text, if they have one."""
    found: dict[str, list[LineRecord]] = {}
    for line in lines:
        if line is not None and any(map(str.isalnum, line.text)):
            found.setdefault(line.text, []).append(line)
    return found


def _function(name: str) -> str:
    """The name of the function in the source, without the compiler's suffix."""
    return APPENDED.sub("", name) or name


def _by_function(lines: Sequence[LineRecord]) -> dict[str, list[LineRecord]]:
    """Lines by function, in the order of the source; parts of a function are merged."""
    found: dict[str, dict[tuple[str, int, str], LineRecord]] = {}
    for line in sorted(lines, key=lambda one: (one.path, one.line, one.text, one.function)):
        of_function = found.setdefault(_function(line.function), {})
        key = line.path, line.line, line.text
        other = of_function.get(key)
        of_function[key] = line if other is None else _together(other, line)
    return {name: list(found[name].values()) for name in sorted(found)}


def _together(one: LineRecord, other: LineRecord) -> LineRecord:
    """The sum of a line in two parts of a function."""
    return replace(
        one,
        runs=max(one.runs, other.runs),
        cycles=one.cycles + other.cycles,
        misses=one.misses + other.misses,
    )


def _renamed(
    before: Mapping[str, list[LineRecord]], after: Mapping[str, list[LineRecord]]
) -> dict[str, str]:
    """Renamed functions: new name -> old name."""
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
    """The text of each line, or its position in the function."""
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


def _loops(
    old: Sequence[LoopRecord], new: Sequence[LoopRecord], names: Mapping[str, str]
) -> list[str]:
    """New loops, and loops with another bound; ``names``: old names of functions."""
    left = sorted(old, key=lambda one: one.line)
    before: list[LoopRecord | None] = [None] * len(new)
    for anywhere in (False, True):
        for at, loop in enumerate(new):
            function = _function(loop.function)
            function = names.get(function, function)
            same = (
                one
                for one in left
                if one.text == loop.text
                and (_function(one.function) == function or (anywhere and loop.text))
            )
            if before[at] is None and (like := next(same, None)) is not None:
                before[at] = like
                left.remove(like)
    found = []
    for loop, like in zip(new, before, strict=True):
        place = f"{loop.function} {loop.path}:{loop.line}"
        if like is None:
            found.append(f"new loop in {place}: {_bound(loop)}")
        elif (like.low, like.high) != (loop.low, loop.high):
            found.append(f"loop in {place}: {_bound(like)} before, {_bound(loop)} now")
    return found


def _bound(loop: LoopRecord) -> str:
    if loop.high is None:
        return "no number"
    return f"at most {loop.high:,}" if loop.low == loop.high else f"{loop.low:,} to {loop.high:,}"
