"""Loops of compiled C and of assembly: no execution exceeds a bound, and exact ones are reached."""

from __future__ import annotations

import random

import pytest

from campaigns.loop_programs import LEVELS, check
from loopbounds.budgets.budget import Budget
from tests.testing.harness.cases import cases, in_turn
from tests.testing.loopbounds.counting import Program, load
from tests.testing.loopbounds.programs import FLAGS, KINDS, UNCOUNTED, random_program
from tests.testing.quoll.building import build

VOLATILE = "volatile int sink;\n"

# name: (body of main(unsigned a, unsigned b), bound of each loop outermost first, all exact)
COMPILED = {
    "for-constant": ("for (int i = 0; i < 37; i++) sink = i;", [37], True),
    "for-argument": ("for (unsigned i = 0; i < (a & 63); i++) sink = i;", [63], True),
    "down": ("for (unsigned i = a & 31; i; i--) sink = i;", [31], True),
    "do-while": ("unsigned i = 0; do sink = i; while (++i < (b & 15));", [15], True),
    "limit": ("if (a > 100) a = 100; for (unsigned i = 0; i < a; i++) sink = i;", [100], True),
    "checked": ("if (a <= 20) for (unsigned i = 0; i < a; i++) sink = i;", [20], True),
    "signed": ("for (int i = -5; i < (int)(a & 7); i += 2) sink = i;", [6], True),
    "pointer": (
        "volatile int *p = (volatile int *)b, *e = p + (a & 15); while (p != e) *p++ = 1;",
        [15],
        True,
    ),
    "structs": (
        "struct s { int x[3]; } volatile *p = (void *)b, *e = p + (a & 15);"
        "for (; p < e; p++) p->x[1] = 1;",
        None,
        False,
    ),
    "bits": ("for (; a; a &= a - 1) sink = a;", [32], True),
    "halves": ("for (; a; a >>= 1) sink = a;", [32], True),
    "top-bits": ("while (a) { sink = a; a &= ~(0x80000000u >> __builtin_clz(a)); }", [32], True),
    "doubling": ("for (unsigned x = 1; x < (a & 15) << 8; x <<= 1) sink = x;", [12], True),
    "masked-bits": ("for (a &= 0xf0f; a; a &= a - 1) sink = a;", [8], True),
    "two-exits": ("for (int i = 0; i < 50; i++) if (*(volatile int *)a == 3) break;", [50], False),
    "nested": (
        "for (unsigned i = 0; i < 5; i++) for (unsigned j = 0; j < (a & 7); j++) sink = j;",
        [5, 7],
        True,
    ),
    "triangle": (
        "for (unsigned i = 0; i < 9; i++) for (unsigned j = 0; j <= i; j++) sink = j;",
        [9, 9],
        None,
    ),
    "levels": (
        "unsigned left = 32; while (left) { unsigned w = *(volatile unsigned *)a;"
        "unsigned n = (w & 31) + 1; if (n > left) return 1; left -= n; }",
        [32],
        False,
    ),
    "search": (
        "unsigned low = 0, high = 1024; while (low < high) {"
        "unsigned m = (low + high) / 2; if (((volatile unsigned *)a)[m] < b) low = m + 1;"
        "else high = m; } return low;",
        [11],
        None,
    ),
    "table": (
        "static const unsigned char n[16] = {1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 9};"
        "for (unsigned i = 0; i < n[a & 15]; i++) sink = i;",
        [9],
        None,
    ),
    "halved by an inner loop": (
        "for (; a; a >>= 1) while (!(a & 1)) { a >>= 1; sink = a; }",
        None,
        None,
    ),
    "unbounded": ("for (unsigned i = 0; i != a; i++) sink = i;", [None], None),
    "list": ("for (unsigned *p = (unsigned *)a; p; p = (unsigned *)*p) sink = 1;", [None], None),
    "poll": ("while (!(*(volatile unsigned *)0x43F90094 & 8)) ;", [None], None),
    "forever": ("for (;;) { if (sink == 3) return 0; }", [None], None),
}


PARTLY = (  # not all exact
    *UNCOUNTED, "copy with prologue", "set with prologue", "triangular", "moving limit"
)  # fmt: skip


def program(name: str, optimise: str) -> Program:
    source = f"{VOLATILE}int main(unsigned a, unsigned b) {{ {COMPILED[name][0]} return 0; }}"
    return load(
        build(source, "-fno-unroll-loops", "-fno-tree-loop-distribute-patterns", optimise=optimise)
    )


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("name", "optimise"), in_turn(COMPILED, ["-O2", "-O0"]))
def test_compiled(name: str, optimise: str) -> None:
    """Bounds hold in executions at corner arguments; where the table says so, they are known."""
    code = program(name, optimise)
    bounds = code.bounds()
    _, expected, exact = COMPILED[name]
    if expected is not None:
        wanted = [None if e is None else {e, e + 1} for e in expected]
        for bound, allowed in zip(bounds, wanted, strict=True):
            assert bound.bound is None if allowed is None else bound.bound in allowed
    for bound in bounds:
        assert (bound.bound is None) == bool(bound.reason)
    most: dict[int, int] = {}
    for argument in [*range(0, 130, 40 if expected == [None] else 1), 0x7FFFFFFF, 0xFFFFFFFF]:
        for header, count in code.counts((argument, argument)).items():
            most[header] = max(most.get(header, 0), count)
    for bound in bounds:
        if bound.bound is not None:
            assert most.get(code.header(bound), 0) <= bound.bound
            if bound.exact:
                assert most[code.header(bound)] == bound.bound
    if exact:
        assert all(b.exact for b in bounds)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("number", range(len(KINDS)))
def test_random_programs(number: int) -> None:
    """No execution exceeds a bound, and one reaches each that is called exact.

    The campaign does the same for as long as one likes.
    """
    kind, level = KINDS[number], LEVELS[number % len(LEVELS)]
    chance = random.Random(f"1 {kind}")
    flags = FLAGS.get(kind, ())
    found = check(random_program(chance, kind), level, chance, Budget(seconds=10), 60, flags)
    assert found["exact"] == found["loops"] or kind in PARTLY
    assert not found["not reached"]


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("seed", range(cases(2)))
def test_vectorised_loops(seed: int) -> None:
    """Loops over NEON registers: addresses are known, although the data is not."""
    chance = random.Random(seed)
    source = random_program(chance, "vectorised")
    text = load(build(source, *FLAGS["vectorised"])).graph.nodes
    assert any(insn.mnemonic.startswith("vst1") for node in text for insn in node.block.insns)
    found = check(source, "-O3", chance, Budget(seconds=20), 60, FLAGS["vectorised"])
    assert found["exact"] == found["loops"] > 0


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize(("kind", "level"), [("set with prologue", "-O0"), ("triangular", "-O2")])
def test_loops_behind_bounded_loops(kind: str, level: str) -> None:
    """Bytes behind words, and an inner limit that lags one iteration behind the outer counter."""
    chance = random.Random(f"1 0 {kind} {level}")
    found = check(random_program(chance, kind), level, chance, Budget(seconds=20), tries=60)
    assert found["exact"] == found["loops"] > 1
