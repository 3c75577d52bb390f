"""Random preemptible kernels, and interrupts that arrive in them, against ``wcet masked``.

python -m campaigns.masked_arrivals [FIRST [LAST [ARRIVALS]]]     seeds, the last one excluded

Each seed is a kernel of each of three styles, by two compilers, in ARM and Thumb-2 code. In each,
ARRIVALS (400) masked intervals are measured on the concrete machine of its board, and as many
interrupts of a timer arrive in QEMU. A row a style and build; ends with status 1 where one waited
for longer than the bound.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path

from tests.testing.wcet.masked_arrivals import Arrivals, in_qemu, on_the_machine
from tests.testing.wcet.random_masks import BUILDS, STYLES


def main() -> int:
    """Print a row for each style and build, then the sums."""
    given = [int(a) for a in sys.argv[1:]]
    first, last, arrivals = [*given, *(1, 4, 400)[len(given) :]]
    print("| style, build | regions | measured | closest | arrivals in QEMU | closest | exceeded |")
    print("|---|---|---|---|---|---|---|")
    every: list[Arrivals] = []
    for style in STYLES:
        for build in BUILDS:
            both: list[list[Arrivals]] = [[], []]
            for seed in range(first, last):
                with tempfile.TemporaryDirectory() as folder:
                    for found, tried in zip(both, (on_the_machine, in_qemu), strict=True):
                        with contextlib.redirect_stdout(io.StringIO()):
                            found.append(tried(seed, style, build, Path(folder), arrivals))
            machine, qemu = both
            every += [*machine, *qemu]
            exceeded = sum(len(a.exceeded) for a in (*machine, *qemu))
            print(
                f"| {style}, {build} | {sum(a.regions for a in machine)} "
                f"| {sum(a.arrivals for a in machine):,} | {max(a.closest for a in machine):.0%} "
                f"| {sum(a.arrivals for a in qemu):,} | {max(a.closest for a in qemu):.1%} "
                f"| {exceeded} |",
                flush=True,
            )
    wrong = [text for one in every for text in one.exceeded]
    print("\n".join(wrong) or f"{sum(a.arrivals for a in every):,} arrivals, none exceeded")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
