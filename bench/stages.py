"""How long the user waits: ``python -m bench.stages [--runs N]``.

Every figure is a fresh process with the command line a user types, timed from outside; the
smallest and the median of the runs are printed, as wall seconds and as processor seconds of the
process and its children. Wall seconds only say something when nothing else runs.

    ten lines, cold      an ELF of one function of ten lines with a loop, an empty cache
    kernel, recalled     all entries of the kernel, after an earlier run
    constraint edited    one entry, after a change of one constraint: only the ILP is solved
    path, why            'wcet path' and its --why on one entry, after an earlier run
    ILP of all entries   the stage 'ilp' of the recalled run, as --stats gives it
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
WCET = [str(Path(sys.executable).with_name("wcet"))]
KERNEL = ROOT / "build/bilby/kzm-after/kernel.elf"
TEN_LINES = """\
unsigned table[8];
unsigned f(unsigned a) {
    unsigned x = a;
    for (unsigned i = 0; i < 8; i++)
        x += table[i];
    if (a & 1)
        x ^= 3;
    return x;
}
"""
COMPILER = ["arm-none-eabi-gcc", "-mcpu=arm1136jf-s", "-marm", "-O2", "-g", "-ffreestanding",
            "-nostdlib", "-Wl,-Ttext=0xf0010000", "-Wl,-e,f"]  # fmt: skip


def timed(command: Sequence[object]) -> tuple[float, float]:
    """Wall and processor seconds of one run, which has to succeed."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([str(c) for c in command], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def report(name: str, runs: int, command: Callable[[int], Sequence[object]]) -> None:
    """Time ``command`` for runs 0, 1, ... and print a row."""
    figures = [timed(command(number)) for number in range(runs)]
    wall, processor = zip(*figures, strict=True)
    print(
        f"{name:<22}{min(wall):>8.2f}{median(wall):>8.2f}{min(processor):>10.2f}"
        f"{median(processor):>8.2f}",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args(arguments).runs
    with tempfile.TemporaryDirectory(prefix="quoll-bench-") as name:
        folder = Path(name)
        (folder / "ten.c").write_text(TEN_LINES)
        ten, facts, out = folder / "ten.elf", folder / "my.facts", folder / "out.json"
        subprocess.run([*COMPILER, "-o", ten, folder / "ten.c"], check=True)
        quiet = ["--quiet", "--cache", folder / "cache"]
        everything = [*WCET, "analyse", KERNEL, *quiet, "--json", out]
        edited = [*WCET, "analyse", KERNEL, *quiet, "--entry", "syscall", "--facts", facts]
        print(f"{'':<22}{'wall: least, median':>16}{'processor: least, median':>26}")
        report(
            "ten lines, cold",
            runs,
            lambda n: [*WCET, "analyse", ten, "--entry", "f", "--quiet",
                       "--cache", folder / f"cold{n}"],
        )  # fmt: skip
        timed(everything)
        report("kernel, recalled", runs, lambda n: everything)

        def edit(number: int) -> Sequence[object]:
            facts.write_text(f"cspace_lookup executes at most {number + 1} times\n")
            return edited

        report("constraint edited", runs, edit)
        path = [*WCET, "path", KERNEL, *quiet, "--entry", "syscall"]
        report("path", runs, lambda n: path)
        report("why", runs, lambda n: [*path, "--why", "cspace_lookup"])
        stages = json.loads(out.read_text())["stages"]
        print(f"{'ILP of all entries':<22}{stages['ilp']['seconds']:>8.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
