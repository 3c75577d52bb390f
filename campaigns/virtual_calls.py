"""Virtual calls and tables of drivers, executed: ``python -m campaigns.virtual_calls``.

Each random C++ program (``tests.testing.quoll.virtual_programs``) is extracted under the facts that
are proposed for it, and executed by QEMU. Exits with status 1 for a step outside the graphs, or if
more than one fact per class hierarchy and table of the source is missing. Writes the tables of
``docs/results/reach.md``.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path

from campaigns.documented import markdown, replace
from campaigns.extraction_witness import MissedEdge, Walk, executed
from quoll.cfg.cfg import Program
from quoll.errors import MissingStatement
from quoll.extraction.extract import extract
from quoll.facts.located import locate
from quoll.facts.read import parse
from quoll.image.image import Image
from tests.testing.quoll.virtual_programs import BUILDS, build_virtual, virtual_program
from wcet.reports.missing_facts import MissingFact, missing_facts

__all__ = ["follow", "most_questions", "program_of", "proposed"]

FLAGS = (("-fno-exceptions",), ("-fexceptions", "-fno-rtti"))
ROOT = re.compile(r"^struct C\d+ \{", re.MULTILINE)
TABLE = re.compile(r"(?:drivers|handlers|chosen)(?:\)?\[\d*\])", re.MULTILINE)
SIZES = (10, 20, 40, 80, 160)  # classes
SIZE_HEAD = ("classes", "functions", "instructions", "pairs of call and callee", "facts", "CPU s")
HEAD = (
    *("build", "programs", "functions", "calls executed", "missed"),
    *("facts, most", "CPU s, mean", "CPU s, most"),
)


def program_of(elf: Path, facts: str) -> Program:
    """The program from ``_start`` to ``stop``, under ``facts``."""
    image = Image.load(elf)
    start, stop = image.symbol("_start"), image.symbol("stop")
    assert start is not None
    assert stop is not None
    entry = start.addr | start.thumb
    return extract(
        image, [entry], locate(parse(facts, "test.facts"), image), frozenset({stop.addr})
    )


def follow(elf: Path, program: Program) -> Walk:
    """The walk of an execution. Raises MissedEdge for a step outside the graphs."""
    start = program.entries[0]
    walk = Walk(program, start)
    walk.follow(dropwhile(lambda addr: addr != start, executed(elf)))
    if not walk.block.exits or walk.by_pointer:
        raise MissedEdge(f"it ends at {walk.block.addr:#x}, {walk.by_pointer} calls not resolved")
    return walk


def proposed(elf: Path) -> tuple[tuple[MissingFact, ...], Program]:
    """All missing facts, each stated as proposed, and the program under these facts."""
    image = Image.load(elf)
    missing: dict[int, tuple[str, MissingStatement]] = {}
    while True:
        queries = missing_facts(list(missing.values()))
        program = program_of(elf, "".join(f"{f}\n" for q in queries for f in q.facts(image)))
        new = {u.addr: ("_start", u.missing) for u in program.unresolved}
        if not new:
            return queries, program
        if new.keys() & missing.keys():
            raise MissedEdge(f"the proposed facts do not resolve: {program.unresolved}")
        missing |= new


def most_questions(source: str) -> int:
    """The class hierarchies and the tables of a program; constructors are one table more."""
    declared = [line for line in source.splitlines() if line.startswith("static")]
    return len(ROOT.findall(source)) + sum(len(TABLE.findall(line)) > 0 for line in declared) + 1


@dataclass(slots=True)
class _Row:
    seconds: list[float] = field(default_factory=list)
    functions: int = 0
    calls: int = 0
    queried: int = 0
    missed: int = 0

    def cells(self, build: str) -> list[str]:
        mean = sum(self.seconds) / len(self.seconds)
        counts = (len(self.seconds), self.functions, self.calls, self.missed, self.queried)
        return [build, *(f"{n:,}" for n in counts), f"{mean:.1f}", f"{max(self.seconds):.1f}"]


def _used() -> float:
    """Processor seconds so far, including worker processes of extraction."""
    return sum(os.times()[:4])


def _examine(row: _Row, name: str, seed: int) -> bool:
    """Whether one program is as it must be."""
    source = virtual_program(seed)
    elf = build_virtual(source, BUILDS[name], *FLAGS[seed // len(BUILDS) % 2])
    start = _used()
    try:
        queries, program = proposed(elf)
        row.seconds.append(_used() - start)
        walk = follow(elf, program)
    except MissedEdge as error:
        row.missed += 1
        print(f"{name}, seed {seed}: {error}", flush=True)
        return False
    calls = {b.last.addr for c in program.functions.values() for b in c.blocks if b.calls}
    row.functions += len(program.functions)
    row.calls += sum(source in calls for source, _ in walk.edges)
    row.queried = max(row.queried, len(queries))
    if len(queries) > most_questions(source):
        print(f"{name}, seed {seed}: {len(queries)} questions, "
              f"{most_questions(source)} hierarchies and tables", flush=True)  # fmt: skip
        return False
    return True


def _by_size() -> str:
    """The table of extraction times by program size, under the missing facts."""
    rows = []
    for classes in SIZES:
        elf = build_virtual(virtual_program(3, classes), BUILDS["gcc -Os"], *FLAGS[1])
        queries, _ = proposed(elf)
        image = Image.load(elf)
        facts = "".join(f"{f}\n" for q in queries for f in q.facts(image))
        start = _used()
        program = program_of(elf, facts)
        seconds = _used() - start
        blocks = [b for c in program.functions.values() for b in c.blocks]
        counts = (
            *(classes, len(program.functions), sum(len(b.insns) for b in blocks)),
            *(sum(len(b.calls) for b in blocks), len(queries)),
        )
        rows.append([*(f"{n:,}" for n in counts), f"{seconds:.1f}"])
    return markdown(SIZE_HEAD, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Virtual calls and tables of drivers, executed.")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only-print", action="store_true", help="leave the document as it is")
    options = parser.parse_args()
    rows: defaultdict[str, _Row] = defaultdict(_Row)
    right = True
    names = list(BUILDS)
    for number in range(options.programs):
        name, seed = names[number % len(names)], options.first + number
        right &= _examine(rows[name], name, seed)
    sizes = _by_size()
    table = markdown(HEAD, [rows[name].cells(name) for name in names if rows[name].seconds])
    print(table, sizes, sep="\n")
    if not options.only_print:
        replace("results/reach.md", "virtual calls by size", sizes)
        replace("results/reach.md", "virtual calls", table)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
