"""Results of calls exclude the caller's ways on, through levels of summaries, loops and copies."""

from __future__ import annotations

from functools import cache

import pytest

from tests.testing.quoll.building import build
from tests.testing.wcet.result_runs import SUMMARISED, bounded

pytestmark = pytest.mark.slow("whole analyses")

TEXT = "-Wl,-Ttext=0xf0010000"
PROGRAM = """
#define NOINLINE __attribute__((noinline))
volatile unsigned *volatile word;
NOINLINE void early(void) { for (int i = 0; i < 300; i++) *word; }
NOINLINE void late(void) { for (int i = 0; i < 200; i++) *word; }
NOINLINE void small(void) { *word; *word; }
NOINLINE unsigned flush(unsigned n) { if (n & 1) { early(); return 3; } return 0; }
NOINLINE unsigned middle(unsigned n, unsigned m) {
    unsigned r = flush(n);
    *word;
    if (r) return r;
    return m & 4 ? flush(m) : 0;
}
NOINLINE unsigned top(unsigned n, unsigned m) {
    if (m == 0) return 2;
    unsigned r = middle(n, m);
    *word;
    return r;
}
NOINLINE unsigned again(unsigned n, unsigned m) {
    unsigned r = flush(n);
    *word;
    if (m & 8) { small(); r = 0; }
    return r;
}
NOINLINE unsigned given(unsigned n, unsigned m) {
    if (m & 1) { early(); return 0; }
    *word;
    if (m & 2) { small(); return 1; }
    return n;
}
NOINLINE void others(unsigned n) {
    given(n, n); again(n, n); again(n + 1, n); middle(n, n + 1); top(n, n); *word;
}
"""
CALLS = {
    "result": "if (top(a, b) != 3) late();",
    "kept": "unsigned r = top(a, b); *word; *word; if (b & 8) *word; if (r == 0 || r == 2) late();",
    "inlined": "unsigned r = passes(a, b); if (r != 3) late();",
    "loop": "for (int i = 0; i < 4; i++) { if (top(a + i, b) == 3) break; late(); }",
}
NOT_EXCLUDED = {  # with calls of both on a path
    "if (top(a, b) != 2) late();": (1, 1),
    "unsigned r = top(a, b); if (b & 8) { r = *word; small(); } *word; if (r != 3) late();": (1, 1),
    "if (again(a, b) == 0) late();": (1, 1),
    "if (given(a, b) == 5) { late(); late(); }": (0, 2),  # its argument is a result of its own
    "unsigned r = 0; for (int i = 0; i < 4; i++) { if (r != 3) late(); r = top(a, b); }": (4, 1),
}
WAYS = {"result": (1, 0), "kept": (1, 0), "inlined": (1, 0), "loop": (1, 3)}  # calls on a path


@cache
def cycles(body: str) -> int:
    """The bound of ``main``, in which others call the functions, too."""
    inline = "static inline unsigned passes(unsigned n, unsigned m) { return top(n, m); }"
    main = f"unsigned main(unsigned a, unsigned b) {{ {body} others(b); others(a); return a; }}"
    elf = build(f"{PROGRAM}{inline}{main}", "-fno-inline-small-functions", link=(TEXT,))
    found = bounded(elf, "main", SUMMARISED, "kzm")
    assert found.summaries
    return found.cycles


def work(name: str) -> int:
    """The cycles of a costly function, as two calls that nothing excludes have them."""
    return cycles(f"{name}();") - cycles("")


@pytest.mark.parametrize("call", CALLS)
def test_a_result_excludes_the_way_on(call: str) -> None:
    early, late = WAYS[call]
    most = cycles(CALLS[call]) - cycles("")
    one = min(work("early"), work("late"))
    assert most < early * work("early") + late * work("late") + one / 2


@pytest.mark.parametrize("call", NOT_EXCLUDED)
def test_a_result_that_does_not_exclude_it(call: str) -> None:
    """A longer path may be charged fewer victims: at most as many as lines are dirty."""
    early, late = NOT_EXCLUDED[call]
    one = min(work("early"), work("late"))
    assert cycles(call) - cycles("") > early * work("early") + late * work("late") - one / 2
