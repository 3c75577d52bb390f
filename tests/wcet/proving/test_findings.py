"""No execution contradicts a fact that is proved, on programs with random facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quoll.cfg.cfg import EdgeKind
from quoll.errors import FactsError
from quoll.extraction.extract import extract
from quoll.facts.located import LocatedFacts, locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.context_cuts import guided_in_contexts
from quoll.inlining.expand import expand
from quoll.inlining.supergraph import Supergraph
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.harness.cases import cases
from tests.testing.wcet.infeasible_programs import CHANGED, DEVICE, EXCLUSIVE, build_pairs
from tests.testing.wcet.programs import run
from tests.testing.wcet.proved import basis_of
from wcet.executions.fact_check import check_facts
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.prove import finding
from wcet.proving.verdict import FindingKind

RUNS = 40
FACTS = 30
FUNCTIONS = ("work", "more")
LEVELS = ("-O1", "-O2", "-Os")


def random_facts(basis: EntryBasis, random: Random) -> Iterator[str]:
    """Facts of every kind about places of ``main`` and its callees; most of them are wrong."""
    graph = basis.graph
    blocks = [node.block for node in graph.nodes]
    places = [hex(b.addr) for b in blocks if b.always_runs(b.insns[0])]
    branches = [
        graph.nodes[n].block.last.addr
        for n, after in enumerate(graph.successors)
        if len(after) == 2 and any(graph.edges[e].kind is EdgeKind.FALLTHROUGH for e in after)
    ]
    headers = [graph.nodes[loop.header].block.addr for loop in graph.loops]
    for _ in range(FACTS):
        a, b = random.sample(places, 2)
        within = random.choice([" in main", ""])
        n = random.randrange(4)
        yield random.choice(
            [
                f"{a} conflicts with {b} in main",
                "work conflicts with more in main",
                f"{a} is consistent with {b} in main",
                f"{a} executes at most {n} times{within}",
                f"{a} never executes{within}",
                f"require {a}",
                f"count({a}) + 2*count({b}) <= {n}{within}",
                f"branch at {random.choice(branches):#x} is {random.choice(['always', 'never'])} "
                f"taken{within}",
                f"loop {random.choice(headers):#x} at most {random.randrange(1, 15)}",
                f"register r{random.randrange(8)} at {a} is at most {4 << 4 * n}",
            ]
        )


def executions(image: Image, entry: int, seed: int) -> Trace:
    """Recorded executions with random arguments and memory."""
    found = []
    for number in range(RUNS):
        pcs, _ = run(image, entry, Random(f"{seed} {number}"), changing=(DEVICE, DEVICE + 3))
        words = memoryview(np.array(pcs, "u4").tobytes()).cast("I")
        found.append(Execution(words, np.empty((0, 3), np.uint32), End.OUTSIDE))
    return Trace(0, 0, 0, tuple(found))


def graph_of(image: Image, entry: int, facts: LocatedFacts) -> Supergraph:
    """The graph without the code that the facts exclude: an execution there refutes them."""
    program = extract(image, [entry], facts)
    return guided_in_contexts(expand(program, entry, image), image, facts)


def broken(image: Image, entry: int, text: str, trace: Trace) -> str:
    """The first violation of a fact, by the checker of recorded executions."""
    facts = locate(parse(text, "my.facts"), image)
    graph = graph_of(image, entry, facts)
    [record], _ = check_facts(image, facts, {entry: graph}, "t", trace)
    return record.first


@pytest.mark.slow("analyses random programs, and executes them")
@pytest.mark.parametrize("seed", range(cases(3)))
def test_no_execution_contradicts_a_proved_fact(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    kinds = (random.choice(EXCLUSIVE), random.choice(CHANGED), random.choice(EXCLUSIVE))
    program = build_pairs(kinds, seed, LEVELS[seed % len(LEVELS)])
    basis = basis_of(program.elf)
    image, entry = Image.load(program.elf), basis.entry.code.address
    trace = executions(image, entry, seed)
    proved = 0
    for text in random_facts(basis, random):
        facts = locate(parse(text, "my.facts"), image)
        basis.facts = facts
        try:
            found = finding(basis, facts.facts[0])
        except FactsError:  # the places are in one block, or in no loop
            continue
        if found.kind is FindingKind.HOLDS:
            proved += 1
            assert not broken(image, entry, text, trace), (text, found.why, program.source)
    assert proved
