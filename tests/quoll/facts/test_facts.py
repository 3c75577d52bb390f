"""Facts files: reading, printing back, and every way of being wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.errors import FactsError
from quoll.facts.control_flow_facts import NeverReturnsFact, ReturnsFact, TargetsFact
from quoll.facts.count_facts import (
    AtMostFact,
    ConflictFact,
    ConsistentFact,
    LoopFact,
    LoopParameter,
    NeverExecutesFact,
)
from quoll.facts.fact import Fact, FactSource
from quoll.facts.guidance import (
    BranchFact,
    IgnoreEdgeFact,
    IgnoreFact,
    PathEndFact,
    ReplacedFact,
    RequireFact,
    ReturnsEndFact,
)
from quoll.facts.read import Facts, load, parse
from tests.testing.quoll.drawn_facts import (
    facts,
)


def without_source(fact: Any) -> tuple[object, ...]:
    return (type(fact), *(getattr(fact, f) for f in fact.__slots__ if f != "source"))


def attempt(text: str) -> tuple[Facts | None, str]:
    """The facts, or the message of the refusal."""
    try:
        return parse(text, "x.facts"), ""
    except FactsError as error:
        return None, str(error)


@pytest.mark.slow("many random facts")
@given(facts())
def test_a_printed_fact_reads_back_as_itself(fact: Fact) -> None:
    (back,) = parse(str(fact), "x.facts").facts
    assert without_source(back) == without_source(fact)
    assert back.source == FactSource("x.facts", 1, str(fact))


@pytest.mark.slow("many random facts")
@given(st.lists(facts(), max_size=6))
def test_a_printed_file_reads_back_unless_it_contradicts_itself(items: list[Fact]) -> None:
    text = "".join(f"  {fact}   # why\n\n" for fact in items)
    read, error = attempt(text)
    if read is None:
        assert "contradicts" in error
        return
    assert [without_source(f) for f in read.facts] == [without_source(f) for f in items]
    assert [f.source.line for f in read.facts] == [1 + 2 * i for i in range(len(items))]


@given(st.text(alphabet="loop atmsneverxcui+:0x1 #,\n\t", max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    read, error = attempt(text)
    assert read is not None or error.startswith("x.facts:")


def test_all_forms_by_hand() -> None:
    text = """\
# kernel.facts
loop sched.c:41 at most 0x10
decode conflicts with cancel+0x24 in invoke when called from syscall
0xf0001000 is consistent with b in f   # reason
x executes at most 1 time
x executes at most 3 times in f
y.c:7 never executes in g when called from 0x8000
targets of dispatch+8 are a,b , c
panic never returns
loop never executes
loop dequeue at most waiting+1
branch at a+8 is always taken
branch at x.c:9 is never taken in f when called from g
ignore panic
ignore edge a -> b+4
require y.c:3
path must end at 0x8000
function memcpy takes at most 0x100 cycles
function rom takes at most 1 cycle and preserves memory
ignore executes at most 2 times
restore.S:9 returns to its caller
path must end at every exception return
"""
    s = [FactSource("k", n, line) for n, line in enumerate(text.split("\n"), 1)]
    got = parse(text, "k")
    assert [without_source(f) for f in got.facts] == [
        without_source(f)
        for f in (
            LoopFact(s[1], "sched.c:41", 16),
            ConflictFact(s[2], "decode", "cancel+0x24", "invoke", "syscall"),
            ConsistentFact(s[3], "0xf0001000", "b", "f"),
            AtMostFact(s[4], "x", 1, None),
            AtMostFact(s[5], "x", 3, "f"),
            NeverExecutesFact(s[6], "y.c:7", 0, "g", "0x8000"),
            TargetsFact(s[7], "dispatch+8", ("a", "b", "c")),
            NeverReturnsFact(s[8], "panic"),
            NeverExecutesFact(s[9], "loop", 0, None),
            LoopParameter(s[10], "dequeue", "waiting", 1),
            BranchFact(s[11], "a+8", True),
            BranchFact(s[12], "x.c:9", False, "f", "g"),
            IgnoreFact(s[13], "panic"),
            IgnoreEdgeFact(s[14], "a", "b+4"),
            RequireFact(s[15], "y.c:3"),
            PathEndFact(s[16], "0x8000", must=True),
            ReplacedFact(s[17], "memcpy", 256, False),
            ReplacedFact(s[18], "rom", 1, True),
            AtMostFact(s[19], "ignore", 2, None),
            ReturnsFact(s[20], "restore.S:9"),
            ReturnsEndFact(s[21]),
        )
    ]
    assert [f.bound for f in got.of(LoopFact)] == [16]
    assert [f.source.line for f in got.facts] == list(range(2, 23))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loop f at most", "expected: loop PLACE at most N"),
        ("loop f at most -3", "expected: loop PLACE at most N"),
        ("loop f at most 0", "at least 1 per entry"),
        ("loop f at most 3 in g", "expected: loop PLACE at most N"),
        ("a conflicts with b", "expected: PLACE conflicts with PLACE in FUNCTION"),
        ("a conflicts b in f", "expected: PLACE conflicts with PLACE in FUNCTION"),
        ("a is b in f", "expected: PLACE is consistent with PLACE in FUNCTION"),
        ("a is consistent with b in f.c:3", "expected: PLACE is consistent with PLACE"),
        ("a executes 3 times", "expected: PLACE executes at most N times"),
        ("a executes at most 3 times when called from g", "expected: PLACE executes at most"),
        ("a never runs", "expected: FUNCTION never returns"),
        ("targets of a are", "expected: targets of PLACE are"),
        ("a returns to b", "expected: PLACE returns to its caller"),
        (
            "hello world",
            "PLACE executes at most NAME [+ N] times; loop PLACE at most N; PLACE conflicts",
        ),
        ("loop f at most n - 1", "expected: loop PLACE at most NAME [+ N]"),
        ("loop 12 at most 4", "expected: loop PLACE at most N"),
    ],
)
def test_a_malformed_line_is_named_with_what_was_expected(line: str, expected: str) -> None:
    with pytest.raises(FactsError, match=r"^my\.facts:3: ") as caught:
        parse(f"\n# fine\n{line}\n", "my.facts")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("loop f at most 3", "loop f at most 4"),
        ("loop f at most 3", "loop f at most n"),
        ("loop f at most n", "loop f at most n + 1"),
        ("f never executes", "f executes at most 4 times"),
        ("f executes at most 2 times in g", "f executes at most 4 times in g"),
        ("a conflicts with b in f", "b is consistent with a in f"),
        ("targets of a are b, c", "targets of a are b"),
    ],
)
def test_contradictions_name_both_lines(first: str, second: str) -> None:
    with pytest.raises(FactsError, match=r"^k:2: .* contradicts .* at k:1"):
        parse(f"{first}\n{second}", "k")


@pytest.mark.parametrize(
    "text",
    [
        "loop f at most 3\nloop f at most 0x3",
        "f executes at most 4 times\nf executes at most 2 times in g",
        "a conflicts with b in f\na is consistent with b in f when called from g",
        "targets of a are b, c\ntargets of a are c, b",
    ],
)
def test_repetitions_and_different_scopes_do_not_contradict(text: str) -> None:
    assert len(parse(text, "k").facts) == 2


def test_load_reads_files_in_order_and_finds_contradictions_between_them(tmp_path: Path) -> None:
    one, two = tmp_path / "one.facts", tmp_path / "two.facts"
    one.write_text("\ufeffloop f at most 3\r\n")
    two.write_text("f never returns")
    assert [type(f) for f in load([one, two]).facts] == [LoopFact, NeverReturnsFact]
    assert load([]) == Facts()
    two.write_text("loop f at most 5")
    with pytest.raises(FactsError, match=r"two\.facts:1: .*one\.facts:1"):
        load([one, two])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("name", ["a.facts", "a.ais"])
def test_no_end_of_a_line_hides_a_fact_behind_a_comment(
    name: str, end: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    lines = ["# ours", "loop 0x8000 at most 3" if name == "a.facts" else "loop 0x8000 max 3 end;"]
    file.write_bytes(end.join(lines).encode())
    [fact] = load([file]).facts
    assert (str(fact), fact.source.line) == ("loop 0x8000 at most 3", 2)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match=r"none\.facts: .*No such file"):
        load([tmp_path / "none.facts"])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FactsError, match="not UTF-8"):
        load([tmp_path / "binary"])


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("count(f)<=3", "count(f) <= 3"),
        ("2 * count( f ) + count(x.c:7) <= 0x10 in g", "2*count(f) + count(x.c:7) <= 16 in g"),
        ("count(f) = 2*count(f+4)", "count(f) - 2*count(f+4) = 0"),
        ("3 >= count(a) + 1", "-count(a) >= -2"),
        ("count(a) + count(a) - count(b) <= count(b)", "2*count(a) - 2*count(b) <= 0"),
        ("-count(a) + 5 >= 1 in f when called from g", "-count(a) >= -4 in f when called from g"),
    ],
)
def test_linear_constraints_have_their_counts_on_the_left(text: str, means: str) -> None:
    (fact,) = parse(text, "k").facts
    assert str(fact) == means
    (again,) = parse(means, "k").facts
    assert str(again) == means


@pytest.mark.parametrize(
    "text", ["count(f) < 3", "count(f)", "count(f) <= x", "2*f <= 3 count(f)", "count() <= 1",
             "count(f) - count(f) <= 3", "count(f) <= 3 in", "count(f) * count(g) <= 3"],
)  # fmt: skip
def test_what_is_not_linear_is_refused(text: str) -> None:
    with pytest.raises(FactsError, match=r"is not a fact|is about no count"):
        parse(text, "k")


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("loop a.c:3, 0x80 , f+4 at most 9", None),
        ("loop a.c:3, 0x80,f+4 at most 9", "loop {} at most 9"),
        ("list at a.c:3, f has at most 5 elements", "list at {} has at most 5 elements"),
        ("recursion of f, g at most 3", "recursion of {} at most 3"),
        ("path must end at halt, a.c:9, 0x80", "path must end at {}"),
        ("path may end at halt, a.c:9", "path may end at {}"),
        ("loop a.c:3, at most 9", None),
        ("loop a.c:3, 0x80 at most", None),
        ("loop a.c:3, a.c:3 at most N + 1", "loop {} at most N + 1"),
    ],
)
def test_one_line_for_several_places(line: str, means: str | None) -> None:
    """One invariant may bound several loops."""
    if means is None:
        with pytest.raises(FactsError):
            parse(line, "k")
        return
    places = re.findall(r"[\w.:+]+(?=,)|(?<=, )[\w.:+]+|(?<=,)[\w.:+]+", line)
    expected = [means.format(place) for place in dict.fromkeys(places)]
    assert len(expected) == len(set(places)) >= 1
    assert [str(fact) for fact in parse(line, "k").facts] == expected


def test_a_register_that_is_0_is_at_most_0() -> None:
    (fact,) = parse("register r3 at f is 0", "k").facts
    assert str(fact) == "register r3 at f is at most 0"
