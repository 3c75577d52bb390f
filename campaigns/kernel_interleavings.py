"""Calls that are preempted while others act: ``make campaign-kernel_interleavings ARGS=after``.

Ten thousand interleavings of each seed from 1 on, until ``--interleavings`` of them (a million) are
done. The result of each seed is stored in ``build/interleavings-PRESET.jsonl``, so that a stopped
run continues. ``--write`` puts the results into ``kernels/bilby/docs/testing.md``; rows of presets
without results stay. Ends with status 1 at the first interleaving that neither order explains, or
that breaks an invariant.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from campaigns.documented import inside, markdown, replace
from campaigns.kernel_fuzz import processor_time
from kernels.bilby.verification.fuzz.host import CheckFailure, program, running
from kernels.bilby.verification.fuzz.interleave import Interleaver
from kernels.bilby.verification.spec.refinement import Mismatch
from tests.testing.harness import build

PRESETS = ("after", "before", "latency", "mcs")
A_SEED = 10_000


def journal(preset: str) -> Path:
    return Path("build") / f"interleavings-{preset}.jsonl"


def rows_of(preset: str) -> list[dict[str, int]]:
    """The stored results of each seed."""
    path = journal(preset)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def run_seed(preset: str, seed: int) -> dict[str, int]:
    """Run and store the interleavings of one seed. Raises CheckFailure and Mismatch."""
    path = program(preset, "plain")
    before = processor_time()
    with running(path) as host:
        found = Interleaver(path, host, seed, preset).run(A_SEED)
        host.finish()
    return {
        "seed": seed,
        "operations": found.operations,
        "interleaved": found.interleaved,
        "made again": found.preempted,
        "acts": found.acts,
        "in steps": found.ends["in steps that others saw"],
        "seconds": round(processor_time() - before),
    }


def written() -> dict[str, list[str]]:
    """The rows of the table in the document, by preset."""
    document = build.ROOT / "kernels" / "bilby" / "docs" / "testing.md"
    rows = inside(document.read_text(encoding="utf-8"), "interleavings").splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]
    return {row[0].strip("`"): row for row in cells}


def table() -> str:
    rows = []
    old = written()
    for preset in PRESETS:
        total: Counter[str] = Counter()
        known = rows_of(preset)
        if not known and preset in old:
            rows.append(tuple(old[preset]))
            continue
        for row in known:
            total.update(row)
        names = ("interleaved", "made again", "acts", "in steps", "seconds")
        rows.append((f"`{preset}`", str(len(known)), *(f"{total[name]:,}" for name in names)))
    head = ("preset", "seeds", "interleavings", "calls made again", "acts of the urgent thread",
            "ended in neither order, in steps", "processor seconds")  # fmt: skip
    return markdown(head, rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", nargs="?", choices=PRESETS, help="whose seeds are run")
    parser.add_argument("--interleavings", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help="the table of the finished seeds")
    options = parser.parse_args()
    if options.preset:
        done = len(rows_of(options.preset))
        for seed in range(done + 1, -(-options.interleavings // A_SEED) + 1):
            try:
                row = run_seed(options.preset, seed)
            except (CheckFailure, Mismatch) as failure:
                print(f"{options.preset}: {failure}")
                return 1
            with journal(options.preset).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(options.preset, row, flush=True)
    print(table())
    if options.write:
        replace("../kernels/bilby/docs/testing.md", "interleavings", table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
