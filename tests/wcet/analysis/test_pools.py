"""The facts about memory that are shipped with the kernel: no recorded execution refutes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.facts.located import locate
from quoll.facts.memory_facts import RegionFact
from quoll.facts.read import Facts, load
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.follow import follow
from quoll.recordings.observations import observations
from quoll.recordings.trace import End, Trace
from quoll.value_analysis.value_results import ValueResults, analyse
from tests.testing.harness import build
from tests.testing.wcet.entry_graphs import EntryGraphs

EVERY = 16  # of the paths are followed: test_first_light follows all of them without facts
POOLS = build.ROOT / "kernels/bilby/pools.facts"


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load([POOLS])


@pytest.fixture(scope="module")
def valued(
    kernel: Path, facts: Facts, entry_graphs: dict[int, EntryGraphs]
) -> dict[int, tuple[Supergraph, ValueResults]]:
    """Each entry with its values under the facts, by vector address."""
    image = Image.load(kernel)
    regions = locate(facts, image).regions
    return {
        vector: (whole, analyse(whole, image, regions=regions))
        for vector, (whole, _, _) in entry_graphs.items()
    }


def test_no_execution_refutes_the_pools(
    kernel: Path, trace: Trace, facts: Facts, valued: dict[int, tuple[Supergraph, ValueResults]]
) -> None:
    """No access violates a fact, nor an address set that value analysis derives from the facts."""
    image = Image.load(kernel)
    assert len([fact for fact in facts.facts if not isinstance(fact, RegionFact)]) <= 8
    regions = locate(facts, image).regions
    unknown = frozenset().union(*(values.unknown for _, values in valued.values()))
    seen: set[int] = set()
    different = {(e.pcs.tobytes(), e.access_words.tobytes()): e for e in trace.executions}
    for execution in different.values():
        assert all(seen.holds for seen in observations(regions, image, execution, unknown))
        seen |= {execution.pcs[access.index] for access in execution.accesses()}
    assert set(regions.pointers) <= seen, "every fact is about an access that the tests make"
    assert len(unknown & seen) > 500
    paths = {e.pcs.tobytes(): e for e in different.values() if e.end is not End.STOPPED}
    for execution in list(paths.values())[::EVERY]:
        graph, values = valued[execution.entry]
        visits = follow(graph, image, execution.pcs)
        at = [(v.node, i) for v in visits for i in range(len(graph.nodes[v.node].block.insns))]
        first: dict[int, int] = {}
        for access in execution.accesses():
            if access.index < len(at):
                first[access.index] = min(access.addr, first.get(access.index, access.addr))
        for index, address in first.items():
            allowed = values.access(*at[index])
            assert allowed is not None
            assert address in allowed, image.place(execution.pcs[index])
