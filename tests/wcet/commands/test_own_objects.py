"""Recordings refute assumption S8: a store of unknown address hits an object of its own."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quoll.arm.insn import LR, SP
from quoll.errors import FactsError
from quoll.image.image import Image
from quoll.recordings.trace import End, RecordedAccess
from tests.testing.arm.interpreter import ConcreteMachine
from tests.testing.quoll.building import address, build
from tests.testing.quoll.recordings import Run, recording
from tests.testing.wcet.programs import CODE, RETURN, STACK, Recorder, executed_from
from wcet.cli import main

# The address is made of two words that no instruction has as constants.
PROGRAM = """\
int buffer[64], rounds, limit;
int main(unsigned half, unsigned rest, int value) {
    int sum = 0;
    rounds = 3;
    *(volatile int *)(half * 2 + rest) = value;
    for (int i = 0; i < rounds; i++)
        sum += ((volatile int *)buffer)[i & 63];
    return sum;
}
"""
IN_ORDER = "-fno-toplevel-reorder"  # no object ends where the array begins
STORE = 5  # line of the program
BOTH = ["check-facts", "replay"]


class Accesses(Recorder):
    """All accesses of an execution."""

    def __init__(self, image: Image) -> None:
        super().__init__(image, Random(1))
        self.made: list[RecordedAccess] = []

    def load(self, addr: int, size: int) -> int:
        self.made.append(RecordedAccess(self.at, addr, size, store=False))
        return super().load(addr, size)

    def store(self, addr: int, size: int, value: int) -> None:
        self.made.append(RecordedAccess(self.at, addr, size, store=True))
        super().store(addr, size, value)


class Board:
    """The program with an invariant, and recordings of its executions."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kernel = folder, build(PROGRAM, IN_ORDER, link=(CODE,))
        self.image = Image.load(self.kernel)
        (folder / "my.facts").write_text("invariant small: limit <= 7\n")

    def executed(self, target: int) -> Run:
        """An execution whose store hits ``target``; it writes 3, so that its path is the same."""
        memory = Accesses(self.image)
        machine = ConcreteMachine(memory)
        machine.registers[:3] = 0x1234567, target - 0x2468ACE & 0xFFFFFFFF, 3
        machine.registers[SP], machine.registers[LR] = STACK, RETURN
        pcs = executed_from(self.image, machine, address(self.image, "main"), memory)
        return Run(pcs, memory.made, End.OUTSIDE, [])

    def run(self, command: str, *executions: Run) -> int:
        """The exit status."""
        trace = self.folder / "a.trace"
        trace.write_bytes(recording(list(executions)))
        files = [str(self.kernel), str(trace)]
        if command == "replay":
            files = [str(trace), "--kernel", str(self.kernel)]
        options = ["--entry", "main", "--platform", "kzm", "--cache", str(self.folder / "cache")]
        facts = ["--facts", str(self.folder / "my.facts"), "--quiet"]
        return main([command, *files, *options, *facts])


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return Board(tmp_path_factory.mktemp("board"))


@pytest.mark.parametrize("command", BOTH)
def test_a_store_elsewhere_is_allowed(board: Board, command: str) -> None:
    """The object's own store, and one to a neighbour that the report does not list."""
    places = [address(board.image, name) for name in ("buffer", "limit")]
    assert board.run(command, *map(board.executed, places)) == 0


@pytest.mark.parametrize("command", BOTH)
def test_a_store_to_the_object_is_an_error(
    board: Board, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = address(board.image, "rounds")
    elsewhere = board.executed(address(board.image, "buffer"))
    assert board.run(command, elsewhere, board.executed(at)) == FactsError.exit_status
    said = capsys.readouterr().err
    assert "refutes 'S8: a store of unknown address does not hit rounds" in said
    assert f"str r2, [r1, r0, lsl #1] stores to {at:#x} <rounds>" in said
    assert "a.trace, execution 2, instruction" in said
    assert f"prog.c:{STORE}" in said


@pytest.mark.parametrize("distance", [-3, -1, 2, 3])
def test_a_byte_of_the_object_suffices(board: Board, distance: int) -> None:
    at = address(board.image, "rounds")
    run = board.executed(address(board.image, "buffer"))
    moved = [
        RecordedAccess(a.index, at + distance, 4, store=True) if a.store and a.addr != at else a
        for a in run.accesses
    ]
    outside = Run(run.pcs, moved, run.end, [])
    assert board.run("check-facts", outside) == FactsError.exit_status


@pytest.mark.parametrize("end", list(End))
def test_incomplete_executions_are_judged(board: Board, end: End) -> None:
    complete = board.executed(address(board.image, "buffer"))
    hit = board.executed(address(board.image, "rounds"))
    assert board.run("check-facts", complete, Run(hit.pcs, hit.accesses, end, [])) != 0


def test_without_the_assumption_nothing_is_refuted(board: Board, tmp_path: Path) -> None:
    """Without an invariant, values lose the object, and a fact bounds the loop."""
    facts = board.folder / "my.facts"
    before = facts.read_text()
    facts.write_text("loop prog.c:6 at most 3\n")
    try:
        assert board.run("check-facts", board.executed(address(board.image, "rounds"))) == 0
    finally:
        facts.write_text(before)
