"""Rule 14: the concrete machine is monotone and non-expansive, so max-plus may be used for it.

The same trace with the same decisions runs twice, the second time with some resource free a
little later. It must not end earlier, nor later by more than that.
"""

from __future__ import annotations

from random import Random

import pytest

from quoll.valueset import ValueSet
from tests.cache.graphs import DATA, random_program
from tests.pipeline.runs import (
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


@pytest.mark.parametrize(("board", "warm"), [(KZM, True), (KZM, False), (CUBIEBOARD, True)])
def test_a_delay_never_helps_and_never_grows(board: Board, warm: bool) -> None:
    later = 0
    for seed in range(900 if warm else 600):
        without, delayed, by = pair(seed, board, warm=warm)
        assert without <= delayed <= without + by, f"seed {seed}"
        later += delayed > without
    assert later > 100
