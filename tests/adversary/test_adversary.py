"""Hostile programs against the bounds that are printed for them, and the judge of them itself.

The recorded campaign (docs/validation.md) runs many more: ``make campaign-adversary``.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from campaigns.adversary.assemble import assemble
from campaigns.adversary.campaign import batch, can_go, judge_one
from campaigns.adversary.executor import Arrival, End, Executor
from campaigns.adversary.families import EFFECTS, FAMILIES, TURN, draw, family_of
from campaigns.adversary.judge import Judge
from campaigns.adversary.product import Claims, Product
from campaigns.adversary.program import ARM, BOARDS, THUMB, Board, Program, Writer
from campaigns.adversary_reverts import PATCHES, ROOT
from tests.testing.harness.cases import cases
from wcet.analysis import preparation
from wcet.analysis.prepared import PreparedPaths

pytestmark = [
    pytest.mark.slow("runs programs that it builds"),
    pytest.mark.xdist_group("adversary"),
]

PROGRAMS, BATCH = cases(88), 44  # two of each family


@pytest.mark.slow("hundreds of hostile programs are analysed and executed")
@pytest.mark.parametrize("first", range(0, PROGRAMS, BATCH))
def test_nothing_contradicts_a_bound(first: int) -> None:
    """Each of the defects that are fixed was found so (campaigns/adversary_reverts.py)."""
    tally = batch(1, range(first, first + BATCH), None)
    assert not [(f.family, f.index, f.findings[0]) for f in tally.found]
    assert sum(counts["programs"] for counts in tally.counts.values()) == BATCH
    assert sum(counts["bounded"] for counts in tally.counts.values()) > BATCH // 4


def test_reverting_patches_apply() -> None:
    """To the source of today: a defect that cannot be put back is not looked for."""
    failed = {}
    for patch in sorted(PATCHES.glob("*.patch")):
        command = ["git", "apply", "--check", str(patch)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            failed[patch.stem] = done.stderr
    assert not failed


def test_all_families_take_turns() -> None:
    assert Counter(map(family_of, range(44))).keys() == FAMILIES.keys()


def test_all_families_are_drawn_for_all_their_boards() -> None:
    drawn = {(draw(family, 1, i).board.name, family) for family in EFFECTS for i in range(3)}
    assert drawn == {(board.name, family) for board in BOARDS for family in EFFECTS}


@pytest.mark.parametrize("board", range(len(BOARDS)), ids=lambda number: BOARDS[number].name)
def test_what_is_drawn_can_be_assembled(board: int, tmp_path: Path) -> None:
    drawn = [draw(family, 1, 3 * i + board) for family in EFFECTS for i in range(40)]
    assert assemble(drawn, tmp_path).exists()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_is_determined_by_seed_and_index(family: str) -> None:
    assert draw(family, 1, 2) == draw(family, 1, 2)
    assert len({draw(family, seed, i).lines for seed in (1, 2) for i in range(20)}) > 10


def plain(board: Board, *lines: str, handler: tuple[str, ...] = ()) -> Program:
    """A program of these instructions."""
    w = Writer(Random(0), board)
    w.add(*lines)
    return w.done("frames", handler=handler)


def executor(program: Program, folder: Path) -> Executor:
    """The executor of one program."""
    return Executor(assemble([program], folder), program.board)


LOOP = ("mov r0, #8", ".L~a:", "subs r0, r0, #1", "bne .L~a", "bx lr")
HANDLER = ("ldr r3, =0xf8000100", "str r3, [r3]", "subs pc, lr, #4")


@pytest.mark.parametrize("board", [ARM, THUMB])
def test_what_ran_is_noted(board: Board, tmp_path: Path) -> None:
    ran = executor(plain(board, *LOOP), tmp_path).execute("0", (), None)
    assert ran.end is End.RETURNED
    assert ran.steps == 1 + 2 * 8 + 1


def test_instructions_that_an_it_block_skips_are_noted(tmp_path: Path) -> None:
    program = plain(THUMB, "cmp r0, r0", "itt ne", "movne r1, #1", "movne r2, #1", "bx lr")
    ran = executor(program, tmp_path).execute("0", (), None)
    assert [pc - ran.pcs[0] for pc in ran.pcs] == [0, 2, 4, 6, 8]


def test_an_it_block_ends_behind_an_access_to_memory(tmp_path: Path) -> None:
    drawn = [draw(TURN[index * 7 % 20], 1, index) for index in range(9120, 9156)]
    programs = [program for program in drawn if program.board is THUMB]
    running, number = Executor(assemble(programs, tmp_path), THUMB), str(len(programs) - 1)
    running.fresh(number, None)  # where its code lies matters
    ran = running.execute(number, (("r0", 0), ("r1", 1)), None)
    assert len(ran.pcs) == 29


def test_an_interrupt_is_taken_where_it_is_unmasked(tmp_path: Path) -> None:
    code = ("nop", "nop", "cpsie i", "nop", "bx lr")
    run = executor(plain(ARM, *code, handler=HANDLER), tmp_path)
    assert run.execute("0", (), Arrival(step=1)).steps == 3
    assert run.execute("0", (), Arrival(step=4)).steps == 4
    assert run.execute("0", (), Arrival()).end is End.RETURNED


def test_an_acknowledged_interrupt_is_not_pending(tmp_path: Path) -> None:
    code = ("ldr r1, =0xf8000058", "ldr r0, [r1]", "ldr r3, =0xf8000100", "str r3, [r3]",
            "ldr r2, [r1]", "cmp r2, #0", "moveq r4, #1", "bx lr")  # fmt: skip
    run = executor(plain(ARM, *code, handler=HANDLER), tmp_path)
    ran = run.execute("0", (), Arrival(step=0))
    assert len(ran.reads) == 2
    assert ran.end is End.RETURNED


def test_two_windows_show_one_memory(tmp_path: Path) -> None:
    code = ("ldr r1, =d~", "ldr r2, =d~-0x10000000", "mov r0, #5", "str r0, [r2]",
            "ldr r3, [r1]", ".L~a:", "subs r3, r3, #1", "bne .L~a", "bx lr")  # fmt: skip
    run = executor(plain(ARM, *code), tmp_path)
    run.fresh("0", None)
    assert run.execute("0", (), None).steps == 5 + 2 * 5 + 1


def judge(program: Program, folder: Path) -> set[str]:
    """The kinds of findings."""
    elf = assemble([program], folder)
    return Judge(Product(elf, folder), Executor(elf, program.board)).judge(program, "0").kinds()


def test_a_bound_that_holds_is_left_alone(tmp_path: Path) -> None:
    assert judge(plain(ARM, *LOOP), tmp_path) == set()


def test_a_bound_in_cycles_that_is_too_small_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Claims, "cycles", property(lambda claims: 30))
    assert judge(plain(ARM, *LOOP), tmp_path) == {"time"}


def test_a_constant_return_into_the_kernel_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = ("mov r6, lr", "mov r4, #0xd3", "msr spsr_cxsf, r4", "ldr lr, =.L~on", "movs pc, lr",
            ".L~on:", "bx r6")  # fmt: skip
    monkeypatch.setattr(preparation, "refuse_returns_to_code", lambda *arguments: None)
    monkeypatch.setattr(Claims, "leaves_kernel", lambda claims, address: True)
    steps = Claims.__dict__["steps"].func  # of the cached property
    monkeypatch.setattr(Claims, "steps", property(lambda c: frozenset(sorted(steps(c))[:4])))
    monkeypatch.setattr(Claims, "ends", property(lambda c: {min(c.insns) + 16}))
    program = plain(ARM, *code)
    assert judge(program, tmp_path) == set()
    assert judge(replace(program, constant_returns=True), tmp_path) == {"return"}


@pytest.mark.parametrize(("bound", "kind"), [(7, "loop"), (9, "exact")])
def test_a_bound_of_a_loop_that_is_wrong_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int, kind: str
) -> None:
    def wrong(claims: Claims) -> tuple[PreparedPaths, ...]:
        (paths,) = claims.result.entries[claims.name].paths
        return (replace(paths, bounds=(replace(paths.bounds[0], bound=bound),)),)

    monkeypatch.setattr(Claims, "paths", property(wrong))
    assert judge(replace(plain(ARM, *LOOP), enumerated=True), tmp_path) == {kind}


def test_an_edge_that_is_missing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Claims.steps.func  # type: ignore[attr-defined]
    monkeypatch.setattr(Claims, "steps", property(lambda c: frozenset(sorted(steps(c))[1:])))
    assert judge(plain(ARM, *LOOP), tmp_path) == {"edge"}


@pytest.mark.slow("hundreds of hostile programs are analysed and executed")
def test_a_latency_that_is_too_small_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wcet.analysis.result import InterruptLatency

    program = plain(ARM, *LOOP, handler=HANDLER)
    assert judge(program, tmp_path) == set()
    monkeypatch.setattr(InterruptLatency, "cycles", property(lambda latency: 20))
    assert judge(program, tmp_path) == {"latency"}


def test_an_error_that_is_none_of_the_analysis_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(product: Product, program: Program, number: str) -> None:
        raise KeyError(number)

    monkeypatch.setattr(Product, "analyse", fail)
    assert judge(plain(ARM, *LOOP), tmp_path) == {"crash"}


def test_a_refusal_is_an_answer() -> None:
    endless = plain(ARM, ".L~a:", "b .L~a")
    verdict = judge_one(endless)
    assert not verdict.findings
    assert any(name.startswith("refused") for name in verdict.counts)


def test_masks_of_inputs_are_not_left_out() -> None:
    program = replace(plain(ARM, *LOOP), enumerated=True)
    assert can_go("    mov r0, #1", program)
    assert not can_go("    and r0, r0, #3", program)
    assert not can_go(".L~a:", program)
