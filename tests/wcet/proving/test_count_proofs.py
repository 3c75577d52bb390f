"""Counts that are proved from graphs: no path within the bounds of loops contradicts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

from ilp.constraints.instance import CallStructure
from ilp.constraints.nest import LoopNest
from ilp.paths.path_check import check_path
from ilp.paths.solution import PathStep
from quoll.errors import ControlFlowError
from quoll.facts.located import NO_FACTS
from quoll.inlining.supergraph import Supergraph
from tests.testing.harness.cases import cases
from tests.testing.ilp.programs import Case, random_case
from wcet.proving.count_proofs import of_constraint
from wcet.proving.entry_basis import Contradiction, EntryBasis
from wcet.proving.verdict import FindingKind

WALKS = 30
LONGEST = 200


class GraphAlone(EntryBasis):
    """A graph without code: no conditions exclude anything."""

    def excluded(self, nodes: Sequence[int], loop: int | None) -> Contradiction | None:
        return None

    def formulas(self, nodes: Sequence[int], loop: int | None) -> tuple[str, ...]:
        return ()

    def lifted(self, node: int, loop: int | None) -> int:
        return node

    def pass_around(self, nodes: Sequence[int], top: int | None) -> int | None:
        return None

    def place(self, node: int) -> str:
        return str(node)


def basis_of(case: Case) -> GraphAlone:
    run = SimpleNamespace(image=SimpleNamespace(place=hex))
    code: Any = SimpleNamespace(run=run)  # the proofs of counts read no more of an entry
    entry: Any = SimpleNamespace(graph=case.graph, code=code)
    calls = CallStructure(LoopNest.build(case.graph, case.bounds))
    basis = GraphAlone(entry, NO_FACTS)
    vars(basis).update(bounds=case.loop_bounds, calls=calls)
    return basis


def walk(graph: Supergraph, random: Random) -> list[PathStep]:
    """A random path; [] if it ends at no exit."""
    node, steps = graph.entry, list[PathStep]()
    for _ in range(LONGEST):
        after = graph.successors[node]
        if not after or (node in graph.exits and random.random() < 0.5):
            steps.append(PathStep(node, None))
            return steps if node in graph.exits else []
        steps.append(PathStep(node, edge := random.choice(after)))
        node = graph.edges[edge].dst
    return []


def test_no_path_contradicts_a_proved_count() -> None:
    proved = Counter[str]()
    for seed in range(cases(400)):
        try:
            case = random_case(seed)
            basis, random = basis_of(case), Random(seed)
        except ControlFlowError:
            continue
        held = [c for c in case.constraints if of_constraint(basis, c).kind is FindingKind.HOLDS]
        proved.update(type(c.fact).__name__ for c in held)
        for _ in range(WALKS if held else 0):
            steps = walk(case.graph, random)
            if steps and not check_path(case.graph, case.bounds, (), steps):
                broken = check_path(case.graph, case.bounds, held, steps)
                assert not broken, (seed, broken)
    kinds = {"ConflictFact", "ConsistentFact", "AtMostFact", "LinearFact", "RequireFact"}
    assert proved.keys() == kinds, proved
