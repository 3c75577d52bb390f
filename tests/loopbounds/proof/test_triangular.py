"""Totals of inner loops over the loop around: no execution exceeds them, and some reach them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopbounds.budgets.budget import Budget
from loopbounds.proof import triangular
from loopbounds.proof.abstractions import prove
from loopbounds.proof.options import BoundOptions
from loopbounds.proof.triangular import total_over
from tests.testing.harness.cases import in_turn, spread
from tests.testing.loopbounds.checkers import find_checker
from tests.testing.loopbounds.counting import Program, load
from tests.testing.loopbounds.models import BUDGET, PROVED, N
from tests.testing.quoll.building import build
from tests.testing.quoll.sketch import HEADER

SORT = (
    (
        "for (int i = 0; i < 99; i++) for (int j = 0; j < 99 - i; j++)"
        " if (table[j] > table[j + 1]) {{ int t = table[j]; table[j] = table[j + 1];"
        " table[j + 1] = t; }}"
    )
    .replace("{{", "{")
    .replace("}}", "}")
)

UNTIL_SORTED = """for (int i = 0; i < 19; i++) {
    int moved = 0;
    for (int j = 0; j < 19 - i; j++)
        if (table[j] > table[j + 1]) {
            int t = table[j];
            table[j] = table[j + 1];
            table[j + 1] = t;
            moved = 1;
        }
    if (!moved) break;
}"""
# body of main(unsigned a): total of the inner header at -O0 and -O2; None: the product
NESTS = {
    "up": ("for (unsigned i = 0; i < 9; i++) for (unsigned j = 0; j <= i; j++) sink = j;", 54, 45),
    "down": ("for (int i = 12; i > 0; i--) for (int j = 0; j < i; j++) sink = j;", 90, 78),
    "bubble sort": (SORT, 5049, 4950),
    "bubble sort until nothing moves": (UNTIL_SORTED, 209, 190),
    "steps": (
        "for (unsigned i = 0; i < 20; i += 2) for (unsigned j = i; j < 20; j++) sink = j;",
        120,
        110,
    ),
    "rectangle": (
        "for (unsigned i = 0; i < 9; i++) for (unsigned j = 0; j < (a & 7); j++) sink = j;",
        None,
        None,
    ),
    "memory": (
        "for (unsigned i = 0; i < 9; i++) for (unsigned j = sink & 7; j < 9; j++) sink = j;",
        None,
        None,
    ),
    "outer without a bound": (
        "for (unsigned i = 0; i != a; i++) for (unsigned j = 0; j < (i & 7); j++) sink = j;",
        None,
        None,
    ),
}


def program(body: str, optimise: str) -> Program:
    source = f"volatile int sink; int table[128];\nint main(unsigned a) {{ {body} return 0; }}"
    flags = ("-fno-unroll-loops", "-fno-tree-loop-distribute-patterns")
    return load(build(source, *flags, optimise=optimise))


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "optimise"), in_turn(NESTS, ["-O0", "-O2"]))
def test_nests(name: str, optimise: str) -> None:
    """The total equals the executions'; rectangular nests and uncounted loops have none."""
    body, slow, fast = NESTS[name]
    code = program(body, optimise)
    _, inner = code.bounds(options=BoundOptions(Budget(seconds=3), workers=1))
    assert inner.total == (slow if optimise == "-O0" else fast)
    if inner.total is not None and "bubble sort" not in name:  # it takes long to run, or ends early
        assert code.totals((0,))[code.header(inner)] == inner.total
        assert inner.around == code.graph.nodes[code.graph.loops[0].header].block.addr


@pytest.mark.slow("NuSMV proves each bound")
def test_a_line_below_an_execution_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fit is a guess: when it is wrong there is no total (rule 19)."""
    model, bound = PROVED["up to a limit"]
    fitted = triangular._line

    def total() -> int | None:
        return total_over(model, N, 121, bound, Budget(seconds=30), find_checker()).executions

    assert prove(model, BUDGET, find_checker()).bound == bound
    assert total() == sum(range(1, 122))

    def lower(points: list[tuple[int, int]]) -> triangular._Line | None:
        line = fitted(points)
        return line and triangular._Line(line.q, line.c - 1, line.s)

    monkeypatch.setattr(triangular, "_line", lower)
    assert total() is None


LARGE = {
    "up": (
        "for (unsigned i = 0; i < 5000; i++) for (unsigned j = 0; j < i; j++) sink = j;",
        12497500,
    ),
    "down": (
        "for (unsigned i = 65535; i; i--) for (unsigned j = i; j; j--) sink = j;",
        65535 * 65536 // 2,
    ),
    "longer than runs are followed": (
        "for (unsigned i = 0; i < 100000; i++) for (unsigned j = 0; j < i; j++) sink = j;",
        99999 * 100000 // 2,
    ),
    "steps": (
        "for (unsigned i = 0; i < 20000; i += 5) for (unsigned j = 0; j < i; j += 2) sink = j;",
        19996000,
    ),
}


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", spread(LARGE, 2))
def test_large_nests(name: str) -> None:
    """Each loop is bounded, and so is the sum, although that is no small number."""
    body, total = LARGE[name]
    _, inner = program(body, "-O2").bounds()
    assert inner.bound is not None
    assert inner.total == total


IN_REGISTERS = """main: push {{r4-r5, lr}}
 ldr r4, ={outer}
1: {start}
2: subs r5, r5, #{step}
 {again} 2b
 subs r4, r4, #1
 bne 1b
 pop {{r4-r5, pc}}
 .ltorg
"""


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(
    ("outer", "start", "step", "again", "total"),
    spread(
        [
            (3000, "lsl r5, r4, #1", 2, "bne", 3000 * 3001 // 2),
            (4000, "add r5, r4, #9", 1, "bne", 4000 * 4001 // 2 + 9 * 4000),
            (3000, "mov r5, r4", 1, "bne", 3000 * 3001 // 2),
        ],
        1,
    ),
)
def test_nests_in_registers(outer: int, start: str, step: int, again: str, total: int) -> None:
    """A sum that is too loose for a single loop does not affect the bound."""
    text = IN_REGISTERS.format(outer=outer, start=start, step=step, again=again)
    _, inner = load(build(HEADER + text, language="S")).bounds()
    assert inner.bound is not None
    assert inner.total == total


@given(
    st.integers(1, 16),
    st.integers(0, 60),
    st.integers(-20, 20).filter(bool),
    st.integers(0, 40),
    st.integers(1, 40),
)
def test_the_sum_under_a_line(q: int, c: int, s: int, last: int, most: int) -> None:
    """Of all iterations, without going through them."""
    found = triangular._Line(q, c, s).total(last, most)
    assert found == sum(max(0, min(most, (c + s * t) // q)) for t in range(last + 1))


def test_a_line_that_could_wrap_is_not_used() -> None:
    """Neither side of the comparison may exceed a word."""
    assert triangular._Line(1, 5, 1).fits(100, 100)
    assert not triangular._Line(1, -1, 1).fits(100, 100)
    assert not triangular._Line(16, 5, 1).fits(100, 1 << 28)
