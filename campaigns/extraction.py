"""Extraction on code by others: ``python -m campaigns.extraction [CORPUS...]``.

Every function of every program of a corpus is an entry. Each program is compared with objdump's
listing (``extraction_oracle``), its graphs are verified, and unresolved transfers are classified
(``extraction_pointers``). Prints one row per program and one per corpus; details go to
``build/corpora/extraction-CORPUS.txt``. Exits with status 1 if an edge or an instruction is missed,
or an unresolved transfer is no call through a pointer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from campaigns.corpora import BUILDERS, CSMITH_SEEDS, corpus
from campaigns.corpora_packages import CORPORA
from campaigns.extraction_listing import listing
from campaigns.extraction_oracle import Comparison, Unreached, compare
from campaigns.extraction_pointers import HELPERS, Remaining, remaining
from quoll.assumptions import RETURN_BY_FORM
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Program
from quoll.errors import UsageError
from quoll.extraction.extract import extract
from quoll.image.image import Image
from quoll.listing.program_text import function_loops
from tests.testing.quoll.invariants import InvariantError, verify_program

__all__ = ["Row", "entries_of", "examine"]

COLUMNS = (
    *("functions", "instructions", "blocks", "tables", "pointer calls", "longjmp", "other"),
    *("unproved", "never return", "irreducible", "recursive", "dead", "missed", "CPU s"),
)


@dataclass(slots=True)
class Row:
    """Counts of one program, or summed over a corpus."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, other: Row) -> None:
        """Add the counts of another program."""
        self.counts.update(other.counts)
        self.seconds += other.seconds

    def text(self, name: str) -> str:
        """A row of a Markdown table."""
        cells = [f"{self.counts[c]:,}" for c in COLUMNS[:-1]] + [f"{self.seconds:.1f}"]
        return f"| {name} | {' | '.join(cells)} |"


def entries_of(image: Image) -> list[int]:
    """The functions of an image that can be entries, with their Thumb bit.

    Mapping symbols take precedence over symbols' Thumb bits. libgcc's helpers that act on their
    caller's registers are no entries; their callers reach them.
    """
    found = {
        symbol.addr | (symbol.thumb if (t := image.thumb_at(symbol.addr)) is None else t)
        for symbol in image.symbols.symbols
        if symbol.kind == "func"
        and image.is_executable(symbol.addr)
        and not symbol.name.startswith(HELPERS)
    }
    return sorted(found)


def examine(path: Path, details: TextIO) -> Row:
    """Extract a program from all its functions and compare it with its listing."""
    image = Image.load(path)
    entries = _accepted(image, details)
    stop = image.symbol("stop")  # the end of executed programs, by a system call
    start = time.process_time()
    program = extract(image, entries, exits=frozenset({stop.addr} if stop else ()))
    row = Row(seconds=time.process_time() - start)
    print(f"# {path.name}", file=details)
    try:
        verify_program(program)
    except InvariantError as fault:
        row.counts["missed"] += 1
        print(f"invariants: {fault}", file=details)
    _count_structure(program, row.counts)
    kinds = list(remaining(image, program))
    for kind, unresolved in kinds:
        print(f"{kind.value}: {unresolved.where}: {unresolved.reason}", file=details)
    _count_remaining(Counter(kind for kind, _ in kinds), row.counts)
    _count_comparison(compare(image, program, listing(path)), row.counts, details)
    return row


def _accepted(image: Image, details: TextIO) -> list[int]:
    """Entries that extraction does not refuse: some symbols of type FUNC name data."""
    accepted = []
    for entry in entries_of(image):
        if image.is_marked_data(entry & ~1):
            print(f"marked as data: {image.place(entry & ~1)}", file=details)
            try:
                extract(image, [entry])
            except UsageError as fault:
                print(f"refused: {fault}", file=details)
                continue
        accepted.append(entry)
    return accepted


def _count_structure(program: Program, counts: Counter[str]) -> None:
    cfgs = program.functions.values()
    counts["functions"] = len(cfgs)
    counts["blocks"] = sum(len(cfg.blocks) for cfg in cfgs)
    counts["tables"] = len(program.jump_tables)
    counts["unproved"] = sum(a.kind is RETURN_BY_FORM for a in program.assumptions)
    counts["never return"] = sum(not cfg.returns for cfg in cfgs)
    counts["irreducible"] = sum(bool(function_loops(cfg)[1]) for cfg in cfgs)
    counts["recursive"] = len(call_graph(program).cycles)


def _count_remaining(kinds: Counter[Remaining], counts: Counter[str]) -> None:
    counts["pointer calls"] = kinds[Remaining.CALL] + kinds[Remaining.TAIL_CALL]
    counts["longjmp"] = kinds[Remaining.CONTEXT]
    counts["other"] = kinds.total() - counts["pointer calls"] - counts["longjmp"]


def _count_comparison(found: Comparison, counts: Counter[str], details: TextIO) -> None:
    counts["instructions"] = found.instructions
    counts["dead"] = found.unreached[Unreached.DEAD] + found.unreached[Unreached.ADDRESS_TAKEN]
    counts["missed"] += found.missed + len(found.differences)
    for text in (*found.differences, *found.runs):
        print(text, file=details)
    print(f"branches compared: {found.branches}", file=details, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Extraction on code by others.")
    parser.add_argument("corpora", nargs="*", help=f"of {', '.join(BUILDERS)}; all without any")
    parser.add_argument("--seeds", type=int, default=CSMITH_SEEDS, help="of csmith programs")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    print(f"| program | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
    failed = False
    CORPORA.mkdir(parents=True, exist_ok=True)
    for name in options.corpora or BUILDERS:
        total = Row()
        with (CORPORA / f"extraction-{name}.txt").open("w") as details:
            for path in corpus(name, options.seeds):
                if options.only in path.name:
                    row = examine(path, details)
                    print(row.text(f"{name} {path.stem}"), flush=True)
                    total.add(row)
        print(total.text(f"**{name}**"), flush=True)
        failed |= bool(total.counts["missed"] or total.counts["other"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
