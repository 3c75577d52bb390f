"""Calls through pointers, executed: ``python -m campaigns.pointer_calls [--programs N]``.

Each random program in C or C++ (``tests.testing.quoll.pointer_programs``) is extracted under the
facts that are proposed for it, and executed by QEMU. Every target of an executed call must be among
the targets of the accepted proposals (rule 50). Ends with status 1 otherwise. The number of a
program is its seed. Writes the table of ``docs/results/reach.md``.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass

from campaigns.documented import markdown, replace
from campaigns.extraction_witness import MissedEdge
from campaigns.virtual_calls import follow, proposed
from tests.testing.quoll.pointer_programs import BUILDS, build_pointers, pointer_program

__all__ = ["examine", "main"]

HEAD = ("build", "programs", "indirect calls", "targets executed", "targets proposed", "missed")


@dataclass(slots=True)
class _Row:
    programs: int = 0
    calls: int = 0
    executed: int = 0
    proposed: int = 0
    missed: int = 0

    def cells(self, build: str) -> list[str]:
        counts = (self.programs, self.calls, self.executed, self.proposed, self.missed)
        return [build, *(f"{n:,}" for n in counts)]


def examine(seed: int) -> tuple[int, int, int]:
    """The numbers of executed indirect calls, of their targets, and of targets proposed for them.

    Raises MissedEdge for a step outside the graphs.
    """
    build = list(BUILDS)[seed % len(BUILDS)]
    elf = build_pointers(pointer_program(seed, plus=build.startswith("C++")), BUILDS[build])
    _, program = proposed(elf)
    walk = follow(elf, program)
    blocks = (block for cfg in program.functions.values() for block in cfg.blocks)
    several = {b.last.addr: len(b.calls) for b in blocks if len(b.calls) > 1}
    went = {(source, target) for source, target in walk.edges if source in several}
    made = {source for source, _ in went}
    return len(made), len(went), sum(several[source] for source in made)


def main() -> int:
    parser = argparse.ArgumentParser(description="Calls through pointers, executed.")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only-print", action="store_true", help="leave the document as it is")
    options = parser.parse_args()
    rows: defaultdict[str, _Row] = defaultdict(_Row)
    for seed in range(options.first, options.first + options.programs):
        name = list(BUILDS)[seed % len(BUILDS)]
        row = rows[name]
        row.programs += 1
        try:
            calls, went, given = examine(seed)
        except MissedEdge as error:
            row.missed += 1
            print(f"{name}, seed {seed}: {error}", flush=True)
            continue
        row.calls, row.executed = row.calls + calls, row.executed + went
        row.proposed += given
    table = markdown(HEAD, [rows[name].cells(name) for name in BUILDS if name in rows])
    print(table)
    if not options.only_print:
        replace("results/reach.md", "pointer calls", table)
    return int(any(row.missed for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
