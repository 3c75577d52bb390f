"""Terms that a restart has left behind, and conditions of too many values."""

from __future__ import annotations

import pytest

from loopbounds.terms.bit_vectors import TRUE
from quoll.inlining.supergraph import Supergraph
from tests.testing.wcet.planted_programs import built
from tests.testing.wcet.refined_runs import options
from wcet.analysis.entry_stages import AnalysisTarget
from wcet.analysis.preparation import ValuedEntry, valued
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


LOOP = """
volatile unsigned sink[8];
unsigned flags;
unsigned main(unsigned a) {
    for (unsigned n = 0; n < a; n++)
        if (flags & 1) {
            flags &= ~1u;
            sink[0] = n;
        }
    if (flags == 4) sink[1] = a;
    return a;
}
"""


def valued_main(source: str) -> ValuedEntry:
    """The entry of a program, with values."""
    elf = built(source, clang=False, thumb=False, cpu="arm1136jf-s", level="-O1")
    run = AnalysisRun.begin(elf, options(), SilentStageLog())
    ((name, address),) = run.entries.items()
    return valued(AnalysisTarget(run, name, address))


def branches_of(graph: Supergraph) -> tuple[int, ...]:
    """The edges out of nodes with several."""
    return tuple(e for e, one in enumerate(graph.edges) if len(graph.successors[one.src]) > 1)


@pytest.mark.slow("analyses a program")
@pytest.mark.parametrize("most", [0, 3, 12])
def test_a_condition_of_too_many_values_is_true(most: int) -> None:
    """The others are as without a limit, and so is a condition whose complement counts."""
    entry = valued_main(LOOP)
    graph = entry.graph
    exact, limited = PassConditions.of(entry, {}), PassConditions.of(entry, {}, most)
    inside = [e for e in branches_of(graph) if graph.edges[e].src in graph.loops[0].nodes]
    passes = [Pass(None, branches_of(graph)), Pass(0, tuple(inside))]
    left_out = 0
    for known, found in zip(exact.taken(passes), limited.taken(passes), strict=True):
        assert known.keys() == found.keys()
        for edge, condition in found.items():
            assert condition in (TRUE, known[edge])
            left_out += condition is not known[edge]
    assert left_out if most < 12 else not left_out
    for edge in inside:
        assert limited.taken_in_iteration(0, edge) is exact.taken_in_iteration(0, edge)
    assert limited.returning(0) is exact.returning(0)


@pytest.mark.slow("analyses a program")
def test_words_of_other_scopes_have_no_description() -> None:
    """Conditions that were computed before words turned out to be stack addresses are kept."""
    entry = valued_main(SOURCE)
    branches = branches_of(entry.graph)
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
