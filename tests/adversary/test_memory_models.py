"""The executor's models besides instructions: address spaces, a write-back cache, modes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from campaigns.adversary.address_spaces import FIRST, SECOND
from campaigns.adversary.assemble import assemble
from campaigns.adversary.executor import Arrival, End, Executor, Run
from campaigns.adversary.program import ARM, ARM_V7, BOARDS, THUMB, Board, Memory, Program, Writer
from campaigns.adversary.write_back import Maintenance, maintenance

TURNS = (".L~a:", "subs r3, r3, #1", "bne .L~a", "bx lr")


def written(board: Board, *lines: str, memory: Memory = Memory.FLAT) -> Program:
    """A program of these instructions; words at ``u~`` and ``v~`` are 3 and 9."""
    w = Writer(Random(0), board)
    w.add(*lines)
    w.low(".lowdata", "u~:", ".word 3")
    w.low(".otherdata", "v~:", ".word 9")
    return w.done("translations", memory=memory)


def executed(program: Program, folder: Path, *, lost: bool = False, times: int = 1) -> list[Run]:
    """Its executions."""
    executor = Executor(assemble([program], folder), program.board)
    runs = []
    for _ in range(times):
        executor.fresh("0", None)
        runs.append(executor.execute("0", (), Arrival(), program.memory, lost=lost))
    return runs


def turns(run: Run) -> int:
    """Executions of the last loop, which has two instructions before the return."""
    assert run.end is End.RETURNED
    return run.pcs.count(run.pcs[-2])


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize("flush", ["mcr p15, 0, r2, c8, c7, 0", "mcr p15, 0, r2, c13, c0, 1"])
def test_an_address_space_is_switched(board: Board, flush: str, tmp_path: Path) -> None:
    code = [f"ldr r0, ={SECOND.base:#x}", "mcr p15, 0, r0, c2, c0, 0", "mov r2, #5", flush,
            "ldr r3, =u~", "ldr r3, [r3]", *TURNS]  # fmt: skip
    runs = executed(written(board, *code, memory=Memory.PAGED), tmp_path, times=2)
    assert [turns(run) for run in runs] == [9, 9]


@pytest.mark.parametrize("flushed", [False, True])
def test_a_changed_table_is_seen_after_a_flush(flushed: bool, tmp_path: Path) -> None:
    code = ["ldr r3, =u~", "ldr r4, [r3]", f"ldr r0, ={FIRST.entry:#x}",
            f"ldr r1, ={SECOND.descriptor:#x}", "str r1, [r0]",
            "mcr p15, 0, r2, c8, c7, 0" if flushed else "nop", "ldr r3, [r3]", *TURNS]  # fmt: skip
    (run,) = executed(written(ARM, *code, memory=Memory.PAGED), tmp_path)
    assert turns(run) == (9 if flushed else 3)


def test_without_tables_memory_is_where_the_elf_has_it(tmp_path: Path) -> None:
    (run,) = executed(written(ARM, "ldr r3, =v~", "ldr r3, [r3]", *TURNS), tmp_path)
    assert turns(run) == 9


INVALIDATE, CLEAN = "mcr p15, 0, r0, c7, c6, 1", "mcr p15, 0, r0, c7, c10, 1"


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
@pytest.mark.parametrize(
    ("operations", "lost", "seen"),
    [((INVALIDATE,), False, 5), ((INVALIDATE,), True, 1), ((CLEAN, INVALIDATE), True, 5)],
)
def test_an_invalidated_line_loses_its_stores(
    board: Board, operations: tuple[str, ...], lost: bool, seen: int, tmp_path: Path
) -> None:
    code = ["ldr r0, =d~", "mov r1, #5", "str r1, [r0]", *operations, "ldr r3, [r0]", *TURNS]
    program = written(board, *code, memory=Memory.CACHED)
    (run,) = executed(program, tmp_path, lost=lost)
    assert turns(run) == seen


@pytest.mark.parametrize(("condition", "seen"), [("eq", 1), ("ne", 5)])
def test_maintenance_under_a_condition(condition: str, seen: int, tmp_path: Path) -> None:
    code = ["ldr r0, =d~", "mov r1, #5", "str r1, [r0]", "cmp r1, #5",
            INVALIDATE.replace("mcr", "mcr" + condition), "ldr r3, [r0]", *TURNS]  # fmt: skip
    (run,) = executed(written(ARM, *code, memory=Memory.CACHED), tmp_path, lost=True)
    assert turns(run) == seen


@pytest.mark.parametrize(
    ("code", "board", "found"),
    [
        (0xEE070F36, ARM, Maintenance(False, True, "address", (0,))),  # c7, c6, 1
        (0xEE071F3A, ARM, Maintenance(True, False, "address", (1,))),  # c7, c10, 1
        (0xEE072F5E, ARM, Maintenance(True, True, "set", (2,))),  # c7, c14, 2
        (0xEE070F16, ARM, Maintenance(False, True, "all", (0,))),  # c7, c6, 0
        (0xEE070F16, ARM_V7, None),
        (0xEE070F5A, ARM_V7, None),  # moves the line to the level 2
        (0xEC421F06, ARM, Maintenance(False, True, "range", (1, 2))),  # mcrr r1, r2, c6
        (0xEC421F05, ARM, None),  # instructions
        (0xEE070F9A, ARM, None),  # a barrier
        (0xE1A00000, ARM, None),
    ],
)
def test_maintenance_is_recognised(code: int, board: Board, found: Maintenance | None) -> None:
    assert maintenance(code, board) == found


@pytest.mark.parametrize("board", [ARM, THUMB], ids=lambda board: board.name)
def test_user_mode_is_noted_and_kept(board: Board, tmp_path: Path) -> None:
    (run,) = executed(written(board, "mov r4, lr", "cps #0x10", "cps #0x13", "bx r4"), tmp_path)
    assert run.user == [2, 3]
    assert not run.unmasked


def test_data_of_the_other_endianness_is_over_when_a_run_is(tmp_path: Path) -> None:
    code = ["ldr r0, =d~", "ldrb r3, [r0]", "ldr r3, [r0]", "setend be", *TURNS]
    runs = executed(written(ARM, *code), tmp_path, times=2)
    assert [turns(run) for run in runs] == [1, 1]
