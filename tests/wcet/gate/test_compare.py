"""The comparison of two records: verdicts, moved lines, renamed functions and files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wcet.gate.change_text import line_text
from wcet.gate.compare import EntryVerdict, compare
from wcet.gate.record import BaselineRecord, EntryRecord, LineRecord, LoopRecord

NONE = Fraction(0)


def line(function: str, number: int, text: str, cycles: int, path: str = "a.c") -> LineRecord:
    return LineRecord(function, path, number, text, 1, cycles, 0)


def entry(*lines: LineRecord, loops: tuple[LoopRecord, ...] = ()) -> EntryRecord:
    return EntryRecord(sum(one.cycles for one in lines), "", {}, lines, loops)


def record(**entries: EntryRecord) -> BaselineRecord:
    return BaselineRecord("", {}, "kzm", "1", entries, ())


OLD = entry(line("f", 3, "x = 1;", 10), line("f", 4, "y = 2;", 20), line("g", 9, "return;", 5))


@pytest.mark.parametrize(
    ("cycles", "tolerance", "budget", "verdict"),
    [
        (100, NONE, None, EntryVerdict.SAME),
        (99, NONE, None, EntryVerdict.BETTER),
        (101, NONE, None, EntryVerdict.WORSE),
        (101, Fraction(1, 100), None, EntryVerdict.WITHIN),
        (102, Fraction(1, 100), None, EntryVerdict.WORSE),
        (99, NONE, 98, EntryVerdict.OVER),
        (100, NONE, 100, EntryVerdict.SAME),
        (101, Fraction(1, 100), 100, EntryVerdict.OVER),
    ],
)
def test_a_verdict(
    cycles: int, tolerance: Fraction, budget: int | None, verdict: EntryVerdict
) -> None:
    before, after = (record(e=EntryRecord(n, "", {}, (), ())) for n in (100, cycles))
    limits = {} if budget is None else {"e": budget}
    (change,) = compare(before, after, limits, tolerance).entries
    assert change.verdict is verdict


def test_a_bound_that_is_lost_closes_the_gate() -> None:
    now = replace(record(), unbounded={"e": "1 loop has no bound"})
    (change,) = compare(record(e=OLD), now, {}, NONE).entries
    assert (change.verdict, change.reason) == (EntryVerdict.UNBOUNDED, "1 loop has no bound")
    assert change.verdict.fails


def test_an_entry_that_is_not_analysed_any_more_closes_the_gate() -> None:
    found = compare(record(e=OLD), record(), {"other": 5}, NONE)
    assert {c.name: c.verdict for c in found.failed} == {
        "e": EntryVerdict.GONE,
        "other": EntryVerdict.GONE,
    }


def test_another_formula_closes_the_gate() -> None:
    before, after = (record(e=EntryRecord(None, f, {}, (), ())) for f in ("9 + n", "9 + 2·n"))
    assert compare(before, after, {}, NONE).entries[0].verdict is EntryVerdict.WORSE
    assert compare(before, before, {}, NONE).entries[0].verdict is EntryVerdict.SAME


def moved(old: EntryRecord, by: int, path: str) -> EntryRecord:
    lines = tuple(replace(one, line=one.line + by, path=path) for one in old.lines)
    return replace(old, lines=lines)


def test_lines_that_moved_and_files_with_new_names_are_the_same() -> None:
    (change,) = compare(record(e=OLD), record(e=moved(OLD, 7, "b/c.c")), {}, NONE).entries
    assert change.lines == ()


def test_without_sources_lines_are_told_by_their_distance_in_the_function() -> None:
    bare = replace(OLD, lines=tuple(replace(one, text="") for one in OLD.lines))
    (change,) = compare(record(e=bare), record(e=moved(bare, 7, "c.c")), {}, NONE).entries
    assert change.lines == ()


def test_a_function_with_a_new_name_is_known_by_its_lines() -> None:
    lines = tuple(replace(one, function=one.function.replace("f", "h")) for one in OLD.lines)
    (change,) = compare(record(e=OLD), record(e=replace(OLD, lines=lines)), {}, NONE).entries
    assert change.lines == ()


def test_the_new_line_comes_first() -> None:
    now = entry(
        line("f", 3, "x = 1;", 12), line("f", 4, "while (x) x--;", 90), line("f", 5, "y = 2;", 20),
        loops=(LoopRecord("f", "a.c", 4, "while (x) x--;", 32, 32, "nusmv"),),
    )  # fmt: skip
    (change,) = compare(record(e=OLD), record(e=now), {}, NONE).entries
    assert [(c.cycles, c.line.text) for c in change.lines] == [
        (90, "while (x) x--;"), (2, "x = 1;"), (-5, "return;")
    ]  # fmt: skip
    assert change.loops == ("new loop in f a.c:4: at most 32",)


def test_another_bound_of_a_loop_is_said() -> None:
    loops = [LoopRecord("f", "a.c", n, "for (;;)", 1, high, "fact") for n, high in ((4, 8), (6, 9))]
    before, after = (record(e=replace(OLD, loops=(loop,))) for loop in loops)
    (change,) = compare(before, after, {}, NONE).entries
    assert change.loops == ("loop in f a.c:6: 1 to 8 before, 1 to 9 now",)


def test_assumptions_that_come_and_go_are_said() -> None:
    before, after = (replace(record(e=OLD), assumed=a) for a in (("S1", "S2"), ("S1", "S3")))
    found = compare(before, after, {}, NONE)
    assert (found.new_assumptions, found.gone_assumptions) == (("S3",), ("S2",))
    assert not found.failed


NAMES, NUMBERS = st.sampled_from("fgh"), st.integers(0, 9)
LINES = st.lists(
    st.builds(LineRecord, NAMES, NAMES, NUMBERS, NAMES, NUMBERS, NUMBERS), unique=True, max_size=12
)


@pytest.mark.slow("several whole analyses")
@given(LINES, LINES)
def test_the_lines_add_up_to_the_difference_of_the_bounds(
    old: list[LineRecord], new: list[LineRecord]
) -> None:
    (change,) = compare(record(e=entry(*old)), record(e=entry(*new)), {}, NONE).entries
    assert sum(c.cycles for c in change.lines) == change.cycles


@pytest.mark.slow("many random records")
@given(LINES)
def test_nothing_changes_between_a_record_and_itself(lines: list[LineRecord]) -> None:
    (change,) = compare(record(e=entry(*lines)), record(e=entry(*lines)), {}, NONE).entries
    assert (change.verdict, change.lines, change.loops) == (EntryVerdict.SAME, (), ())


def function_renamed(old: EntryRecord, before: str, after: str) -> EntryRecord:
    lines = (replace(one, function=after if one.function == before else one.function)
             for one in old.lines)  # fmt: skip
    return replace(old, lines=tuple(lines))


@pytest.mark.parametrize(
    "name", ["f.part.0", "f.isra.0", "f.constprop.0.isra.3", "f.cold", "f.llvm.1234"]
)
@pytest.mark.parametrize("bare", [False, True])
def test_what_a_compiler_appends_to_a_name_changes_nothing(name: str, bare: bool) -> None:
    old = replace(OLD, lines=tuple(replace(one, text="") for one in OLD.lines)) if bare else OLD
    now = function_renamed(old, "f", name)
    (change,) = compare(record(e=old), record(e=now), {}, NONE).entries
    assert change.lines == ()


def test_a_function_that_a_compiler_splits_is_one() -> None:
    """The cycles of a line in both parts are added."""
    first, second, other = OLD.lines
    parts = (replace(first, cycles=4), replace(first, function="f.part.0", cycles=9),
             replace(second, function="f.part.0"))  # fmt: skip
    (change,) = compare(record(e=OLD), record(e=entry(*parts, other)), {}, NONE).entries
    assert [(c.cycles, c.line.text) for c in change.lines] == [(3, "x = 1;")]


def test_a_function_that_is_not_inlined_any_more_is_known_by_its_text() -> None:
    """The line that takes more comes first, and none is new."""
    inlined = entry(line("f", 3, "x = 1;", 10), line("f", 40, "a();", 20), line("f", 41, "b();", 5))
    now = entry(line("f", 3, "x = 1;", 10), line("g", 40, "a();", 90), line("g", 41, "b();", 5))
    (change,) = compare(record(e=inlined), record(e=now), {}, NONE).entries
    assert [(c.cycles, c.line.function, c.before is None) for c in change.lines] == [
        (70, "g", False)
    ]


def test_a_line_of_two_functions_is_not_taken_for_that_of_the_other() -> None:
    """The same text in two functions, of which one has another cost."""
    old = entry(line("f", 3, "x = 1;", 10), line("g", 9, "x = 1;", 10))
    now = entry(line("f", 3, "x = 1;", 10), line("g", 9, "x = 1;", 40))
    (change,) = compare(record(e=old), record(e=now), {}, NONE).entries
    assert [(c.cycles, c.line.function) for c in change.lines] == [(30, "g")]
    more = entry(line("f", 3, "x = 1;", 10), line("h", 9, "x = 1;", 9), line("i", 1, "x = 1;", 9))
    (change,) = compare(record(e=OLD), record(e=more), {}, NONE).entries
    assert sum(c.cycles for c in change.lines) == change.cycles


LOOP = LoopRecord("f", "a.c", 4, "for (;;)", 8, 8, "nusmv")


@pytest.mark.parametrize(
    "now",
    [
        replace(LOOP, function="f.part.0"),
        replace(LOOP, function="h", path="b.c", line=90),  # renamed with its lines
        replace(LOOP, function="inlined_into"),
    ],
)
def test_a_loop_that_is_somewhere_else_is_not_new(now: LoopRecord) -> None:
    renamed = function_renamed(OLD, "f", "h") if now.function == "h" else OLD
    before, after = record(e=replace(OLD, loops=(LOOP,))), replace(renamed, loops=(now,))
    (change,) = compare(before, record(e=after), {}, NONE).entries
    assert change.loops == ()


def test_a_loop_without_text_that_moved_is_not_new() -> None:
    old, new = (replace(LOOP, line=n, text="") for n in (4, 9))
    before, after = (record(e=replace(OLD, loops=(one,))) for one in (old, new))
    (change,) = compare(before, after, {}, NONE).entries
    assert change.loops == ()


def test_misses_of_a_line_are_said_if_they_differ() -> None:
    old, new = (line("f", 3, "x = 1;", c) for c in (10, 70))
    same, old, new = replace(old, misses=63), replace(old, misses=3), replace(new, misses=63)
    (change,) = compare(record(e=entry(old)), record(e=entry(new)), {}, NONE).entries
    assert line_text(change.lines[0]).endswith("x = 1;  misses +60")
    (change,) = compare(record(e=entry(same)), record(e=entry(new)), {}, NONE).entries
    assert "misses" not in line_text(change.lines[0])


def test_what_else_differs_is_said_where_a_bound_does() -> None:
    more = entry(line("f", 3, "x = 1;", 99))
    old, new = BaselineRecord("k", {"a": "1"}, "kzm", "1", {"e": OLD}, ()), record(e=more)
    new = replace(new, kernel="k", facts={"a": "2"}, version="1")
    assert compare(old, new, {}, NONE).notes == ("facts that changed: a",)
    new = replace(new, facts={"a": "1"}, version="2")
    assert compare(old, new, {}, NONE).notes == (
        "the kernel and its facts files are the same as before",
        "the baseline was written by version 1, this is 2",
    )
    assert compare(old, replace(new, entries={"e": OLD}), {}, NONE).notes == ()
    refined = replace(old, proved={"e": 3, "gone": 2})
    assert compare(refined, replace(new, facts=old.facts), {}, NONE).notes[0] == (
        "the bound of e used 3 proved exclusions and uses 0 now: "
        "'wcet refine --entry e' proves and stores them"
    )
