"""The kernel as a benchmark for other analysers: ``python -m bench.benchmark FOLDER``.

One archive per board, preset and level of optimisation: the kernel and its programs, compiler, line
table, loops with bounds and arguments, recorded executions, and our bounds. ``bench/benchmark.md``,
which is packed as README.md, describes its files and their formats. The bytes of an archive depend
on the sources and on the versions of compiler, assembler, linker, QEMU and xz.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench.archive import write_archive
from bench.neutral import facts_table, lines_table, loops_table, parameters_of
from quoll.image.image import Image

__all__ = ["Build", "main", "pack"]

ROOT = Path(__file__).resolve().parent.parent
BILBY = ROOT / "kernels" / "bilby"
RECORDER = ROOT / "build" / "recorder" / "librecorder.so"
COMPILER = "arm-none-eabi-gcc"
WCET = str(Path(sys.executable).with_name("wcet"))
BOARDS = ("kzm", "cubieboard")
LEVELS = ("O1", "O2", "Os")
PROGRAMS = ("hello", "pingpong", "latency", "steer", "tests")
SIZE = re.compile(r"^\| `(\w+)` \| (\d+) \|", re.M)


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel: ``kzm``, ``after``, ``O2``."""

    board: str
    preset: str
    level: str

    def __str__(self) -> str:
        return f"{self.board}-{self.preset}-{self.level}"

    @property
    def name(self) -> str:
        """The name of its folder in build/bilby."""
        variant = "" if self.level == "O2" else f"-gcc-{self.level}"
        return f"{self.board}-{self.preset}{variant}"

    @property
    def folder(self) -> Path:
        """The build folder."""
        return ROOT / "build" / "bilby" / self.name

    def make(self, programs: Sequence[str]) -> None:
        """Build the kernel and ``programs``."""
        goals = [f"../../build/bilby/{self.name}/{program}.elf" for program in programs]
        options = [f"BOARD={self.board}", f"PRESET={self.preset}", f"OPT=-{self.level}"]
        run("make", "--silent", "-C", BILBY, *options, "all", *goals)


def run(*command: object) -> str:
    """The output of a command. Raises CalledProcessError when it fails."""
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    ).stdout


def presets() -> list[str]:
    """The names of the kernel's presets, sorted."""
    return sorted(path.stem for path in (BILBY / "presets").glob("*.mk"))


def compiler(build: Build) -> str:
    """Versions of the tools, and the flags of the kernel's C files."""
    options = [f"BOARD={build.board}", f"PRESET={build.preset}", f"OPT=-{build.level}"]
    plan = run("make", "--always-make", "--dry-run", "-C", BILBY, *options, "all")
    command = next(line for line in plan.splitlines() if " -c src/syscall.c " in line)
    flags = re.sub(r'-f\w+-prefix-map="[^"]*"', "", command.partition(" -MMD")[0]).split()[1:]
    tools = [COMPILER, "arm-none-eabi-as", "arm-none-eabi-ld", "qemu-system-arm"]
    versions = [run(tool, "--version").splitlines()[0] for tool in tools]
    return "\n".join([*versions, "flags: " + " ".join(flags)]) + "\n"


def record(build: Build, program: str, folder: Path) -> bytes:
    """The recording of the kernel while a program runs. Raises when the program fails."""
    trace = folder / f"{program}.trace"
    run(BILBY / "run", build.name, program, "-plugin", f"{RECORDER},out={trace}")
    return trace.read_bytes()


def analysed(build: Build, folder: Path) -> dict[str, Any]:
    """The report of ``wcet analyse``, or only ``error`` if it failed.

    Raises CalledProcessError when it was killed.
    """
    facts = (build.folder / "kernel.facts").read_text(encoding="utf-8")
    fixed = dict(SIZE.findall((ROOT / "docs" / "ilp.md").read_text(encoding="utf-8")))
    sizes = {name: int(fixed[name]) for name in parameters_of(facts)}
    report = folder / "report.json"
    command = [WCET, "analyse", str(build.folder / "kernel.elf"), "--platform", build.board]
    done = subprocess.run(
        [*command, "--quiet", "--json", str(report), *(f"--set={n}={sizes[n]}" for n in sizes)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode < 0:  # a signal
        done.check_returncode()
    if not report.exists():
        return {"error": done.stderr.strip().replace(str(ROOT) + "/", "")}
    text = report.read_text(encoding="utf-8").replace(json.dumps(f"{ROOT}/")[1:-1], "")
    found: dict[str, Any] = json.loads(text)
    return found | {"sizes": sizes}


def bounds(report: dict[str, Any]) -> bytes:
    """The fields of a report that are the same in every run."""
    if "error" in report:
        found = report
    else:
        entries = {
            name: {"cycles": entry["cycles"], "starts": [
                {"place": start["place"], "cycles": start["cycles"]} for start in entry["starts"]
            ]}
            for name, entry in report["entries"].items()
        }  # fmt: skip
        found = {
            "kernel_sha256": report["kernel"]["sha256"],
            "platform": report["platform"]["name"],
            "clock_hz": report["platform"]["clock_hz"],
            "sizes": report["sizes"],
            "entries": entries,
            "unbounded": report["unbounded"],
            "interrupt_latency": report["interrupt_latency"],
            "assumptions": report["assumptions"],
        }
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


def contents(build: Build, programs: Sequence[str]) -> dict[str, bytes]:
    """The files of an archive."""
    build.make(programs)
    image = Image.load(build.folder / "kernel.elf")
    loops, facts = (
        (build.folder / f"kernel.{kind}").read_text(encoding="utf-8")
        for kind in ("loops.csv", "facts")
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        report = analysed(build, folder)
        files = {f"traces/{name}.trace": record(build, name, folder) for name in programs}
    for name in ("kernel", *programs):
        files[f"{name}.elf"] = (build.folder / f"{name}.elf").read_bytes()
    if "error" not in report:
        files["loops.tsv"] = loops_table(report)
    return files | {
        "README.md": Path(__file__).with_name("benchmark.md").read_bytes(),
        "compiler.txt": compiler(build).encode(),
        "lines.tsv": lines_table(image),
        "facts.tsv": facts_table(loops, facts, image),
        "platform.toml": (ROOT / "wcet" / "platforms" / f"{build.board}.toml").read_bytes(),
        "bounds.json": bounds(report),
    }


def pack(build: Build, programs: Sequence[str], folder: Path) -> Path:
    """Make one archive in ``folder``; returns its path."""
    path = folder / f"bilby-{build}.tar.xz"
    write_archive(path, contents(build, programs))
    return path


def chosen(names: Sequence[str]) -> Iterator[Build]:
    """The builds with these names, or all builds."""
    every = {str(b): b for b in map(Build, *zip(*product(BOARDS, presets(), LEVELS), strict=True))}
    for name in names or every:
        if name not in every:
            raise SystemExit(f"bench.benchmark: no build {name}; there are: {', '.join(every)}")
        yield every[name]


def main(arguments: Sequence[str]) -> int:
    """Writes the archives; prints the name and the size of each."""
    parser = argparse.ArgumentParser(
        prog="bench.benchmark", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the archives go")
    parser.add_argument("--build", action="append", default=[], metavar="BOARD-PRESET-LEVEL",
                        help="only this one, e.g. kzm-after-O2; repeatable")  # fmt: skip
    parser.add_argument("--program", action="append", choices=PROGRAMS, default=[],
                        help="only this program and its recording; repeatable")  # fmt: skip
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for build in chosen(options.build):
        path = pack(build, options.program or PROGRAMS, options.folder)
        print(f"{path}  {path.stat().st_size:,} bytes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
