"""Shared contexts: no execution exceeds a bound, and a shorter call string never tightens one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from loopbounds.bounds import BoundOptions
from loopbounds.proof.prove import Budget
from quoll.errors import UnboundedLoop
from quoll.inlining.vivu import FULL, Vivu
from tests.testing.quoll.building import build
from tests.testing.wcet.programs import CODE, FLAGS, Writer, check
from wcet.analysis.analyse import analyse
from wcet.analysis.options import Options
from wcet.analysis.result import Result
from wcet.analysis.stages import Stages

__all__ = ["Callers", "analysed", "calling_program"]

FUNCTIONS = 4


class Callers(Writer):
    """Programs whose functions call one another from many places."""

    def program(self) -> str:
        numbers = ", ".join(str(self.random.randrange(256)) for _ in range(64))
        self.lines = [
            f"static const unsigned char table[64] = {{{numbers}}};",
            "unsigned data[256];",
            "struct item { unsigned char kind; short count; unsigned word; } items[16];",
        ]
        functions: list[str] = []
        for number in range(FUNCTIONS):
            name = f"f{number}"
            self.loops = 2 if number % 2 else 3
            self.function(f"__attribute__((noinline, noclone)) unsigned {name}", functions, 1)
            functions.append(name)
        self.loops = 2
        self.function("unsigned main", functions, 2)
        return "\n".join(self.lines) + "\n"

    def statement(self, callees: list[str], depth: int, level: int) -> None:
        pad = "    " * level
        if not callees or self.random.random() < 0.4:
            super().statement(callees, depth, level)
        elif self.random.random() < 0.2:
            self.lines.append(f"{pad}{self.random.choice(callees)}((unsigned)&local[2], x);")
        else:
            self.lines.append(f"{pad}x += {self.random.choice(callees)}(x, b);")


def calling_program(seed: int, optimise: str) -> Path:
    """The ELF of one program."""
    source = Callers(Random(seed)).program()
    return build(source, *FLAGS, optimise=optimise, link=(CODE,))


def analysed(elf: Path, vivu: Vivu = FULL) -> Result:
    """The bound of ``main`` without facts."""
    options = Options(
        entries=("main",),
        platform="kzm",
        l2=None,
        facts=(),
        neighbouring_facts=False,
        ends=(),
        solver="highs",
        time_limit=20.0,
        bounds=BoundOptions(budget=Budget(seconds=4), workers=1),
        vivu=vivu,
    )
    return analyse(elf, options, Stages(verbose=False))


@pytest.mark.parametrize("seed", [3, 5, 6])
def test_shorter_strings_cover_what_runs_and_are_never_tighter(seed: int) -> None:
    elf = calling_program(seed, ("-O2", "-O1", "-O2", "-Os")[seed % 4])
    bounds, contexts = [], []
    for length in (None, 2, 0):
        try:
            entry = (result := analysed(elf, Vivu(length))).entries["main"]
        except UnboundedLoop:
            assert length is not None, "these programs are bounded with full strings"
            continue
        assert entry.path.unrealisable is None
        for case in check(result, seed, inputs=3, states=2):
            assert case.most <= case.charged <= case.bound
        bounds.append(entry.cycles)
        contexts.append(len(entry.graph.contexts))
    assert bounds == sorted(bounds)
    assert contexts == sorted(contexts, reverse=True)
    assert contexts[-1] < contexts[0]


def test_long_strings_are_full_strings() -> None:
    elf = calling_program(5, "-O1")
    whole, long = analysed(elf).entries["main"], analysed(elf, Vivu(99)).entries["main"]
    assert long.graph == whole.graph
    assert long.costs == whole.costs
    assert long.solution == whole.solution
    assert long.path == whole.path


TWICE = """
unsigned cells[64];
__attribute__((noinline, noclone)) void set(unsigned *at, unsigned x) { *at = x; }
__attribute__((noinline, noclone)) unsigned sum(unsigned n) {
    unsigned s = 0;
    for (unsigned i = 0; i < n; i++) s += cells[i & 63];
    return s;
}
unsigned main(unsigned a) {
    unsigned local = 7;
    set(&local, a & 1);
    set(&cells[3], 9);
    return sum(5) + sum(20) + local;
}
"""


def test_values_of_all_callers_meet_in_a_shared_context() -> None:
    """A loop that depends on an argument is bounded by the largest one; addresses stay known."""
    elf = build(TWICE, *FLAGS, optimise="-O1", link=(CODE,))
    whole, shared = analysed(elf).entries["main"], analysed(elf, Vivu(0))
    assert sorted(b.bound or 0 for b in whole.bounds) == [5, 20]
    entry = shared.entries["main"]
    assert [b.bound for b in entry.bounds] == [20]
    assert entry.cycles > whole.cycles
    assert len(entry.graph.contexts) == 3
    check(shared, 1, inputs=4, states=3)
