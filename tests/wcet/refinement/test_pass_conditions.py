"""Terms that a restart has left behind: they have no description, and are no defect."""

from __future__ import annotations

import pytest

from tests.testing.wcet.planted_programs import built
from tests.testing.wcet.refined_runs import options
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.preparation import valued
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import SilentStageLog
from wcet.refinement.pass_conditions import PassConditions
from wcet.refinement.passes import Pass

SOURCE = """
volatile unsigned sink[8];
unsigned mode;
unsigned main(unsigned a) {
    if (mode == 1) sink[0] = a;
    sink[a & 7] = 3;
    if (mode == 2) sink[1] = a;
    return a;
}
"""


@pytest.mark.slow("analyses a program")
def test_words_of_other_scopes_have_no_description() -> None:
    """Conditions that were computed before words turned out to be stack addresses are kept."""
    elf = built(SOURCE, clang=False, thumb=False, cpu="arm1136jf-s", level="-O1")
    run = AnalysisRun.begin(elf, options(), SilentStageLog())
    ((name, address),) = run.entries.items()
    entry = valued(AnalysisTarget(run, name, address))
    graph = entry.graph
    branches = tuple(e for e, one in enumerate(graph.edges) if len(graph.successors[one.src]) > 1)
    conditions, restarted = (PassConditions.of(entry, {}) for _ in range(2))
    [taken] = conditions.taken([Pass(None, branches)])
    terms = list(taken.values())
    assert "a word" not in conditions.words(None, terms).values()
    assert conditions.common_words(None, terms)
    assert any(conditions.looks(None, term) for term in terms)
    assert {*restarted.words(None, terms).values()} == {"a word"}
    assert restarted.common_words(None, terms) == ()
    assert not any(restarted.looks(None, term) for term in terms)
    assert not any(map(restarted.store_behind, restarted.words(None, terms)))
    assert restarted.ranges(None, terms) == []
