"""Programs of many kinds: which get a bound without facts, how tight, in which time.

    make campaign-program_suite ARGS='--write'
    make campaign-program_suite ARGS='--seed 3 --builds 20 --only merge queue'

Each C program of ``campaigns/suite`` is compiled by GCC or Clang at one of five levels, in ARM or
Thumb state; the seed draws the builds. Each is analysed from its start without facts and without
known memory, in a process of its own, and executed with any content of its variable ``input``. The
execution is replayed on the concrete machine from random states. Results are stored, so that a
campaign that was stopped goes on where it ended. Exits with status 1 if an execution took longer
than its bound or the charge of its path, or left the graph.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

from campaigns.documented import markdown, replace
from loopbounds.proof.options import BoundOptions
from quoll.errors import WcetError
from quoll.image.image import Image
from quoll.recordings.follow import MissingEdge
from tests.testing.harness import build
from tests.testing.wcet.programs import check
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.stage_times import StageLog
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.task import Json, Task

SOURCES = build.ROOT / "campaigns" / "suite"
FOLDER = build.ROOT / "build" / "program_suite"
COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
PLATFORM, CPU = "kzm", "arm1136jf-s"
SECONDS = 100  # of processor time, of an analysis with its replays
GRACE = 5  # seconds more until a process that ignores its limit is killed
FLAGS = (
    "-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-mfloat-abi=soft",
    "-mno-unaligned-access", "-g", "-w",
)  # fmt: skip
CLANG = ("--target=arm-none-eabi",)
LINK = (
    "-nostdlib",
    "-Wl,-Ttext=0xf0010000",
    "-Wl,-e,start",
    "-Wl,-z,noexecstack,--no-warn-rwx-segments",
)
LOOSE = 3.0  # bound/seen from which a build is listed
HEAD = ("builds", "number", "bounded", "median bound/seen", "90 %", "median seconds", "90 %")


@dataclass(frozen=True, slots=True, order=True)
class Build:
    """A program, and how it is compiled."""

    program: str
    compiler: str
    level: str
    thumb: bool

    @property
    def name(self) -> str:
        """As in reports and file names."""
        return f"{self.program}-{self.compiler}{self.level}{'-thumb' if self.thumb else ''}"

    @property
    def source(self) -> Path:
        """The C file of the program."""
        return SOURCES / f"{self.program}.c"

    def compiled(self) -> Path:
        """The ELF. Raises CalledProcessError."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        elf = FOLDER / f"{self.name}.elf"
        state = "-mthumb" if self.thumb else "-marm"
        own = CLANG if self.compiler == "clang" else ()
        compiler = "clang" if self.compiler == "clang" else "arm-none-eabi-gcc"
        objects = []
        for source in (SOURCES / "runtime.c", self.source):
            objects.append(FOLDER / f"{self.name}-{source.stem}.o")
            command = [compiler, *own, f"-mcpu={CPU}", state, self.level, *FLAGS]
            subprocess.run([*command, "-c", source, "-o", objects[-1]], check=True)
        link = ["arm-none-eabi-gcc", f"-mcpu={CPU}", state, *LINK]
        subprocess.run([*link, *objects, "-lgcc", "-o", elf], check=True)
        for item in objects:
            item.unlink()
        return elf


def drawn(seed: int, number: int) -> list[Build]:
    """``number`` builds, each program as often as any other within one."""
    random = Random(seed)
    programs = sorted(file.stem for file in SOURCES.glob("*.c") if file.stem != "runtime")
    several = [(c, level, thumb) for c in COMPILERS for level in LEVELS for thumb in (False, True)]
    ways = {program: random.sample(several, len(several)) for program in programs}
    rounds = -(-number // len(programs))
    chosen = [p for _ in range(rounds) for p in random.sample(programs, len(programs))]
    return [Build(program, *ways[program].pop()) for program in chosen[:number]]


def examine(argument: Mapping[str, Any]) -> Json:
    """One build, analysed and replayed in a process of its own, so that its seconds are all."""
    argument = {"elf": str(Build(**argument["build"]).compiled()), "states": argument["states"]}
    command = [sys.executable, "-m", "campaigns.program_suite", "--one", json.dumps(argument)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGXCPU:
        return {"cause": f"more than {SECONDS} seconds", "seconds": SECONDS}
    if done.returncode:
        return {"fault": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])


def measure(argument: Mapping[str, Any]) -> Json:
    """Bound, charge and most cycles seen of one build; else the causes of there being none."""
    elf = Path(argument["elf"])
    options = AnalysisOptions(
        entries=("start",),
        platform=PLATFORM,
        neighbouring_facts=False,
        solver="highs",
        bounds=BoundOptions(workers=1),
    )
    try:
        result = analyse(elf, options, StageLog(verbose=False))
    except WcetError as error:
        return {"cause": causes(error, Image.load(elf)), "seconds": processor_seconds()}
    seconds = processor_seconds()
    try:
        [case] = check(result, 0, 1, argument["states"], "start", varied="input")
    except (AssertionError, MissingEdge) as error:
        return {"fault": str(error)}
    return {"bound": case.bound, "charged": case.charged, "most": case.most, "seconds": seconds}


def causes(error: WcetError, image: Image) -> str:
    """The kinds of missing facts with the functions they concern; else the error's code."""
    found = {f"{m.kind.value} in {_function(image, m.addr)}" for m in error.missing}
    return ", ".join(sorted(found)) or f"{error.code}: {error}"[:120]


def _function(image: Image, addr: int) -> str:
    found = image.symbol_at(addr)
    return found[0].name if found else hex(addr)


def processor_seconds() -> float:
    """Processor seconds of this process and of its finished children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--builds", type=int, default=200)
    parser.add_argument("--states", type=int, default=20, help="replays of a build")
    parser.add_argument("--only", nargs="*", help="programs (default: all)")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="into docs/results/loops.md")
    options = parser.parse_args()
    if options.one is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + GRACE))
        print(json.dumps(measure(options.one)))
        return 0
    chosen = drawn(options.seed, options.builds)
    builds = [b for b in chosen if not options.only or b.program in options.only]
    tasks = [task(b, options.states) for b in builds]
    outcomes = run_tasks(tasks, ResultFolder(FOLDER), progress, workers=1)
    results = [o.result if o.failure is None else {"fault": o.failure} for o in outcomes]
    text = tables(builds, results)
    print(text)
    if options.write:
        head = f"Seed {options.seed}, {options.builds} builds, {options.states} states of each."
        replace("results/loops.md", "program suite", f"{head}\n\n{text}")
    return int(any("fault" in result for result in results))


def task(chosen: Build, states: int) -> Task:
    """The measurement of a build; its source and flags tell stored results apart."""
    content = [chosen.source.read_text(), FLAGS]
    argument = {"build": asdict(chosen), "states": states, "content": content}
    return Task(chosen.name, "campaigns.program_suite:examine", argument)


def progress(task: Task, outcome: Outcome, dashboard: str) -> None:
    """One line for each build that ends."""
    print(task.name, outcome.failure or outcome.result, file=sys.stderr, flush=True)


def tables(builds: Sequence[Build], results: Sequence[Json]) -> str:
    """Rows by compiler, state and level; then the causes; then the loosest bounds."""
    pairs = list(zip(builds, results, strict=True))
    groups = {
        "all": pairs,
        **{c: [p for p in pairs if p[0].compiler == c] for c in COMPILERS},
        **{level: [p for p in pairs if p[0].level == level] for level in LEVELS},
        "ARM": [p for p in pairs if not p[0].thumb],
        "Thumb": [p for p in pairs if p[0].thumb],
    }
    rows = [row(name, [r for _, r in own]) for name, own in groups.items() if own]
    lost = Counter((b.program, r.get("cause", "a fault")) for b, r in pairs if "bound" not in r)
    bounded = [(b.name, r) for b, r in pairs if "bound" in r]
    loose = sorted(
        ((r["bound"] / r["most"], name, r["charged"] / r["most"]) for name, r in bounded),
        reverse=True,
    )
    return "\n".join(
        [
            markdown(HEAD, rows),
            markdown(
                ("program", "no bound because of", "builds"),
                [(p, c, str(n)) for (p, c), n in sorted(lost.items())],
            ),
            markdown(
                ("build", "bound/seen", "charge/seen"),
                [(n, f"{b:.2f}", f"{c:.2f}") for b, n, c in loose if b > LOOSE],
            ),
        ]
    )


def row(name: str, results: Sequence[Json]) -> tuple[str, ...]:
    """The figures of some builds."""
    ratios = [r["bound"] / r["most"] for r in results if "bound" in r]
    seconds = [r["seconds"] for r in results if "seconds" in r]
    whole = f"{len(ratios)} ({len(ratios) / len(results):.0%})"
    return name, str(len(results)), whole, *spread(ratios), *spread(seconds)


def spread(figures: Sequence[float]) -> tuple[str, str]:
    """The median and the last decile."""
    if len(figures) < 2:
        return "", ""
    return f"{median(figures):.2f}", f"{quantiles(figures, n=10)[-1]:.2f}"


if __name__ == "__main__":
    sys.exit(main())
