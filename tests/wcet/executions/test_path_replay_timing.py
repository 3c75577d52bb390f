"""``wcet replay --timing``: the moments of a replay add up to it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pipeline.native import SplitMix
from pipeline.pipeline_simulator import ExecutedInsn
from pipeline.predictor_simulator import PredictingMachine
from tests.testing.cache.graphs import at, pool
from wcet.executions.path_replay import StartContents, moments, random_machine, replay
from wcet.platforms.platform_model import load

TEXT = "ldr r0, [r1]\nadd r2, r0, #1\nstr r2, [r3]\nstm r3, {r4-r7}\nmul r4, r2, r0\nb .\n"


@pytest.mark.parametrize("board", ["kzm", "kzm-predictor", "kzm-returns", "cubieboard"])
def test_moments_follow_each_other_and_end_with_the_replay(board: str) -> None:
    platform = load(board)
    insns = [at(insn, 0xF0010000 + 4 * i) for i, insn in enumerate(pool(TEXT))]
    steps = [
        ExecutedInsn(insn, True, insn is insns[-1], 0xF0020000 if insn.memory is not None else None)
        for insn in insns
    ]
    machines = [
        random_machine(platform, steps, StartContents.POLLUTED, SplitMix(seed)) for seed in (3, 3)
    ]
    assert isinstance(machines[0], PredictingMachine) == (board in ("kzm-predictor", "kzm-returns"))
    found = list(moments(machines[0], steps, exception=True))
    assert [m.addr for m in found] == [insn.addr for insn in insns]
    assert all(a.at + a.cycles == b.at for a, b in pairwise(found))
    assert machines[0].finished == replay(machines[1], steps, exception=True)
    assert found[0].fetch_misses >= 1
    assert found[0].load_misses == 1
    assert "D-miss" in found[0].reasons
    assert [m.stored_words for m in found] == [0, 0, 0, 0, 0, 0], "the load brought the line in"
