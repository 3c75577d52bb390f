"""Charged translations cover every concrete TLB."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from cache.classify import classify
from pipeline.charge import charge
from pipeline.costs import CostCause
from pipeline.timing_model import CoreProfile
from pipeline.tlb import changes_translation
from pipeline.tlb_model import TlbModel
from quoll.cfg.cfg import Block
from quoll.inlining.supergraph import Context, Supergraph, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, Program, at, pool
from tests.testing.cache.walks import hierarchy
from tests.testing.harness.cases import cases
from tests.testing.pipeline.runs import BOARDS, QUIET, Board, check, timing

SMALL_PAGES = TlbModel(10, 2, 4096)
SECTIONS = TlbModel(10, 2, 4096, large=((0xF0000000, 0xF7FFFFFF, 1 << 20),))
LOCKED = TlbModel(10, 2, 1024, locked=((CODE, CODE + 0x3FFFF),))
CASES = cases(60)
WALK, REFILL = 10 + 2 * 60, 10


@pytest.mark.slow("simulates many executions instruction by instruction")
@pytest.mark.parametrize("board", BOARDS, ids=lambda b: b.core)
@pytest.mark.parametrize("model", [SMALL_PAGES, SECTIONS, LOCKED], ids=["4K", "1M", "locked"])
def test_no_execution_takes_longer(board: Board, model: TlbModel) -> None:
    for seed in range(CASES):
        try:
            check(Random(seed), list(CoreProfile)[seed % 2], board=board, tlb=model)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_without_the_charge_executions_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail."""
    monkeypatch.setattr("pipeline.charge.translations", lambda graph, *_: (0,) * len(graph.nodes))
    slow = TlbModel(10, 20, 4096)
    with pytest.raises(AssertionError, match="are charged"):
        all(check(Random(seed), tlb=slow) for seed in range(CASES))


def cycles(
    text: str, *values: ValueSet | None, model: TlbModel = SMALL_PAGES, base: int = CODE,
    ahead: int = 0,
) -> int:  # fmt: skip
    insns = tuple(at(insn, base + 4 * i) for i, insn in enumerate(pool(text)))
    left = iter(values)
    places = {(0, i): next(left) for i, insn in enumerate(insns) if insn.memory is not None}
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
    program, caches = Program(graph, places), replace(hierarchy(ahead))
    classes = classify(graph, program, caches)
    costs = timing(CoreProfile.WCET, QUIET, tlb=model)
    found = charge(graph, classes, program, caches, costs, exception=False)
    return found.costs.nodes[0][CostCause.TLB]


HERE, NEXT_PAGE = ValueSet.of(DATA), ValueSet.of(DATA + 4096)
LOAD = "ldr r0, [r4]\n"
CODE_WALK = WALK  # the entry knows nothing


@pytest.mark.parametrize(
    ("text", "values", "due"),
    [
        ("add r0, r1, r2\n", [], 0),
        (LOAD, [HERE], WALK),
        (LOAD * 2, [HERE, HERE], WALK),
        (LOAD * 2, [HERE, NEXT_PAGE], 2 * WALK),
        (LOAD * 3, [HERE, None, HERE], 3 * WALK),
        ("ldm r4, {r0-r3}\n", [None], 2 * WALK),
        ("ldrne r0, [r4]\n" + LOAD, [HERE, HERE], 2 * WALK),
        ("pld [r4]\n" + LOAD, [HERE, HERE], 2 * WALK),
        (LOAD + "mcr p15, 0, r0, c8, c7, 0\n" + LOAD, [HERE, HERE], 3 * WALK),  # and of code
        (LOAD, [ValueSet(DATA, DATA + 64, 4)], WALK),
        (LOAD * 2, [ValueSet(DATA, DATA + 64, 4), HERE], WALK),
    ],
)
def test_what_is_charged(text: str, values: list[ValueSet | None], due: int) -> None:
    assert cycles(text, *values) == CODE_WALK + due


def test_large_mappings_and_locked_pages() -> None:
    assert cycles(LOAD * 2, HERE, NEXT_PAGE, model=SECTIONS) == CODE_WALK + WALK
    assert cycles("add r0, r1, r2\n", model=LOCKED) == REFILL


def test_code_at_the_end_of_a_page() -> None:
    text, end = "add r0, r1, r2\n" * 2, CODE + 4096
    assert cycles(text, base=end - 4) == 2 * WALK
    assert cycles(text, base=end - 8) == WALK
    # Each instruction may be followed by a fetch ahead into the next page.
    assert cycles(text, base=end - 8, ahead=16) == 4 * WALK


def test_registers_of_translation() -> None:
    found = [
        changes_translation(insn)
        for insn in pool("mcr p15, 0, r0, c2, c0, 0\nmcr p15, 0, r0, c7, c5, 4\nmov r0, r1\n")
    ]
    assert found == [True, False, False]
