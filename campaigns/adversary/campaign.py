"""Runs hostile programs in batches: one ELF for each board and a hundred programs."""

from __future__ import annotations

import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from campaigns.adversary.assemble import assemble
from campaigns.adversary.executor import Executor
from campaigns.adversary.families import draw, family_of
from campaigns.adversary.judge import Finding, Judge, Verdict
from campaigns.adversary.product import Product, memoised_queries
from campaigns.adversary.program import BOARDS, Program

__all__ = ["Found", "Tally", "batch", "judge_all", "judge_one", "minimised"]

PATIENCE = 120  # seconds for one program


@dataclass(frozen=True, slots=True)
class Found:
    """A program with something wrong."""

    family: str
    seed: int
    index: int
    findings: tuple[Finding, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, each once."""
        return tuple(dict.fromkeys(f.kind for f in self.findings))


@dataclass(slots=True)
class Tally:
    """The results of many programs, by family."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Add the results of another batch."""
        for family, counts in other.counts.items():
            self.counts.setdefault(family, Counter()).update(counts)
        self.found += other.found


class TooLong(Exception):
    """A program took more than ``PATIENCE``."""


@contextmanager
def limited() -> Iterator[None]:
    """Raises TooLong out of the body after ``PATIENCE`` seconds."""

    def ring(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def judge_all(programs: Sequence[Program]) -> list[Verdict]:
    """One verdict for each; all are of one board."""
    with tempfile.TemporaryDirectory(prefix="adversary-") as name:
        folder = Path(name)
        elf = assemble(programs, folder)
        board = programs[0].board
        judge = Judge(Product(elf, folder), Executor(elf, board))
        found = []
        for number, program in enumerate(programs):
            try:
                with limited():
                    found.append(judge.judge(program, str(number)))
            except TooLong:
                late = Finding("hang", f"no answer in {PATIENCE} s")
                found.append(Verdict([late], Counter(programs=1)))
        return found


def judge_one(program: Program) -> Verdict:
    """The verdict on one program."""
    return judge_all([program])[0]


def batch(seed: int, indices: Sequence[int], family: str | None) -> Tally:
    """The programs of a seed with these indices, of one family or of all in turn."""
    tally = Tally()
    drawn = [(index, draw(family or family_of(index), seed, index)) for index in indices]
    for board in BOARDS:
        of_board = [(index, program) for index, program in drawn if program.board is board]
        if not of_board:
            continue
        with memoised_queries():
            verdicts = judge_all([program for _, program in of_board])
        for (index, program), verdict in zip(of_board, verdicts, strict=True):
            counts = tally.counts.setdefault(program.family, Counter())
            counts.update(verdict.counts)
            counts.update(f"excused: {name}" for name in verdict.excused)
            counts.update(f"FOUND {kind}" for kind in verdict.kinds())
            counts.update(f"form: {form}" for form in program.form.split("; ") if form)
            if verdict.findings:
                tally.found.append(Found(program.family, seed, index, tuple(verdict.findings)))
    return tally


def minimised(program: Program, kind: str) -> Program:
    """``program`` without the instructions that the finding does not need.

    A return whose status and target are constants stays unchanged: without them it would be another
    return.
    """
    if kind == "return":
        return program
    for at in reversed(range(len(program.lines))):
        lines = program.lines
        if can_go(lines[at], program):
            less = replace(program, lines=(*lines[:at], *lines[at + 1 :]))
            program = less if still(less, kind) else program
    for at in reversed(range(len(program.handler))):
        lines = program.handler
        if can_go(lines[at], program):
            less = replace(program, handler=(*lines[:at], *lines[at + 1 :]))
            program = less if still(less, kind) else program
    return program


def can_go(line: str, program: Program) -> bool:
    """Whether the line may be left out; masks make sure that all inputs are tried."""
    text = line.strip()
    directive = text.startswith(".") or text.endswith(":")
    return not directive and not (program.enumerated and text.startswith("and r"))


def still(program: Program, kind: str) -> bool:
    """Whether the finding is still there."""
    try:
        return kind in judge_one(program).kinds()
    except (ValueError, KeyError):
        return False
