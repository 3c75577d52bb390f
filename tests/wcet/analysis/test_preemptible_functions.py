"""Functions with tests for interrupts, bounded once for all their calls (rules 20, 21).

Compared with full inlining, and with every arrival of an interrupt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ilp.paths.solution import IlpSolution
from pipeline.costs import Costs
from quoll.errors import MissingKind
from quoll.facts.applied import LimitedCycles
from quoll.facts.fact import FactSource
from quoll.inlining.sharing import NEVER, SummarySettings
from quoll.inlining.supergraph import Supergraph
from quoll.results.results_store import ResultsStore
from tests.testing.harness.cases import spread
from tests.testing.wcet.interrupts import analysed, kernel, latencies
from wcet.analysis.analysis import analyse as run
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.fact_survey import survey
from wcet.analysis.prepared import PreparedPaths, SummaryStart, together
from wcet.analysis.result import AnalysisResult
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.cli import main
from wcet.latency.view import latency_view
from wcet.proving.doubts import path_doubts
from wcet.refinement.refine import refine
from wcet.reports.references import on_worst_path

SHARED = SummarySettings(contexts=0, least=2, preemptible=0)
EVERY = tuple(product(range(4), range(2)))  # arguments that a call tells apart
CALL = """
#define LOW  (*(volatile unsigned *)0xf8000058u)
#define HIGH (*(volatile unsigned *)0xf800005cu)
unsigned memory[64];
volatile unsigned total;
__attribute__((noinline)) void work(unsigned n) {
    for (unsigned i = 0; i < 20; i++) memory[(i + n) & 63] += i;
}
__attribute__((noinline, noreturn)) void finish(unsigned n) {
    for (unsigned i = 0; i < 8; i++) { work(n); if (i & 1 && TEST) break; }
    work(total);
    __asm__ volatile("ldr sp, =stack_top - 36\\n b leave\\n .ltorg\\n");
    __builtin_unreachable();
}
__asm__(".text\\n.global exit_to_user_6\\n"
"leave: pop {r4-r11, lr}\\nexit_to_user_6: movs pc, lr\\n");
__attribute__((noinline)) void first(unsigned n) { work(n); total = n; finish(n + 1); }
__attribute__((noinline)) void second(unsigned n) { EARLY total ^= n; finish(n); }
__attribute__((noinline)) void third(unsigned n) { work(3); work(n); finish(n | total); }
int main(unsigned a, unsigned b) {
    if (a == 0) return b;
    if (a == 1) first(b);
    if (a == 2) second(b);
    third(b);
}
__attribute__((noinline)) void handler(void) {
    unsigned line = VECTOR;
    work(1);
    ACKNOWLEDGE = line;
}
"""
ONE, COUNTED = "(LOW | HIGH)", "preempted()"
PREEMPTED = """
static unsigned units;
__attribute__((noinline)) int preempted(void) {
    if (++units < 3) return 0;
    units = 0;
    return (LOW | HIGH) != 0;
}
__attribute__((noinline, noreturn)) void finish"""


def call(test: str, early: str = "") -> Path:
    source = CALL.replace("TEST", test).replace("EARLY", early.replace("ONE", ONE))
    counted = source.replace("__attribute__((noinline, noreturn)) void finish", PREEMPTED, 1)
    return kernel(counted if test == COUNTED else source)


def shared(result: AnalysisResult) -> list[str]:
    found = map(str, result.entries["syscall"].assumptions)
    return [text for text in found if text.startswith("preemptible: ") and "<finish>" in text]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("test", spread([ONE, COUNTED], 1))
def test_no_arrival_takes_longer_than_with_a_summary(test: str) -> None:
    elf = call(test)
    inlined, once = analysed(elf, NEVER), analysed(elf, SHARED)
    assert not shared(inlined)
    assert len(shared(once)) == 1
    one, other = inlined.entries["syscall"], once.entries["syscall"]
    assert one.cycles <= other.cycles < 1.5 * one.cycles
    assert len(one.starts) > 2
    (behind,) = (found for found in other.summaries if found.behind)
    rest = max(start.cycles for start in one.starts if start.place)
    assert rest <= behind.solution.cycles
    assert rest <= max(start.cycles for start in other.starts if start.inside) < 1.1 * rest
    assert inlined.latency is not None
    assert once.latency is not None
    assert {*once.latency.assumptions} == {*inlined.latency.assumptions}
    found = latencies(once, 1, EVERY)
    assert found.arrivals > 300
    assert found.most * 10 > found.bound, "the comparison is so loose that it proves nothing"


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("early", ["if (ONE) total = 7;", "if (LOW) return;"])
def test_tests_of_callers_are_not_used(early: str) -> None:
    result = analysed(call(ONE, early), SHARED)
    assert shared(result)
    latencies(result, 2, EVERY)


ONCE = """    if (a == 1) return operate(b);
    if (a == 2) { work(b); return operate(b + 1); }
    return operate(a);
"""
TWICE = ONCE.replace("return operate(a)", "return operate(a) || operate(b)")
REPEATED = ONCE.replace("return operate(a)", "while (a--) if (operate(b)) return 1; return 0")
OPERATION = """
__attribute__((noinline)) int operate(unsigned n) {
    for (unsigned i = 0; i < 8; i++) { work(n); if (LOW | HIGH) return 1; }
    work(total);
    return 0;
}
int main(unsigned a, unsigned b) {
    a &= 3;
"""


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("calls", [ONCE, TWICE, REPEATED])
def test_a_function_has_a_summary_if_each_path_calls_it_once(calls: str) -> None:
    """Behind the first call an interrupt may be acknowledged, so that tests show none."""
    start = CALL.index("__attribute__((noinline, noreturn))")
    end = CALL.index("__attribute__((noinline)) void handler")
    source = CALL[:start] + OPERATION + calls + "}\n" + CALL[end:]
    result = analysed(kernel(source), SHARED)
    texts = map(str, result.entries["syscall"].assumptions)
    assert any("<operate>" in one and one.startswith("preemptible: ") for one in texts) == (
        calls == ONCE
    )
    latencies(result, 3, EVERY)


def board(folder: Path) -> str:
    """The KZM board with a controller whose vector acknowledges when it is read."""
    path = folder / "board.toml"
    controller = ("--controller", "avic@0xF8000000", "--output", str(path))
    assert main(["platform", "new", "board", "--from", "kzm", *controller]) == 0
    return str(path)


ACKNOWLEDGING = """
__attribute__((noinline)) int operate(unsigned n) {
    for (unsigned i = 0; i < 8; i++) { work(n); if (VECTOR >> 16 != 0xffff) return 0; }
    return 1;
}
int main(unsigned a, unsigned b) {
    int done;
    if (a == 1) done = operate(b);
    else { work(b); done = operate(a); }
    if (LOW | HIGH) return 1;
    for (int i = 0; i < 40; i++) work(b);
    return done;
}
"""


@pytest.mark.slow("several whole analyses")
def test_behind_a_function_that_acknowledges_tests_may_show_no_interrupt(tmp_path: Path) -> None:
    start = CALL.index("__attribute__((noinline, noreturn))")
    end = CALL.index("__attribute__((noinline)) void handler")
    elf, platform = kernel(CALL[:start] + ACKNOWLEDGING + CALL[end:]), board(tmp_path)
    one, once = analysed(elf, NEVER, platform), analysed(elf, SHARED, platform)
    entry = once.entries["syscall"]
    assert any(paths.hides_tests for paths in entry.paths)
    assert 40 * 20 * 5 < one.entries["syscall"].cycles <= entry.cycles


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("register", [0x64, 0x0C])
def test_a_caller_that_disables_a_line_inlines_it(register: int, tmp_path: Path) -> None:
    """Then only it knows whether the interrupt is still pending: its tests may show none."""
    early = f"*(volatile unsigned *){0xF8000000 + register:#x} = n; work(1);"
    found = shared(analysed(call(ONE, early), SHARED, board(tmp_path)))
    assert bool(found) == (register != 0x0C)


def counted_by_callers(*callers: str) -> Path:
    """A kernel with an argument that bounds a loop; ``callers`` bound the argument."""
    source = CALL.replace("TEST", ONE).replace("EARLY", "").replace("i < 8", "i < n")
    for function in callers:
        head = f"void {function}(unsigned n) {{"
        source = source.replace(head, f"{head} n &= 7;")
    return kernel(source.replace("n | total", "n | 1"))


@pytest.mark.slow("several whole analyses")
def test_a_loop_whose_bound_only_callers_know_inlines_it(tmp_path: Path) -> None:
    """The proof fails for any caller, and not by the clock: the inlined entry is stored."""
    elf = counted_by_callers("first", "second", "third")
    result = analysed(elf, SHARED)
    assert not shared(result)
    latencies(result, 4, EVERY)
    options = AnalysisOptions(
        ("syscall",), "kzm", store=ResultsStore(tmp_path), summary_settings=SHARED
    )
    stages = [{*run(elf, options, StageLog(verbose=False)).stages} for _ in range(2)]
    assert ["values" in one for one in stages] == [True, False]


@pytest.mark.slow("several whole analyses")
@pytest.mark.parametrize("callers", [("first", "second"), ("first", "second", "third")])
def test_a_survey_asks_such_a_loop_only_if_callers_do_not_bound_it(callers: Sequence[str]) -> None:
    options = AnalysisOptions(("syscall",), "kzm", summary_settings=SHARED)
    found = survey(counted_by_callers(*callers), options, StageLog(verbose=False))
    assert [one.kind for _, one in found.missing] == [MissingKind.LOOPS] * (3 - len(callers))
    assert not found.others
    assert not found.unfinished


@pytest.mark.slow("several whole analyses")
def test_a_stored_entry_that_hides_tests_is_not_used_where_they_are_followed(
    tmp_path: Path,
) -> None:
    store = ResultsStore(tmp_path)
    options = AnalysisOptions(("syscall",), "kzm", store=store, summary_settings=SHARED)
    elf, stages = call(ONE), StageLog(verbose=False)
    inside = [
        any(start.inside for start in run(elf, wanted, stages).entries["syscall"].starts)
        for wanted in (options, options.showing_tests, options)
    ]
    assert inside == [True, False, False]


@pytest.mark.slow("several whole analyses")
def test_other_commands_accept_an_entry_that_hides_tests() -> None:
    options = AnalysisOptions(("syscall",), "kzm", summary_settings=SHARED)
    elf, stages = call(ONE), StageLog(verbose=False)
    analysed_run = AnalysisRun.begin(elf, options, stages)
    entry = run(elf, options, stages).entries["syscall"]
    assert path_doubts(analysed_run, 5).cycles == entry.cycles
    assert refine(elf, options, 5, stages).cycles <= entry.cycles
    assert on_worst_path(analysed_run, "syscall", entry).graph.nodes == entry.graph.nodes
    found = latency_view(elf, options, stages, 2)
    assert len(found.stretches) == 2
    assert found.stretches[0].stretch.result.cycles <= entry.cycles


def test_calls_may_execute_no_counted_place_where_one_start_does_not() -> None:
    """From the first start every path executes it, and from the second one none: both are calls."""
    place = FactSource("file", 1, "f executes at most 1 times")
    solution = IlpSolution(90, True, (), (), "solver")
    paths = PreparedPaths(None, Supergraph((), (), (), (), (), 0, (), ()), Costs((), ()), ())
    always = SummaryStart(paths, solution, ((LimitedCycles(((place, 1),), 90), solution),))
    found = together([always, SummaryStart(paths, replace(solution, cycles=50))])
    assert {one.counts: one.cycles for one, _ in found} == {((place, 1),): 90, (): 50}
