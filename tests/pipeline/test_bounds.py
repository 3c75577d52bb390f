"""The bound of a path is never below its execution on the concrete machine (rules 14 to 17)."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest

from cache.cache_simulator import SimulatedCache
from cache.classify import classify
from cache.policy import ReplacementPolicy
from campaigns.anomalies import search
from pipeline.charge import charge
from pipeline.core import load_core
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.timing_model import CoreProfile
from quoll.cfg.cfg import Block
from quoll.inlining.supergraph import Context, Supergraph, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, Program, at, pool
from tests.testing.cache.walks import L1, hierarchy
from tests.testing.harness.cases import cases
from tests.testing.pipeline.runs import (
    BOARDS,
    MEMORY,
    QUIET,
    Board,
    Path,
    charged,
    check,
    check_warm,
    run,
    sampled,
    straight_line,
    timing,
)

WARM_CASES = cases(200)  # with every access a hit: the pipeline alone
SAMPLED, STATES, CLIMBED = cases(15), 100, 100  # programs, states of each, proposals
COLD_CASES = cases(200)  # with caches in any state; many more in campaigns/pipeline.py


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
@pytest.mark.parametrize("profile", CoreProfile)
def test_block_times_cover_the_concrete_pipeline(profile: CoreProfile, board: Board) -> None:
    """Random programs and paths from idle and busy pipelines."""
    ratios, exact = [], 0
    for seed in range(WARM_CASES):
        try:
            case = check_warm(Random(seed), profile, board=board)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ratios.append(case.bound / max(case.concrete, 1))
        exact += case.bound == case.concrete
    if profile is CoreProfile.NOMINAL:
        # A bound that is far above everything would prove nothing.
        assert median(ratios) < 1.05
        assert exact > len(ratios) // 5
    assert exact > 0


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_charges_cover_misses_and_memory(board: Board) -> None:
    """Random programs, paths, cache contents, prefetches, outstanding accesses."""
    closest = 10.0
    for seed in range(COLD_CASES):
        try:
            case = check(Random(seed), list(CoreProfile)[seed % 2], board=board)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        closest = min(closest, case.bound / max(case.concrete, 1))
    assert closest < 1.3


class Far(Random):
    """Fetch always runs ahead as far as it may."""

    def randint(self, a: int, b: int) -> int:
        return b


@pytest.mark.parametrize("last", ["bx lr\n", "ldr pc, [r4]\n", "pop {r4, r5, pc}\n"])
@pytest.mark.parametrize("nops", range(1, 8))
def test_fetches_past_the_end_delay_the_last_access(last: str, nops: int) -> None:
    """Cold caches full of dirty lines: every charge of this path happens, and nothing else may."""
    insns = tuple(
        at(insn, CODE + 4 * i) for i, insn in enumerate(pool("mov r0, r1\n" * nops + last))
    )
    graph = Supergraph(
        (Context(None, None, CODE),),
        (SuperNode(0, Block(0, insns)),),
        (),
        ((),),
        ((),),
        0,
        (0,),
        (),
    )
    program = Program(graph, {(0, i): ValueSet.of(DATA) for i in range(len(insns))})
    caches = hierarchy(48)
    classes = classify(graph, program, caches)
    costs = charge(
        graph, classes, program, caches, timing(CoreProfile.WCET, QUIET), exception=False
    )
    random = Far(1)
    icache, dcache = (SimulatedCache(L1, ReplacementPolicy.ROUND_ROBIN, random) for _ in range(2))
    for ways in dcache._sets:
        for number, way in enumerate(ways):
            way.line, way.dirty = number, True
    core = load_core("arm1136", CoreProfile.NOMINAL)
    machine = PipelineMachine(core, MemoryBus(MEMORY), FetchAndCaches(icache, dcache, 48, random))
    steps = [
        ExecutedInsn(insn, True, insn is insns[-1], DATA if insn.memory is not None else None)
        for insn in insns
    ]
    path = Path([0], [], [steps])
    assert run(machine, program, path) <= charged(costs, path)


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_charges_cover_many_states_of_every_program(board: Board) -> None:
    """As above on the compiled machine: few programs, many states of each."""
    ratios = []
    for seed in range(SAMPLED):
        try:
            case = sampled(Random(seed), list(CoreProfile)[seed % 2], board, STATES, CLIMBED)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        ratios.append(case.bound / case.concrete)
    assert min(ratios) < 1.2


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_straight_line_code_is_timed_tightly(board: Board) -> None:
    """With known outcomes the nominal profile is at most 2 % above the machine, in the median."""
    cases = [straight_line(Random(seed), CoreProfile.NOMINAL, board) for seed in range(60)]
    assert median(case.bound / case.concrete for case in cases) <= 1.02


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
def test_a_local_hit_never_makes_the_whole_later(board: Board) -> None:
    """Every program of two instructions (longer ones: ``campaigns/anomalies.py``)."""
    found = search(board, 2)
    assert found.comparisons > 250
    assert found.anomalies == []
