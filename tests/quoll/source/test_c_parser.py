"""Loops and functions of C text, by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoll.errors import FactsError
from quoll.source.c_parser import structure
from quoll.source.loop_statement import LoopStatement
from quoll.source.tokens import tokens

TEXT = """\
#define LOOP for (;;) { \\
    }
static const char *text = "for (;;) { // no comment";
struct pair { int a, b; } table[] = { [0] = { 1, 2 }, { '{', '"' } };
__attribute__((noinline)) static int first(int n)
{
    for (int i = 0; i < n; i++)  /* a comment */
        if (i & 1)
            while (n--)
                table[i].a = n > 2 ? n : 1;
        else {
            do
                n++;
            while (n < 9);
        }
again:
    return n;
}
extern "C" {
void second(void) {
    list_for_each(item, head) {
        first(({ while (1) break; 3; }));
    }
    x = (struct pair){ 1, 2 };
}
}
"""


def lines(text: str) -> list[tuple[int, int]]:
    _, loops = structure(tokens(text, "a.c").tokens)
    return sorted((loop.first, loop.last) for loop in loops)


def test_loops_of_every_form() -> None:
    assert lines(TEXT) == [(7, 15), (9, 10), (12, 14), (21, 23), (22, 22)]


def test_functions_with_what_they_name() -> None:
    functions, loops = structure(tokens(TEXT, "a.c").tokens)
    assert [(sorted(f.names), f.first, f.last) for f in functions] == [
        (["first"], 5, 18),
        (["second"], 20, 25),
    ]
    assert "first" in functions[1].words
    assert {"list_for_each", "first"} <= next(x for x in loops if x.first == 21).words


def test_comments_are_apart_and_strings_left_out() -> None:
    found = tokens(TEXT, "a.c")
    assert [(c.text, c.line) for c in found.comments] == [("/* a comment */", 7)]
    assembly = tokens("1: subs r0, r0, #1 @ it's one\n bne 1b // two\n", "a.S")
    assert [c.line for c in assembly.comments] == [1, 2]


@given(st.text("(){};:x=\"'/*#\n fordowhileif"))
def test_any_text_ends(text: str) -> None:
    functions, loops = structure(tokens(text, "a.c").tokens)
    last = text.count("\n") + 1
    spans = [(x.first, x.last) for x in functions] + [(x.first, x.last) for x in loops]
    assert all(1 <= first <= end <= last for first, end in spans)


@pytest.mark.parametrize("text", ["{" * 5000, "x(" * 5000, "f() {" + "for (;;) " * 5000])
def test_what_is_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(FactsError, match="nested more than"):
        structure(tokens(text, "a.c").tokens)


def test_lines_of_one_inner_loop_are_not_of_the_loop() -> None:
    statement = LoopStatement("a.c", 3, 9, inner=((4, 5), (6, 8)))
    assert statement.is_own([3, 4])
    assert statement.is_own([4, 6])
    assert not statement.is_own([4, 5])
    assert not statement.is_own([2, 3])
    assert not statement.is_own([])
