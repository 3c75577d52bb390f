"""Rule 14: the concrete machine is monotone and non-expansive, so max-plus may be used for it.

The same trace with the same decisions runs twice, the second time with some resource free a
little later. It must not end earlier, nor later by more than that.
"""

from __future__ import annotations

from random import Random

import pytest

from cache.cache_simulator import SimulatedCache
from cache.policy import ReplacementPolicy
from pipeline.pipeline_simulator import ExecutedInsn
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, at, pool, random_program
from tests.testing.harness.cases import cases
from tests.testing.pipeline.runs import (
    CUBIEBOARD,
    KZM,
    MIXED,
    QUIET,
    WARM,
    Board,
    Path,
    random_machine,
    random_path,
    warm_machine,
)

REGISTERS = range(15)


def pair(seed: int, board: Board, *, warm: bool) -> tuple[int, int, int]:
    """Cycles without and with a delay, and the delay."""
    random = Random(seed)
    program = random_program(random, maintenance=False, text=WARM if warm else MIXED)
    if warm:
        for key in program.values:
            program.values[key] = ValueSet.of(DATA + 4 * random.randrange(200))
    path: Path = random_path(program, random, 10)
    delay, what = random.randint(1, 40), random.randrange(len(REGISTERS) + 4)
    ends = []
    for extra in (0, delay):
        again = Random(seed + 1)
        machine = warm_machine(again, board) if warm else random_machine(again, 0, QUIET, board)
        scoreboard = machine.board
        base = {r: scoreboard.result.get(r, -1) for r in REGISTERS}
        if what < len(REGISTERS):
            scoreboard.result[what] = base[what] + extra
        elif what == len(REGISTERS):
            scoreboard.unit += extra
        elif what == len(REGISTERS) + 1:
            scoreboard.flags += extra
        elif what == len(REGISTERS) + 2:
            machine.memory.free += extra
        else:
            machine.clock += extra
        machine.start(program.graph.nodes[path.nodes[0]].block.addr)
        for position, steps in enumerate(path.steps):
            for step in steps:
                machine.execute(step)
            if steps[-1].taken and position + 1 < len(path.nodes):
                machine.start(program.graph.nodes[path.nodes[position + 1]].block.addr)
        ends.append(machine.finished)
    return ends[0], ends[1], delay


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize(
    ("board", "warm"), [(KZM, True), (KZM, False), (CUBIEBOARD, True), (CUBIEBOARD, False)]
)
def test_a_delay_never_helps_and_never_grows(board: Board, warm: bool) -> None:
    later = 0
    for seed in range(cases(150 if warm else 100)):
        without, delayed, by = pair(seed, board, warm=warm)
        assert without <= delayed <= without + by, f"seed {seed}"
        later += delayed > without
    assert later > 10


def after_a_full_buffer(delay: int) -> int:
    """Cycles of a store that finds the buffer full until ``10 + delay``, and of the next code."""
    machine = warm_machine(Random(1), CUBIEBOARD)
    machine.chip.dcache = SimulatedCache(
        CUBIEBOARD.geometries[0], ReplacementPolicy.RANDOM, Random(1)
    )
    store, long = pool("str r0, [r1]\nmul r2, r2, r2\n")
    machine.buffer.extend([10 + delay, *[900] * 7])
    machine.clock = 10
    machine.start(CODE)
    machine.execute(ExecutedInsn(at(store, CODE), True, False, DATA))
    for index in range(1, 400):
        machine.execute(ExecutedInsn(at(long, CODE + 4 * index), True, False))
    return machine.finished


def test_a_replay_makes_a_delay_grow() -> None:
    """Why max-plus is not used for memory stalls of this core, but each is charged a replay."""
    assert after_a_full_buffer(0) == after_a_full_buffer(-5)
    assert after_a_full_buffer(1) == after_a_full_buffer(0) + 1 + CUBIEBOARD.memory.replay
