"""Small programs in memory of a board, with their reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.testing.quoll.building import build
from wcet.cli import main

__all__ = ["BOARDS", "COUNTS", "KZM", "Analysed", "Board", "Outcome"]

FIXED = "0xf0020000"  # in memory of fixed translation
PROGRAM = """
.syntax unified
{state}
.text
.global main
.type main, %function
main:
{body}
{other}
.ltorg
.data
.balign 64
value: .word 7
.space 124
beyond: .word 7
.section .rodata,"a"
.balign 64
constant: .word 5
table: .word first, second
"""
COUNTS = "1: subs r3, r3, #1\nbne 1b\n"


class Board(NamedTuple):
    cpu: str
    platform: str
    thumb: bool = False


KZM = Board("arm1136jf-s", "kzm")
BOARDS = (KZM, Board("cortex-a8", "cubieboard"), Board("cortex-a8", "cubieboard", thumb=True))


class Outcome(NamedTuple):
    status: int
    bound: int | None  # of the first loop
    assumptions: list[str]
    error: str


class Analysed:
    """Runs ``wcet analyse`` on programs in one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def __call__(
        self,
        body: str,
        *options: str,
        other: str = "",
        data: str = FIXED,
        text: str = "0xf0010000",
        rodata: str = "0xf0030000",
        facts: str = "",
        board: Board = KZM,
    ) -> Outcome:
        state = ".thumb\n.thumb_func" if board.thumb else ".arm"
        link = (f"-Wl,-Ttext={text}", f"-Wl,-Tdata={data}", f"-Wl,--section-start=.rodata={rodata}")
        source = PROGRAM.format(state=state, body=body, other=other)
        labels = "" if "first:" in source else "first:\nsecond:\n"
        source = source.replace(".ltorg", f"{labels}.ltorg", 1)
        elf = build(source, language="asm", cpu=board.cpu, thumb=board.thumb, link=link)
        out, stated = self.folder / "out.json", self.folder / "k.facts"
        stated.write_text(facts)
        common = ["--entry", "main", "--platform", board.platform, "--quiet", "--no-cache"]
        more = ["--paths", "none", "--json", str(out), "--facts", str(stated), *options]
        out.unlink(missing_ok=True)
        status = main(["analyse", str(elf), *common, *more])
        error = self.capsys.readouterr().err
        report: dict[str, Any] = json.loads(out.read_text()) if status == 0 else {}
        loops = report["entries"]["main"]["loops"] if report else []
        bound = loops[0]["bound"] if loops else None
        return Outcome(status, bound, report.get("assumptions", []), error)
