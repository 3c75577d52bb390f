"""The waiting times of users: ``python -m bench.stages [--runs N] [--write]``.

Every figure is a fresh process with a user's command line, timed from outside; the least and the
median of the runs are printed, as wall seconds and as processor seconds of the process and its
children. Wall seconds are only meaningful on an idle machine. Modules are compiled before, as in an
installation, for any environment of the caller: otherwise compiling takes half of a short run.
``--write`` puts the table into ``docs/results/performance.md``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from campaigns.documented import markdown, replace

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

UNCOMPILED = "PYTHONDONTWRITEBYTECODE"  # makes Python compile modules in each process
EDITED = ("bilby/src/notification.c", "    notification_deliver(waiter, badge);\n")


@dataclass(frozen=True, slots=True)
class Row:
    """A timed command: wall and processor seconds of each run."""

    name: str
    wall: tuple[float, ...]
    processor: tuple[float, ...]

    def cells(self) -> list[str]:
        """The cells of the table."""
        figures = (f(seconds) for seconds in (self.wall, self.processor) for f in (min, median))
        return [self.name, *(f"{seconds:.2f}" for seconds in figures)]


def environment() -> dict[str, str]:
    """The environment of the commands, in which compiled modules are stored."""
    return {name: value for name, value in os.environ.items() if name != UNCOMPILED}


def timed(command: Sequence[object]) -> tuple[float, float]:
    """Wall and processor seconds of one run, which must succeed."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([str(c) for c in command], check=True, capture_output=True, env=environment())
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return wall, used - before.children_user - before.children_system


def measured(name: str, commands: Iterable[Sequence[object]]) -> Row:
    """Time commands one after another; each is built just before it runs."""
    wall, processor = zip(*map(timed, commands), strict=True)
    row = Row(name, wall, processor)
    print("  ".join(row.cells()), flush=True)
    return row


def edited_kernels(folder: Path, runs: int) -> list[Path]:
    """The kernel with one more instruction in one function, with two more, and so on."""
    shutil.copytree(ROOT / "kernels", folder / "kernels")
    name, line = EDITED
    source, built = folder / "kernels" / name, folder / "build/bilby/kzm-after"
    found = []
    for number in range(runs):
        text = source.read_text()
        assert text.count(line) == 1
        source.write_text(text.replace(line, f'    __asm__ volatile("nop");\n{line}'))
        subprocess.run(["make", "--silent", "-C", folder / "kernels/bilby"], check=True)
        shutil.copytree(built, folder / f"edited{number}")
        found.append(folder / f"edited{number}" / "kernel.elf")
    return found


def rows(folder: Path, runs: int) -> Iterator[Row]:
    """All figures, in the order of measurement."""
    (folder / "ten.c").write_text(TEN_LINES)
    ten, facts = folder / "ten.elf", folder / "my.facts"
    subprocess.run([*COMPILER, "-o", ten, folder / "ten.c"], check=True)
    edited = edited_kernels(folder, runs)

    def kernel(elf: Path, cache: str, *options: object) -> list[object]:
        return [*WCET, "analyse", elf, "--quiet", "--cache", folder / cache, *options]

    def stated(text: str, *options: object) -> list[object]:
        facts.write_text(text)
        return kernel(KERNEL, "cache", "--facts", facts, *options)

    numbers = range(runs)
    timed([*kernel(ten, "compiling"), "--entry", "f"])
    yield measured(
        "ten-line function with a loop, cold",
        ([*kernel(ten, f"ten{n}"), "--entry", "f"] for n in numbers),
    )
    yield measured("all entries of the kernel, cold", (kernel(KERNEL, f"cold{n}") for n in numbers))
    timed(kernel(KERNEL, "cache"))
    yield measured("all entries, warm", (kernel(KERNEL, "cache") for _ in numbers))
    yield measured(
        "all entries, changed constraint",
        (stated(f"cspace_lookup executes at most {n + 1} times\n") for n in numbers),
    )
    yield measured(
        "all entries, changed loop bound",
        (stated(f"loop cspace_resolve+0x48 at most {n + 20}\n") for n in numbers),
    )
    yield measured(
        "all entries, one function edited and the kernel rebuilt",
        (kernel(elf, "cache") for elf in edited),
    )
    path = [*WCET, "path", KERNEL, "--quiet", "--cache", folder / "cache", "--entry", "syscall"]
    yield measured("`wcet path`, warm", (path for _ in numbers))
    yield measured("`wcet path --why`, warm", ([*path, "--why", "cspace_lookup"] for _ in numbers))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="into docs/results/performance.md")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="quoll-bench-") as name:
        found = list(rows(Path(name), options.runs))
    if options.write:
        head = ("", "least", "median", "processor, least", "median")
        text = markdown(head, (row.cells() for row in found))
        replace(
            "results/performance.md", "waiting", f"Seconds, of {options.runs} runs each:\n\n{text}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
