"""Hostile programs against an independent executor: ``make campaign-adversary``.

    make campaign-adversary ARGS='--programs 100000 --seed 1'

Generators draw small programs whose bounds may be wrong (``families.py``). Each is analysed as by
``wcet analyse``, without a cache, and executed by Unicorn from many states, with the interrupt
arriving after every read of its controller and after every change of the mask. An execution that
contradicts the printed numbers is a finding (``judge.py``): the program is minimised and printed.
Exits with status 1 if there is a finding. Refusals are no findings, and counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from campaigns.adversary.campaign import Found, Tally, batch, minimised
from campaigns.adversary.families import FAMILIES, draw

__all__ = ["main"]

BATCH = 120
BATCHES_OF_A_PROCESS = 25  # then a new one, to limit memory
SHOWN = 2  # findings of one family and kind, with their source


def main() -> int:
    """Run the campaign; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="index of the first program")
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--until-found", action="store_true", help="end at the first finding")
    parser.add_argument("--no-source", action="store_true", help="do not print programs")
    options = parser.parse_args()
    begun = time.perf_counter()
    tally = Tally()
    shown: Counter[tuple[str, str]] = Counter()
    for part in run(options):
        tally.add(part)
        for found in part.found:
            show(found, shown, source=not options.no_source)
        if options.until_found and tally.found:
            break
    report(tally, time.perf_counter() - begun)
    return 1 if tally.found else 0


def run(options: argparse.Namespace) -> Iterator[Tally]:
    """The results of the batches, which run in parallel."""
    last = options.first + options.programs
    parts = [range(at, min(last, at + BATCH)) for at in range(options.first, last, BATCH)]
    if options.jobs == 1:
        yield from (batch(options.seed, part, options.family) for part in parts)
        return
    with ProcessPoolExecutor(
        options.jobs,
        mp_context=multiprocessing.get_context("spawn"),
        max_tasks_per_child=BATCHES_OF_A_PROCESS,
    ) as pool:
        asked = {pool.submit(batch, options.seed, part, options.family): part for part in parts}
        try:
            for done in as_completed(asked):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def show(found: Found, shown: Counter[tuple[str, str]], *, source: bool) -> None:
    """Print a finding; the first ones of a kind with a minimised program."""
    for kind in found.kinds:
        text = next(f.text for f in found.findings if f.kind == kind)
        line = f"{found.family} seed {found.seed} index {found.index}: {kind}: {text}"
        print(line, flush=True)
        shown[found.family, kind] += 1
        if source and shown[found.family, kind] <= SHOWN:
            program = minimised(draw(found.family, found.seed, found.index), kind)
            print(f"    {program.board.name}, inputs {program.inputs[:4]}")
            print("\n".join(f"    | {text}" for text in program.text("0").splitlines()
                            if not text.lstrip().startswith(".word")), flush=True)  # fmt: skip


def report(tally: Tally, seconds: float) -> None:
    """The table at the end."""
    columns = ("programs", "bounded", "runs", "replays")
    print("| family |", " | ".join(columns), "| forms | refused | apart | found |")
    for family, counts in sorted(tally.counts.items()):
        refused = sum(n for name, n in counts.items() if name.startswith("refused"))
        apart = sum(n for name, n in counts.items() if name.startswith("excused"))
        kinds = ", ".join(f"{k[6:]} {n}" for k, n in sorted(counts.items()) if k[:5] == "FOUND")
        forms = sum(name.startswith("form: ") for name in counts)
        numbers = " | ".join(f"{counts[c]:,}" for c in columns)
        print(f"| {family} | {numbers} | {forms:,} | {refused:,} | {apart:,} | {kinds or '0'} |")
    programs = sum(counts["programs"] for counts in tally.counts.values())
    print(f"{programs:,} programs, {len(tally.found):,} with findings, {seconds:.0f} s", end="")
    print(f", {programs / seconds:.1f} a second")


if __name__ == "__main__":
    sys.exit(main())
