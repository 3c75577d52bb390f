"""Random preemptible kernels, and interrupts that arrive in them, against ``wcet masked``.

python -m campaigns.masked_arrivals [FIRST [LAST [ARRIVALS]]]     seeds, the last one excluded

Each seed is a kernel of each of four styles, by two compilers, in ARM and Thumb-2 code. In each,
ARRIVALS (400) masked intervals are measured on the concrete machine of its board, and as many
interrupts of a timer arrive in QEMU. A row per style and build goes into ``docs/results/reach.md``.
Exits with status 1 if an interrupt waited for longer than the bound.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from campaigns.documented import markdown, replace
from tests.testing.wcet.masked_arrivals import Arrivals, in_qemu, on_the_machine
from tests.testing.wcet.random_masks import BUILDS, STYLES

HEAD = (
    "style, build", "regions", "not bounded", "measured", "closest", "arrivals in QEMU", "closest",
    "exceeded",
)  # fmt: skip


def main() -> int:
    """Write a row for each style and build, then the sums."""
    given = [int(a) for a in sys.argv[1:]]
    first, last, arrivals = [*given, *(1, 4, 400)[len(given) :]]
    every: list[Arrivals] = []
    rows: list[list[str]] = []
    for style in STYLES:
        for build in BUILDS:
            pairs = list(of_seeds(range(first, last), style, build, arrivals))
            every += [one for pair in pairs for one in pair]
            rows.append([f"{style}, {build}", *cells(pairs)])
            print("  ".join(rows[-1]), flush=True)
    wrong = [text for one in every for text in one.exceeded]
    print("\n".join(wrong) or f"{sum(a.arrivals for a in every):,} arrivals, none exceeded")
    what = f"Seeds {first} to {last - 1}, {arrivals} arrivals of each kind and kernel:"
    replace("results/reach.md", "masked arrivals", f"{what}\n\n{markdown(HEAD, rows)}")
    return int(bool(wrong))


def of_seeds(
    seeds: range, style: str, build: str, arrivals: int
) -> Iterator[tuple[Arrivals, Arrivals]]:
    """The results of each kernel on the concrete machine, and in QEMU."""
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            machine = on_the_machine(seed, style, build, Path(folder), arrivals)
            yield machine, in_qemu(seed, style, build, Path(folder), arrivals)


def cells(pairs: list[tuple[Arrivals, Arrivals]]) -> Iterator[str]:
    """The cells of the row of one style and build."""
    machine, qemu = zip(*pairs, strict=True)
    yield str(sum(a.regions for a in machine))
    yield str(sum(a.unbounded for a in machine))
    for kind, digits in ((machine, 0), (qemu, 1)):
        yield f"{sum(a.arrivals for a in kind):,}"
        yield f"{max(a.closest for a in kind):.{digits}%}"
    yield str(sum(len(a.exceeded) for pair in pairs for a in pair))


if __name__ == "__main__":
    sys.exit(main())
