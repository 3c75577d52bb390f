"""The search climbs over a greedy decision of few cycles, to the longest path that is feasible."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quoll.preemption.segments import SegmentValues
from quoll.processes.processor_time import own
from tests.testing.wcet.planted_programs import built
from tests.testing.wcet.refined_runs import options, refined
from wcet.analysis.analysis import cached_or_prepared
from wcet.analysis.entry_stages import AnalysisTarget, divided
from wcet.analysis.integer_programs import constraints_of, start_programs
from wcet.analysis.preparation import valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.refinement.climb import climbed
from wcet.refinement.state_search import StateSearch

pytestmark = pytest.mark.slow("analyses whole programs")

SOURCE = """
#define NOINLINE __attribute__((noinline))
volatile unsigned sink[64];
unsigned mode;
NOINLINE void work(unsigned n) { for (unsigned i = 0; i < 12; i++) sink[i] += n; }
NOINLINE void other(unsigned n) { sink[n & 7] = n; }
unsigned main(unsigned a, unsigned b) {
    if (a == 3) other(b);
    if (mode == 1) other(a);
    sink[b & 63] = a;
    if (a == 5) work(b);
    if (mode == 2) work(a);
    return a;
}
"""


def searched(elf: Path) -> tuple[StateSearch, list[int]]:
    """The search along the worst path of ``main``, without refinement; the edges of the path."""
    run = AnalysisRun.begin(elf, options(), SilentStageLog())
    ((name, address),) = run.entries.items()
    prepared = cached_or_prepared(run, name, address)
    limits = constraints_of(run, name, prepared)
    [program] = start_programs(run, name, address, prepared, limits)
    entry = valued(AnalysisTarget(run, name, address))
    [segment] = divided(entry)
    values = SegmentValues(entry.values, segment)
    search = StateSearch(program, entry.code.run.image, values, own() + 60)
    steps = program.answer.worst.path.steps
    return search, [step.edge for step in steps if step.edge is not None]


def test_a_cheap_decision_is_given_up_for_an_expensive_one() -> None:
    elf = built(SOURCE, clang=False, thumb=False, cpu="arm1136jf-s", level="-O1")
    search, worst = searched(elf)
    first = search.along(worst)
    assert first is not None
    best = climbed(search, first, worst, 40, Random(1))
    assert first.cycles < best.cycles == refined(elf).cycles
    assert best.cycles < search.program.answer.worst.solution.cycles
    assert climbed(search, first, worst, 40, Random(1)).words == best.words
    again = search.with_words(best.words)
    assert again is not None
    assert again.steps == best.steps
