"""The witness of a bound: an independent machine takes the same path from its state."""

from __future__ import annotations

import pytest

from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from quoll.image.image import Image
from quoll.recordings.follow import follow
from tests.testing.arm.interpreter import ByteMemory, ConcreteMachine
from tests.testing.harness.cases import cases
from tests.testing.wcet.planted_programs import FAMILIES, planted
from tests.testing.wcet.programs import executed_from
from tests.testing.wcet.refined_runs import graph_of, refined
from wcet.analysis.seen_executions import SeenExecution

TIGHT = [  # the worst path is one that a state takes
    ("correlated", 1),
    ("callees", 4),
    ("cleared", 7),
]


def machine_in(image: Image, seen: SeenExecution, *, thumb: bool) -> ConcreteMachine:
    """The interpreter in the state at the entry; its other words are 0."""
    state = dict(seen.state or ())
    content = {
        int(name.removeprefix("word"), 16) + i: value >> 8 * i & 0xFF
        for name, value in state.items()
        if name.startswith("word")
        for i in range(4)
    }
    machine = ConcreteMachine(ByteMemory(content, lambda addr: image.constant(addr, 1) or 0))
    machine.thumb = thumb
    for register in range(25):
        kind = "r" if register < 16 else "flag"
        machine.registers[register] = state.get(f"{kind}{register}", 0)
    return machine


@pytest.mark.slow("analyses, refines and executes a program of each family")
@pytest.mark.parametrize(
    ("family", "seed"),
    [*TIGHT, *(([*FAMILIES][seed % len(FAMILIES)], seed) for seed in range(10, 10 + cases(3)))],
)
def test_a_machine_takes_the_path_of_the_witness(family: str, seed: int) -> None:
    program = planted(family, seed)
    found = refined(program.elf, platform=program.platform, sharing=program.sharing)
    seen, graph = found.entry.seen, graph_of(found)
    if seen is None:
        assert (family, seed) not in TIGHT
        return
    machine = machine_in(found.image, seen, thumb=program.thumb)
    pcs = executed_from(found.image, machine, found.entry.address)
    steps = [PathStep(visit.node, visit.edge) for visit in follow(graph, found.image, pcs)]
    assert path_cycles(found.worst.paths.costs, steps) == seen.charged
    assert seen.charged is not None
    assert seen.cycles <= seen.charged <= found.cycles
    if (family, seed) in TIGHT:
        assert seen.charged == found.cycles
