"""Loops that count in data which the ELF initialises, in programs that start with these data."""

from __future__ import annotations

import random

import pytest

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from tests.testing.loopbounds.counting import load
from tests.testing.loopbounds.programs import FLAGS, KINDS, random_program
from tests.testing.quoll.building import build

WHOLE = "-fno-tree-loop-distribute-patterns"

# Each with the executions of its loops' headers per entry, and where that is less than the product
# of two the total of the inner one; None: no bound.
PROGRAMS: dict[str, tuple[str, list[int | None], list[int | None]]] = {
    "bubble sort": (
        "int a[12] = {4, 3, 9, 2, 1}, n = 12; int main(void) {"
        " for (int i = 0; i < n - 1; i++) for (int j = 0; j < n - 1 - i; j++)"
        " if (a[j] > a[j + 1]) { int t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; } return a[0]; }",
        [11, 11],
        [None, 66],
    ),
    "sum of a matrix": (
        "int m[6][9] = {{1, 2}, {3}}, rows = 6, columns = 9; int main(void) { int s = 0;"
        " for (int i = 0; i < rows; i++) for (int j = 0; j < columns; j++) s += m[i][j];"
        " return s; }",
        [6, 9],
        [None, None],
    ),
    "Fibonacci": (
        "int count = 30; int main(void) { int f = 1, o = 0;"
        " for (int i = 2; i <= count; i++) { int t = f; f += o; o = t; } return f; }",
        [29],
        [None],
    ),
    "binary search": (
        "int keys[15] = {1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};"
        " int size = 15, wanted = 8; int main(void) { int low = 0, up = size - 1;"
        " while (low <= up) { int mid = (low + up) >> 1; if (keys[mid] == wanted) return mid;"
        " if (keys[mid] > wanted) up = mid - 1; else low = mid + 1; } return -1; }",
        [5],
        [None],
    ),
    "a count that is changed": (
        "unsigned left = 9; int main(void) { while (left) left -= 3; return 0; }",
        [4],
        [None],
    ),
    "stored before, at an unknown place": (
        "unsigned n = 9; int main(unsigned *p) { unsigned s = 0; *p = 5;"
        " for (unsigned i = 0; i != n; i += 3) s += i; return s; }",
        [None],
        [None],
    ),
}


OPTIONS = BoundOptions(Budget(seconds=10), workers=0)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("name", PROGRAMS)
def test_data_that_the_elf_initialises_bound_loops(name: str) -> None:
    """At most one above the execution; without known data there is no such bound."""
    source, expected, totals = PROGRAMS[name]
    elf = build(source, WHOLE, optimise="-O1")
    code = load(elf, from_reset=True)
    counts = code.counts((0x4000,))
    for found, wanted, least in zip(code.bounds(options=OPTIONS), expected, totals, strict=True):
        bound, total, executed = found.bound, found.total, counts[code.header(found)]
        assert (bound is None) == (wanted is None)
        if bound is not None and wanted is not None:
            assert executed <= bound <= wanted + 1
        if least is not None:
            assert total is not None
            assert total <= least + 11
    options = BoundOptions(Budget(seconds=1), workers=0)
    unknown = [found.bound for found in load(elf).bounds(options=options)]
    assert any(bound is None or bound > 1 << 16 for bound in unknown)


@pytest.mark.slow("NuSMV proves each bound")
@pytest.mark.parametrize("number", range(0, len(KINDS), 3))
def test_random_programs_with_initialised_arguments(number: int) -> None:
    """Executions from the ELF's memory do not exceed the bounds, and reach exact ones."""
    kind = KINDS[number]
    chance = random.Random(f"as loaded {kind}")
    a, b = chance.getrandbits(32), chance.randrange(100)
    function = "int main(unsigned a, unsigned b)"
    source = random_program(chance, kind)
    assert function in source
    inlined = "static inline __attribute__((always_inline)) int run(unsigned a, unsigned b)"
    source = source.replace(function, inlined) + (
        f"unsigned first = {a}u, second = {b};\nint main(void) {{ return run(first, second); }}\n"
    )
    code = load(build(source, *FLAGS.get(kind, ()), optimise="-O1"), from_reset=True)
    counts = code.counts(())
    for bound in code.bounds(options=OPTIONS):
        executed = counts[code.header(bound)]
        if bound.bound is not None:
            assert executed <= bound.bound
            if bound.exact:
                assert executed == bound.bound
