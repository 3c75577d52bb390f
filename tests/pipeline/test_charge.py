"""The charges of a block, by cause, on figures that can be checked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cache.classify import classify
from cache.reference import HitClass, ReferenceKind
from pipeline.charge import ChargedCosts, charge
from pipeline.costs import CostCause
from pipeline.timing_model import BranchModel, CoreProfile
from quoll.cfg.cfg import Block, EdgeKind
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperNode
from quoll.intervals.strided_interval import ValueSet
from tests.testing.cache.graphs import CODE, DATA, DEVICE, Program, at, pool
from tests.testing.cache.walks import hierarchy
from tests.testing.pipeline.runs import CUBIEBOARD, ENTRY, KZM, QUIET, Board, timing

HERE = ValueSet.of(DATA)


def two_blocks(first: str, kind: EdgeKind, far: int, *values: ValueSet | None) -> Program:
    """A block, then ``add`` at ``CODE + far``, where the path ends."""
    insns = tuple(at(insn, CODE + 4 * i) for i, insn in enumerate(pool(first)))
    target = Block(1, (at(pool("add r0, r1, r2\n")[0], CODE + far),))
    graph = Supergraph(
        (Context(None, None, CODE),), (SuperNode(0, Block(0, insns)), SuperNode(0, target)),
        (SuperEdge(0, 1, kind),), ((0,), ()), ((), (0,)), 0, (1,), (),
    )  # fmt: skip
    left = iter(values)
    return Program(
        graph, {(0, i): next(left) for i, insn in enumerate(insns) if insn.memory is not None}
    )


def charges(
    program: Program, *, ahead: int = 0, constant: int | None = None, exception: bool = False
) -> ChargedCosts:
    caches = hierarchy(ahead)
    costs = replace(
        timing(CoreProfile.WCET, ENTRY if exception else QUIET), branches=BranchModel(constant)
    )
    classes = classify(program.graph, program, caches)
    return charge(program.graph, classes, program, caches, costs, exception=exception)


def node(text: str, *values: ValueSet | None) -> tuple[int, ...]:
    program = two_blocks(text, EdgeKind.FALLTHROUGH, 4 * len(pool(text)), *values)
    return charges(program).costs.nodes[0]


@pytest.mark.parametrize(
    ("text", "values", "cause", "cycles"),
    [
        ("ldr r0, [r4]\n", [HERE], CostCause.LOAD_MISS, 60 + 3 + 60),
        ("ldr r0, [r4]\n", [None], CostCause.LOAD_MISS, 123),
        ("ldr r0, [r4]\n", [ValueSet.of(DEVICE)], CostCause.LOAD_MISS, 60),
        ("ldr r0, [r4]\nldr r1, [r4]\n", [HERE, HERE], CostCause.LOAD_MISS, 123),
        ("ldm r4, {r0-r3, r5-r9}\n", [HERE], CostCause.LOAD_MISS, 2 * 123),
        # Nine words of unknown memory: eight uncached ones cost more than a line.
        ("ldm r4, {r0-r3, r5-r9}\n", [None], CostCause.LOAD_MISS, 8 * 60 + 123),
        ("str r0, [r4]\n", [HERE], CostCause.STORE, 60),
        ("stm r4, {r0-r3, r5-r9}\n", [None], CostCause.STORE, 9 * 60),
        ("strb r0, [r4]\n", [ValueSet.of(DEVICE)], CostCause.STORE, 60),
        ("ldr r0, [r4]\nstr r0, [r4]\n", [HERE, HERE], CostCause.STORE, 0),
        ("swp r0, r1, [r4]\n", [HERE], CostCause.STORE, 60),
        ("mcr p15, 0, r0, c7, c10, 1\n", [], CostCause.ISSUE, 9),
    ],
)
def test_memory(text: str, values: list[ValueSet | None], cause: CostCause, cycles: int) -> None:
    assert node(text, *values)[cause] == cycles


def test_first_fetch_of_a_line() -> None:
    assert node("add r0, r1, r2\n" * 8)[CostCause.FETCH_MISS] == 63
    assert node("add r0, r1, r2\n" * 9)[CostCause.FETCH_MISS] == 126


@pytest.mark.parametrize(
    ("text", "kind", "constant", "cycles"),
    [
        # Cycles from the branch to its target, less its own slot.
        ("mov r2, r3\nmov r2, r3\nb .\n", EdgeKind.TAKEN, None, 6 - 1),
        # At the entry the flags may just have been set.
        ("b .\n", EdgeKind.TAKEN, None, 7 - 1),
        ("b .\n", EdgeKind.TAKEN, 5, 5 - 1),
        ("bx lr\n", EdgeKind.RETURN, None, 7 - 1),
        ("cmp r0, r1\n" + "mov r2, r3\n" * 20 + "beq .\n", EdgeKind.TAKEN, None, 6 - 1),
        ("cmp r0, r1\nbeq .\n", EdgeKind.TAKEN, None, 7 - 1 - 1),
        ("mov r2, r3\n" * 20 + "beq .\n", EdgeKind.FALLTHROUGH, None, 5 - 1),
        ("mov r2, r3\n" * 20 + "beq .\n", EdgeKind.FALLTHROUGH, 5, 5 - 1),
        ("pop {r4, pc}\n", EdgeKind.RETURN, None, 9 - 1),
        ("ldr pc, [r4]\n", EdgeKind.INDIRECT, None, 9 - 1),
    ],
)
def test_branches(text: str, kind: EdgeKind, constant: int | None, cycles: int) -> None:
    loads = [HERE] * sum(insn.memory is not None for insn in pool(text))
    far = 4 * len(pool(text)) if kind is EdgeKind.FALLTHROUGH else 4096
    costs = charges(two_blocks(text, kind, far, *loads), constant=constant).costs
    assert costs.edges[0][CostCause.BRANCH] == cycles


@pytest.mark.parametrize(("ahead", "lines"), [(0, 0), (8, 0), (32, 1), (48, 2)])
def test_fetches_past_a_taken_branch(ahead: int, lines: int) -> None:
    """Rule 8: the branch stands at byte 20 of its line; bytes 24 and up may be fetched."""
    program = two_blocks("mov r2, r3\n" * 5 + "b .\n", EdgeKind.TAKEN, 4096)
    found = charges(program, ahead=ahead)
    assert found.costs.edges[0][CostCause.FETCH_MISS] == 63 * lines
    assert {r.kind for r in found.classes.prefetches[0]} <= {ReferenceKind.PREFETCH}


def test_a_line_fetched_past_a_branch_is_not_charged_again() -> None:
    program = two_blocks("mov r2, r3\n" * 7 + "b .\n", EdgeKind.TAKEN, 32)
    found = charges(program, ahead=8)
    assert found.costs.edges[0][CostCause.FETCH_MISS] == 63
    (fetch,) = found.classes.references[1]
    assert (fetch.l1, fetch.credited, found.costs.nodes[1][CostCause.FETCH_MISS]) == (
        HitClass.NC,
        True,
        0,
    )


def test_entry_and_exit() -> None:
    program = two_blocks("b .\n", EdgeKind.TAKEN, 4096)
    taken = charges(program, exception=True).costs
    outstanding = 3 * 123 + 8 * 60 + 63
    assert taken.start[CostCause.OTHER] == 10 + outstanding
    quiet = charges(program).costs
    assert sum(quiet.start) == 0
    assert taken.nodes == quiet.nodes
    # The result of the last instruction is ready one cycle after its slot.
    assert quiet.nodes[1][CostCause.OTHER] == 0


def test_the_drain_of_the_last_result_is_charged() -> None:
    insns = tuple(at(insn, CODE + 4 * i) for i, insn in enumerate(pool("mul r0, r1, r2\n")))
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
    found = charges(Program(graph, {}))
    longest = found.times.core.longest
    cycles = found.costs.nodes[0]
    # Early operands wait for the worst state at the entry; the result is ready 4 cycles later.
    assert cycles[CostCause.STALL] == longest + 1
    assert (cycles[CostCause.ISSUE], cycles[CostCause.OTHER]) == (2, 4 - 2)


def test_an_explanation_adds_up() -> None:
    text = "cmp r0, r1\nldr r0, [r4]\nadd r1, r0, r2\nstr r1, [r5]\nbeq .\n"
    found = charges(two_blocks(text, EdgeKind.TAKEN, 4096, None, HERE))
    rows, cycles = found.explain(0), found.costs.nodes[0]
    assert [r.insn.addr for r in rows] == [CODE + 4 * i for i in range(5)]
    branch_slot = rows[-1].step.start + 1
    assert branch_slot == cycles[CostCause.ISSUE] + cycles[CostCause.STALL]
    assert rows[2].step.reason == "r0"
    charged = sum(c for row in rows for _, c in row.references)
    misses = (CostCause.FETCH_MISS, CostCause.LOAD_MISS, CostCause.STORE)
    assert charged == sum(cycles[c] for c in misses) == 63 + 123 + 60
    time = found.times.nodes[0]
    assert time is not None
    assert time.leaving == 6 - 1


@pytest.mark.parametrize("constant", [None, 5])
def test_a_cold_copy_of_a_kibibyte_is_not_below_the_measured_time(constant: int | None) -> None:
    """Rule 14a: 10,640 cycles were measured on the board."""
    text = "ldm r4!, {r0-r3, r5-r8}\nstm r9!, {r0-r3, r5-r8}\n" * 32
    program = two_blocks(text, EdgeKind.FALLTHROUGH, 256, *[None] * 64)
    assert charges(program, constant=constant).costs.node_cycles(0) >= 10_640


@pytest.mark.parametrize("board", [KZM, CUBIEBOARD], ids=["32", "64"])
def test_cleaning_a_line_writes_one_line_back(board: Board) -> None:
    """The cost of one write-back is charged on boards with lines of 32 and of 64 bytes."""
    program = two_blocks("mcr p15, 0, r0, c7, c10, 1\n", EdgeKind.FALLTHROUGH, 4)
    caches = board.hierarchy(0)
    classes = classify(program.graph, program, caches)
    costs = timing(CoreProfile.WCET, QUIET, board)
    found = charge(program.graph, classes, program, caches, costs, exception=False)
    assert found.costs.nodes[0][CostCause.OTHER] == board.memory.write_back
