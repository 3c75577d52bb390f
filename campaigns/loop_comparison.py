"""Loop bounds of this version against an earlier version: ``make campaign-loop_comparison``.

    make campaign-loop_comparison ARGS='REVISION --programs 2000 --seed 1'

Both versions bound the same loops by proof alone, in each context: loops of the shipped kernels of
both boards, and of random programs at five levels of optimisation. The campaign counts loops whose
bound is larger than before, lost, smaller, or new. No facts are given, and each loop has ten
seconds. ``--executed`` runs each program on random inputs as well, and stops at the first execution
above its bound. Each difference goes to ``build/loop-comparison/differences.txt``.

The earlier version comes from this repository's history; it must have ``wcet loops --json``. An ELF
that takes a version longer than ``--patience`` seconds counts as not analysed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from quoll.errors import UnboundedLoop
from tests.testing.harness import build
from tests.testing.wcet.programs import bound, check, program

__all__ = ["Bounds", "compared", "main"]

LEVELS = ("-O0", "-O1", "-O2", "-Os", "-O3")
FOLDER = build.ROOT / "build/loop-comparison"
KERNELS = [
    f"{board}-{p}" for board in ("kzm", "cubieboard") for p in ("before", "after", "latency")
]
PATIENCE = 1200  # seconds of the clock for one ELF, unless another number is given
COLUMNS = ("loops", "bounded before", "bounded now", "larger", "lost", "smaller", "gained")

# Run with a version's folder, ELFs with the files of their results and options, and a limit.
DRIVER = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from wcet.cli import main
for elf, answers, *options in json.load(open(sys.argv[2])):
    if not (child := os.fork()):
        signal.alarm(int(sys.argv[3]))
        main(["loops", elf, "--no-cache", "--no-facts", "--quiet", "--time-limit", "10",
              "--json", answers, *options])
        os._exit(0)
    os.waitpid(child, 0)
"""

Bounds: TypeAlias = dict[tuple[str, ...], int | None]  # by entry, address and calls


def compared(before: Bounds, now: Bounds) -> Counter[str]:
    """The numbers of different loops, among the loops of both versions."""
    found: Counter[str] = Counter()
    for loop in before.keys() & now.keys():
        old, new = before[loop], now[loop]
        found["loops"] += 1
        found["bounded before"] += old is not None
        found["bounded now"] += new is not None
        found["gained"] += old is None and new is not None
        found["lost"] += old is not None and new is None
        if old is not None and new is not None:
            found["larger"] += new > old
            found["smaller"] += new < old
    return found


def bounds_in(path: Path) -> Bounds | None:
    """The bounds that a version wrote for one ELF; None if it could not analyse the ELF."""
    if not path.exists():
        return None
    loops = json.loads(path.read_text(encoding="utf-8"))["loops"]
    return {(x["entry"], x["address"], *x["context"]): x["bound"] for x in loops}


def earlier(revision: str) -> Path:
    """The files of an earlier version."""
    folder = FOLDER / "earlier"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = subprocess.check_output(["git", "archive", revision], cwd=build.ROOT)
    subprocess.run(["tar", "x", "-C", folder], input=packed, check=True)
    return folder


def programs(count: int, first: int) -> Iterator[tuple[str, Path]]:
    """Random programs, with their names."""
    for seed in range(first, first + count):
        level = LEVELS[seed % len(LEVELS)]
        yield f"{seed}{level}", program(seed, level)


def answers(
    version: Path,
    name: str,
    asked: Sequence[tuple[str, Path]],
    options: Sequence[str],
    patience: int,
) -> list[Path]:
    """The files with a version's results for all programs, analysed in one process."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = [folder / f"{of}.json" for of, _ in asked]
    table = folder / "asked"
    rows = [[str(elf), str(file), *options] for (_, elf), file in zip(asked, files, strict=True)]
    table.write_text(json.dumps(rows), encoding="utf-8")
    command = [sys.executable, "-c", DRIVER, str(version), str(table), str(patience)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, cwd=folder)
    return files


def row(
    name: str,
    old: Path,
    asked: Sequence[tuple[str, Path]],
    options: Sequence[str],
    patience: int,
) -> Counter[str]:
    """Compare the results for all of ``asked``."""
    before = answers(old, f"{name}-before", asked, options, patience)
    now = answers(build.ROOT, f"{name}-now", asked, options, patience)
    found: Counter[str] = Counter()
    with (FOLDER / "differences.txt").open("a", encoding="utf-8") as file:
        for (of, _), a, b in zip(asked, map(bounds_in, before), map(bounds_in, now), strict=True):
            if a is None or b is None:
                found["not analysed by both"] += 1
                continue
            found += compared(a, b)
            found["not in both"] += len(a.keys() ^ b.keys())
            for loop in sorted(a.keys() & b.keys()):
                if a[loop] != b[loop]:
                    print(f"{name} {of} {' '.join(loop)}: {a[loop]} -> {b[loop]}", file=file)
    cells = " | ".join(f"{found[column]:,}" for column in COLUMNS)
    print(f"| {name} | {cells} |", flush=True)
    for what in ("not analysed by both", "not in both"):
        if found[what]:
            print(f"    {found[what]:,} {what}", flush=True)
    return found


def executed(asked: Sequence[tuple[str, Path]], first: int) -> int:
    """The number of executed programs with a bound. Raises AssertionError if one exceeds it."""
    ran = 0
    for seed, (_, elf) in enumerate(asked, first):
        with suppress(UnboundedLoop):
            check(bound(elf), seed, inputs=6, states=1)
            ran += 1
    return ran


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign; status 1 if over 2 % of the bounded loops have a larger bound, or none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--kernels", nargs="*", default=KERNELS, metavar="BOARD-PRESET")
    parser.add_argument("--programs", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--patience", type=int, default=PATIENCE, metavar="SECONDS")
    parser.add_argument("--executed", action="store_true", help="run the programs as well")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "differences.txt").unlink(missing_ok=True)
    old = earlier(options.revision)
    print("| |", " | ".join(COLUMNS), "|")
    found: Counter[str] = Counter()
    kernels = [(name, build.kernel(name)) for name in options.kernels]
    found += row("kernels", old, kernels, (), options.patience)
    written = list(programs(options.programs, options.seed))
    found += row("programs", old, written, ("--entry", "main"), options.patience)
    if options.executed:
        ran = executed(written, options.seed)
        print(f"no execution of the {ran:,} programs with a bound is above it")
    return int(50 * (found["larger"] + found["lost"]) > found["bounded before"])


if __name__ == "__main__":
    sys.exit(main())
