"""A fact with one misspelt word is offered as it was meant."""

from __future__ import annotations

import re
import time

import pytest

from quoll.errors import FactsError
from quoll.facts.read import FORMS, parse

# One for each form, except for an old form of path ends, which is always refused.
LINES = """\
2*count(a.c:7) + count(b) <= 3 in f
branch at a+8 is always taken
branch at a+8 is never taken in f when called from g
ignore edge a -> b+4
ignore a
require y.c:3
path must end at every exception return
path must end at every jump to itself
path must end at every supervisor call
every supervisor call takes at most 9 cycles
every supervisor call enters f
path must end at a
path may end at a
path starts at a
function memcpy takes at most 0x100 cycles and preserves memory
recursion of f at most 3
loop a.c:7 at most n + 1
a executes at most n times
loop a.c:7 at most 3
a conflicts with b in f when called from g
a is consistent with b in f
a executes at most 3 times in f
a never executes in f
targets of a+8 are b, c
calls at a+8, b go through any vtable, c or to d
panic never returns
a returns to its caller
panic switches context
panic begins unmasked
invariant n: a <= 3 and a+8 != 0
register r3 at a is at most 7
list at a has at most 3 elements
region heap from 0x1000 to 0x1fff is cached
region heap is cached
region heap holds its initial contents at a
accesses of unknown address point into heap
access at a points into heap aligned 4
register r3 at a points into heap
""".splitlines()
WORD = re.compile(r"[a-z]{4,}")


def refusal(line: str) -> str:
    with pytest.raises(FactsError) as caught:
        parse(line, "k")
    return str(caught.value)


def misspelt(line: str) -> list[str]:
    """``line`` with two letters of a word in the wrong order, or with one letter less."""
    found = []
    for word in WORD.finditer(line):
        if word[0] not in ("heap", "memcpy", "panic"):
            before, text, after = line[: word.start()], word[0], line[word.end() :]
            found.append(f"{before}{text[0]}{text[2]}{text[1]}{text[3:]}{after}")
            found.append(f"{before}{text[:2]}{text[3:]}{after}")
    return [wrong for wrong in found if wrong != line]


def test_there_is_a_line_for_each_form() -> None:
    meant = {next(f.text for f in FORMS if re.match(f.opening, line)) for line in LINES}
    assert {form.text for form in FORMS} - meant == {
        form.text for form in FORMS if form.opening == "path ends "
    }
    for line in LINES:
        parse(line, "k")


@pytest.mark.parametrize("line", LINES)
def test_a_misspelt_word_is_found(line: str) -> None:
    for wrong in misspelt(line):
        assert f"did you mean '{line}'?" in refusal(wrong), wrong


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("recursion f at most 3", "expected: recursion of FUNCTION at most N"),
        ("recurson f at most 3", "expected: recursion of FUNCTION at most N"),
        ("targets a are b", "expected: targets of PLACE are PLACE, PLACE, ..."),
    ],
)
def test_the_first_word_says_which_form_was_meant(line: str, expected: str) -> None:
    assert expected in refusal(line)
    assert "count(PLACE)" not in refusal(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("in other: the loop at most 9", "loop PLACE at most N"),
        ("memory at p points into heap", "access at PLACE points into NAME"),
    ],
)
def test_a_line_in_other_words_gets_the_forms_that_share_most(line: str, expected: str) -> None:
    text = refusal(line)
    assert expected in text
    assert sum(form.text in text for form in FORMS) <= 6, text


def test_what_is_like_no_fact_gets_all_forms() -> None:
    text = refusal("hello world")
    assert "did you mean" not in text
    assert all(form.text in text for form in FORMS)


def test_a_long_line_is_refused_at_once() -> None:
    started = time.process_time()
    assert "is not a fact" in refusal("lop f at most 3 " * 100_000)
    assert time.process_time() - started < 1
