"""A hardware trace against facts and bounds: a path, perhaps with measured cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from quoll.image.image import Image
from tests.testing.quoll.building import address, build
from wcet.cli import main

PROGRAM = """
.syntax unified
.arm
.global main
.type main, %function
main: mov r1, #0
loop: add r1, r1, #1
ldr r2, [r0]
cmp r2, r1
bhi loop
bx lr
"""
FACTS = "loop loop at most {}\nregion data from 0xf0000000 to 0xf0000fff is cached\n"


class Board:
    """The program with its project file, and a trace of one execution."""

    def __init__(self, folder: Path) -> None:
        self.kernel = build(PROGRAM, "-Wl,-Ttext=0xf0010000", language="S")
        self.facts, self.trace = folder / "k.facts", folder / "trace.txt"
        at = address(Image.load(self.kernel), "main")
        self.path = f"{at:x}:{at + 4:x}\n" + f"{at + 4:x}:{at + 20:x}\n" * 3 + f"{at + 20:x}\n"

    def run(self, command: str, cycles: str, iterations: int = 4) -> int:
        self.facts.write_text(FACTS.format(iterations))
        self.trace.write_text(self.path + cycles)
        files = [str(self.kernel), str(self.trace)]
        if command == "replay":
            files = [str(self.trace), "--kernel", str(self.kernel)]
        cache = [
            "--cache",
            str(self.facts.parent / "cache"),
            "--platform",
            "kzm",
            "--entry",
            "main",
        ]
        return main([command, *files, *cache, "--facts", str(self.facts), "--quiet"])


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path)


def test_facts_about_control_are_checked(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    assert board.run("check-facts", "") == 0
    printed = capsys.readouterr().out
    assert "loop loop at most 4: survived 1 execution" in printed
    assert printed.rstrip().endswith("is cached: assumed")
    assert board.run("check-facts", "", 2) == 1
    assert "VIOLATED" in capsys.readouterr().out


def test_measured_cycles_are_compared(board: Board, capsys: pytest.CaptureFixture[str]) -> None:
    """They are the lower end of the interval, and an execution above the bound is reported."""
    assert board.run("replay", "cycles 77\n") == 0
    capsys.readouterr()
    cache = str(board.facts.parent / "cache")
    request = [str(board.kernel), "--entry", "main", "--platform", "kzm", "--cache", cache]
    assert main(["analyse", *request, "--facts", str(board.facts), "--quiet"]) == 0
    assert "[seen 77, charged " in capsys.readouterr().out
    assert board.run("replay", "cycles 1000000\n") == 1
    assert "1,000,000 cycles measured" in capsys.readouterr().out


def test_without_cycles_nothing_is_replayed(
    board: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert board.run("replay", "") == 3
    assert "shows no cycles" in capsys.readouterr().err
