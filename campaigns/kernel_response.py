"""Response times of deletion, by segments: ``make campaign-kernel_response ARGS=--write``.

A call with preemption points runs in segments, each from one test for interrupts to the next. The
analysis bounds the segment from the entry to the first test, and the segments from just after a
test, which an interrupt has missed, to the next test or to the end; the caches are unknown at each
start. So the sum over the segments of a call bounds the call. The table in the guide of the kernel
has the longest first segment, the longest other segment, and the interrupt path, for the presets
whose bounds do not depend on the use of the kernel.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import wcet
from campaigns.documented import markdown, replace
from tests.testing.harness import build

__all__ = ["main", "row"]

GUIDE = "../kernels/bilby/docs/guide.md"
HEAD = ("preset", "platform", "first piece, E", "any other piece, T", "interrupt path, I")
PRESETS = ("after", "latency")


def row(preset: str) -> tuple[str, ...]:
    """The preset's bounds in cycles."""
    found = wcet.analyse(build.kernel(f"kzm-{preset}"))
    starts = found.result.entries["syscall"].starts
    entry = [start.cycles for start in starts if start.place is None]
    others = [start.cycles for start in starts if start.place is not None]
    interrupt = found.entries["interrupt"].cycles
    assert interrupt is not None
    figures = (f"{cycles:,}" for cycles in (max(entry), max(others), interrupt))
    return (f"`{preset}`", found.platform, *figures)


def main(arguments: Sequence[str]) -> int:
    """Prints the table, or writes it."""
    parser = argparse.ArgumentParser(prog="campaigns.kernel_response")
    parser.add_argument("--write", action="store_true", help="replace the table in the guide")
    options = parser.parse_args(arguments)
    table = markdown(HEAD, [row(preset) for preset in PRESETS])
    if options.write:
        replace(GUIDE, "response", table)
    print(table, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
