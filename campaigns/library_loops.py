"""Loops of other people's code, by ranges of arguments alone: ``make campaign-library_loops``.

    newlib      libc, libm and libgcc, default multilib
    libgcc      the functions of these that are libgcc's
    csmith      csmith's functions in random programs of seed 1, GCC and Clang, without printing

Each function with a loop of its own is an entry, with all its callees; its loops are bounded twice:
for unknown arguments, and for r0 to r3 of at most 1,024 at its first instruction. Loops without a
bound are classified by the printed reason, and so are functions that cannot be analysed. ``--sample
N`` takes N functions of each corpus at random, always the same for one ``--seed``; ``--minutes M``
starts no other function after M minutes of processor time for a corpus. Every loop with both
results goes to ``build/corpora/library-loops-CORPUS.txt``. Stops if NuSMV and the SMT solver
disagree about a proof.

``--waiting`` measures a user's waiting time instead: any arguments, the budget and the processes of
``wcet loops``, one proof by NuSMV; wall seconds for each loop, and the functions that take longest.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple, TextIO

from campaigns.both_checkers import proved_by_both
from campaigns.corpora import GCC, corpus
from campaigns.corpora_packages import CORPORA
from campaigns.extraction import entries_of
from loopbounds.bounds import bound_loops
from loopbounds.budgets.budget import Budget
from loopbounds.proof.bound import LoopBound
from loopbounds.proof.options import BoundOptions
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Program
from quoll.errors import WcetError
from quoll.extraction.extract import extract
from quoll.facts.located import NO_FACTS, LocatedFacts, locate
from quoll.facts.read import parse
from quoll.image.image import Image
from quoll.inlining.expand import expand, without_edges
from quoll.inlining.sharing import expansion
from quoll.inlining.supergraph import Supergraph
from quoll.listing.program_text import function_loops
from quoll.value_analysis.value_results import ValueResults, analyse

__all__ = ["Counts", "classed", "main"]

MOST = 1_024  # of an argument
SECONDS = 3  # of processor time for each loop
WAIT = 5  # wall seconds for a loop that a user should not exceed
OWN_OF_CSMITH = re.compile("func_|main$|crc32|transparent_crc|safe_")
PRINTING = ("printf", "puts", "putchar")
COLUMNS = ("functions", "loops", "bounded", "exact", "with ranges")


@dataclass(slots=True)
class Counts:
    """The counts of one corpus: columns of the table, and loops without a bound by class."""

    columns: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, plain: list[LoopBound], ranged: list[LoopBound], seconds: float) -> None:
        """Add the loops of a function."""
        self.seconds += seconds
        self.columns["functions"] += 1
        self.columns["loops"] += len(plain)
        self.columns["bounded"] += sum(b.bound is not None for b in plain)
        self.columns["exact"] += sum(bool(b.exact) for b in plain)
        self.columns["with ranges"] += sum(b.bound is not None for b in ranged)
        self.classes.update(classed(b) for b in ranged if b.bound is None)


class Chosen(NamedTuple):
    """The functions of a program that count, by name and contexts; ``silent``: empty ones."""

    names: re.Pattern[str]
    contexts: int  # at most, of a function with its callees
    silent: tuple[str, ...] = ()

    def has(self, image: Image, entry: int) -> bool:
        """Whether the function at ``entry`` counts."""
        found = image.symbol_at(entry & ~1)
        return bool(found and self.names.match(found[0].name))


class OwnLoops(NamedTuple):
    """A function inlined, its values, and its loops without its callees' loops."""

    graph: Supergraph
    values: ValueResults
    own: list[int]


class Sample(NamedTuple):
    """The sample of functions."""

    size: int
    seed: int
    until: float  # processor time of this process, in seconds


def classed(bound: LoopBound) -> str:
    """The class of a loop without a bound: its reason in a few words."""
    if bound.failed:
        return "solver failed"
    if "depends on anything that is known" in str(bound.reason):
        return "exit depends on nothing that is followed"
    _, nothing, values = str(bound.reason).partition("nothing bounds ")
    if not nothing:
        return "all values known, no proof in time"
    if values.startswith("the word that '"):
        return "a word from memory"
    if values.startswith("memory at"):
        return "a cell of the stack that a loop changes"
    if values.startswith("a word computed"):
        return "a word that is not modelled"
    return "a register: an argument, or changed by a loop"


def ranges(entry: int) -> str:
    """Facts that limit the arguments of a function."""
    return "".join(f"register r{n} at {entry & ~1:#x} is at most {MOST}\n" for n in range(4))


def bounds_of(image: Image, program: Program, entry: int, facts: LocatedFacts) -> list[LoopBound]:
    """The bounds of the function's own loops."""
    graph, values, own = graph_of(image, program, entry, facts)
    options = BoundOptions(Budget(seconds=SECONDS), workers=0)
    with proved_by_both():
        bounds = bound_loops(graph, image, values, facts, options, only=frozenset(own))
    return [bounds[index] for index in own]


def graph_of(image: Image, program: Program, entry: int, facts: LocatedFacts) -> OwnLoops:
    """A function with its callees inlined, without edges that values exclude."""
    regions = facts.regions
    plain = expand(program, entry, image)
    dead = analyse(plain, image, regions=regions).dead_edges
    graph = without_edges(plain, dead, image)
    values = analyse(graph, image, regions=regions)
    root = graph.nodes[graph.entry].context
    own = [x.index for x in graph.loops if graph.nodes[x.header].context == root]
    return OwnLoops(graph, values, own)


def waiting(elf: Path, chosen: Chosen, sample: Sample) -> list[tuple[float, str]]:
    """Wall seconds per loop, for each function, with the function's name."""
    image, facts = Image.load(elf), NO_FACTS
    entries = [entry for entry in entries_of(image) if chosen.has(image, entry)]
    random.Random(sample.seed).shuffle(entries)
    found = []
    some = islice(with_loops(image, entries, facts), sample.size)
    for entry, program in takewhile(lambda _: processor_seconds() < sample.until, some):
        if expansion(call_graph(program), entry & ~1).total() > chosen.contexts:
            continue
        with suppress(WcetError):
            graph, values, own = graph_of(image, program, entry, facts)
            start = time.perf_counter()
            bound_loops(graph, image, values, facts, only=frozenset(own))
            seconds = (time.perf_counter() - start) / max(1, len(own))
            found.append((seconds, f"{elf.stem} {image.place(entry & ~1)}"))
    return found


def with_loops(
    image: Image, entries: list[int], facts: LocatedFacts
) -> Iterator[tuple[int, Program]]:
    """The entries that have loops of their own, each with its callees."""
    for entry in entries:
        program = extract(image, [entry], facts)
        if function_loops(program.functions[entry & ~1])[0]:
            yield entry, program


def measure(elf: Path, chosen: Chosen, sample: Sample, counts: Counts, details: TextIO) -> None:
    """Add the results of the ``chosen`` functions of one program."""
    image = Image.load(elf)
    silent = [name for name in chosen.silent if image.symbol(name)]
    known = "".join(f"function {n} takes at most 1 cycles and preserves memory\n" for n in silent)
    facts = locate(parse(known, "silent"), image)
    entries = [entry for entry in entries_of(image) if chosen.has(image, entry)]
    random.Random(sample.seed).shuffle(entries)
    some = islice(with_loops(image, entries, facts), sample.size)
    for entry, program in takewhile(lambda _: processor_seconds() < sample.until, some):
        where = f"{elf.stem} {image.place(entry & ~1)}"
        if expansion(call_graph(program), entry & ~1).total() > chosen.contexts:
            why = f"more than {chosen.contexts} contexts"
            counts.classes[f"function not analysed: {why}"] += 1
            print(f"{where}: {why}", file=details, flush=True)
            continue
        start = processor_seconds()
        try:
            plain = bounds_of(image, program, entry, facts)
            with_ranges = locate(parse(known + ranges(entry), "ranges"), image)
            ranged = bounds_of(image, program, entry, with_ranges)
        except WcetError as error:
            counts.classes[f"function not analysed: {type(error).__name__}"] += 1
            print(f"{where}: {error}", file=details, flush=True)
            continue
        counts.add(plain, ranged, processor_seconds() - start)
        for one, other in zip(plain, ranged, strict=True):
            answers = f"{one.bound} {other.bound} {other.reason}"
            print(f"{where} loop {one.loop}: {answers}", file=details, flush=True)


def processor_seconds() -> float:
    """Processor seconds of this process and of its finished solvers."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def libgcc_names() -> frozenset[str]:
    """The functions that Debian's libgcc defines for the default multilib."""
    archive = subprocess.check_output([GCC, "-print-libgcc-file-name"], text=True).strip()
    listing = subprocess.check_output(["arm-none-eabi-nm", "--defined-only", archive], text=True)
    return frozenset(words[2] for line in listing.splitlines() if len(words := line.split()) == 3)


def programs(name: str) -> tuple[list[Path], Chosen]:
    """The files of a corpus, and which functions count."""
    if name == "csmith":
        return corpus("csmith", 1), Chosen(OWN_OF_CSMITH, 1_000, PRINTING)
    [elf] = [path for path in corpus("newlib") if path.stem == "default"]
    names = "|".join(map(re.escape, libgcc_names())) if name == "libgcc" else ".*"
    return [elf], Chosen(re.compile(f"(?:{names})$"), 150)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["newlib", "libgcc", "csmith"])
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--waiting", action="store_true", help="how long a user waits")
    options = parser.parse_args()
    if not options.waiting:
        print("| corpus |", " | ".join(COLUMNS), "| CPU s |")
    for name in options.corpora:
        counts = Counts()
        files, chosen = programs(name)
        share = -(-options.sample // len(files))
        until = processor_seconds() + 60 * options.minutes
        if options.waiting:
            rows = [
                r for elf in files for r in waiting(elf, chosen, Sample(share, options.seed, until))
            ]
            late = sum(seconds > WAIT for seconds, _ in rows)
            print(f"{name}: {len(rows)} functions, {late} above {WAIT} s a loop")
            for seconds, function in sorted(rows, reverse=True)[:10]:
                print(f"    {seconds:.2f} {function}", flush=True)
            continue
        with (CORPORA / f"library-loops-{name}.txt").open("w", encoding="utf-8") as details:
            for elf in files:
                measure(elf, chosen, Sample(share, options.seed, until), counts, details)
        cells = " | ".join(f"{counts.columns[c]:,}" for c in COLUMNS)
        print(f"| {name} | {cells} | {counts.seconds:.0f} |", flush=True)
        for reason, number in counts.classes.most_common():
            print(f"    {number:,} {reason}", flush=True)


if __name__ == "__main__":
    main()
