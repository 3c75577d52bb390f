"""Stretches that begin, end or stay in a function with tests that is analysed once (rule 21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.inlining.sharing import NEVER, SummarySettings
from tests.testing.wcet.interrupts import analysed, kernel, latencies
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import SilentStageLog
from wcet.latency.longest import RankedStretch
from wcet.latency.view import LatencyView, latency_view

SHARED = SummarySettings(contexts=0, least=2, preemptible=0)
KERNEL = """
#define LOW  (*(volatile unsigned *)0xf8000058u)
#define HIGH (*(volatile unsigned *)0xf800005cu)
unsigned memory[512];
__attribute__((noinline)) void prepare(unsigned n) {
    for (unsigned i = 0; i < BEFORE; i++) memory[i & 511] += n;
}
__attribute__((noinline)) void step(unsigned n) {
    for (unsigned i = 0; i < STEP; i++) memory[i & 511] ^= n;
}
__attribute__((noinline)) void complete(unsigned n) {
    for (unsigned i = 0; i < LAST; i++) memory[i & 511] = n;
}
__attribute__((noinline)) void leave(unsigned n) {
    for (unsigned i = 0; i < AFTER; i++) memory[i & 511] -= n;
}
__attribute__((noinline)) int operate(unsigned n) {
    for (unsigned i = 0; i < 6; i++) { step(n); if (LOW | HIGH) return 1; }
    if (n & 1) complete(n);
    return 0;
}
OUTER
int main(unsigned a, unsigned b) {
    int done;
    a &= 3;
    if (a == 0) return 0;
    if (a == 1) { prepare(b); done = CALLED(b); }
    else done = CALLED(a);
    leave(b);
    return done;
}
__attribute__((noinline)) void handler(void) { unsigned line = VECTOR; ACKNOWLEDGE = line; }
"""
OUTER = """
__attribute__((noinline)) int outer(unsigned n) {
    int done;
    if (n & 4) { step(n); done = operate(n + 1); } else done = operate(n ^ 1);
    memory[7] = done;
    return done;
}
"""
COUNTS = {"BEFORE": 9, "STEP": 9, "LAST": 9, "AFTER": 9}
SHAPES = [
    ({"BEFORE": 400, "LAST": 100}, None),
    ({"STEP": 300}, None),
    ({"LAST": 300, "BEFORE": 200}, "operate"),
    ({"AFTER": 300, "LAST": 150}, "operate"),
    ({"AFTER": 300, "STEP": 150}, None),
]


def built(counts: dict[str, int], *, nested: bool = False, source: str = KERNEL) -> Path:
    source = source.replace("OUTER", OUTER if nested else "")
    source = source.replace("CALLED", "outer" if nested else "operate")
    for name, count in {**COUNTS, **counts}.items():
        source = source.replace(name, str(count))
    return kernel(source)


def view(elf: Path, settings: SummarySettings, facts: tuple[Path, ...] = ()) -> LatencyView:
    options = AnalysisOptions(
        ("syscall",), "kzm", facts=facts, neighbouring_facts=False, summary_settings=settings
    )
    return latency_view(elf, options, SilentStageLog(), 4)


def cycles(found: RankedStretch) -> int:
    return found.stretch.result.cycles


def iterations(found: RankedStretch) -> tuple[int, int]:
    """The address of the costliest loop, and its iterations."""
    loop = found.stretch.loops()[0]
    return loop.header, loop.iterations


def innermost(found: LatencyView, one: RankedStretch) -> str:
    operation = one.stretch.operation
    assert operation is not None
    return found.result.function(operation.functions[-1])


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_stretches_are_those_of_the_inlined_entry(
    shape: tuple[dict[str, int], str | None], nested: bool
) -> None:
    counts, begins = shape
    elf = built(counts, nested=nested)
    inlined, once = view(elf, NEVER), view(elf, SHARED)
    entry = once.result.entries["syscall"]
    assert any(start.inside for start in entry.starts)
    assert not any(start.inside for start in inlined.result.entries["syscall"].starts)
    first, second = inlined.stretches[0], once.stretches[0]
    assert cycles(first) <= cycles(second) == entry.cycles < 1.15 * cycles(first)
    assert innermost(inlined, first) == innermost(once, second)
    for found, one in ((inlined, first), (once, second)):
        stretch = one.stretch
        inside = [found.result.function(f) for f in stretch.callers]
        assert (inside[-1] if stretch.start is not None else None) == begins
    assert first.stretch.start == second.stretch.start
    assert first.stretch.test == second.stretch.test
    assert iterations(first) == iterations(second)
    lengths = [cycles(one) for one in once.stretches]
    assert lengths == sorted(lengths, reverse=True)
    for one, other in zip(inlined.stretches, once.stretches, strict=False):
        assert cycles(one) <= cycles(other)


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("counts", [{"BEFORE": 60, "LAST": 70}, {"AFTER": 60, "LAST": 40}])
def test_no_arrival_takes_longer(counts: dict[str, int]) -> None:
    every = tuple((a, b) for a in range(3) for b in range(2))
    result = analysed(built(counts, nested=True), SHARED)
    assert any(start.inside for start in result.entries["syscall"].starts)
    found = latencies(result, 1, every)
    assert found.arrivals > 300
    assert found.most * 10 > found.bound, "the comparison is so loose that it proves nothing"


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("nested", [False, True])
def test_a_place_inside_and_behind_executes_once(nested: bool, tmp_path: Path) -> None:
    """The stretch from the last test, and the caller's rest, share the executions."""
    again = KERNEL.replace(
        "memory[i & 511] -= n;\n", "memory[i & 511] -= n;\n    if (n & 2) complete(n);\n"
    )
    elf = built({"LAST": 300, "BEFORE": 60}, nested=nested, source=again)
    facts = tmp_path / "once.facts"
    facts.write_text("complete executes at most 1 times\n")
    inlined, once = view(elf, NEVER, (facts,)), view(elf, SHARED, (facts,))
    assert any(start.inside for start in once.result.entries["syscall"].starts)
    for one, other in zip(inlined.stretches, once.stretches, strict=False):
        assert cycles(one) <= cycles(other) < 1.2 * cycles(one)
        assert innermost(inlined, one) == innermost(once, other)
        counts = [loop.iterations for loop in other.stretch.loops() if loop.iterations >= 300]
        assert sum(counts) <= 300
