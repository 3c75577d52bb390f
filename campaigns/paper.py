"""The papers' evaluation, our figures beside theirs: ``make paper``.

Runs the campaigns whose tables stand beside published ones as tasks of Dask, on all processors or
on the workers of a cluster, and prints progress. Each kernel is analysed once for each platform:
the campaigns find these results in the results store. A task starts as soon as the tasks that it
needs have ended, in the order of ``STEPS``; no other task waits for it. Tables come back to this
process, which alone writes pages; ``campaigns.tables`` and ``campaigns.charts`` then make CSV files
and charts of these.

Results of tasks are stored by content in ``build/paper``: a run that was stopped goes on, and a
change of a source, of a kernel or of a table that a task reads runs it again. ``--only NAME`` runs
some parts. A part that fails stops only the parts that read its tables, and changes no page; the
exit status is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from campaigns.documented import inside, replace
from quoll.processes.children import die_with
from quoll.processes.futures import processors
from quoll.processes.processor_time import own
from quoll.results.versions import code_version
from tests.testing.harness import build
from wcet.sweep.analysis_run import run_analysis
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.matrix import Analysis, file_digest
from wcet.sweep.task import Json, Task

__all__ = [
    "ANALYSES",
    "BUILDS",
    "PARTS",
    "STEPS",
    "KernelAnalysis",
    "Part",
    "PartFailed",
    "evaluate",
    "main",
    "run_part",
]

BOARDS = ("kzm", "cubieboard")
KERNEL = ("kernel.elf", "kernel.facts")
PLATFORMS = ("platform.toml", "platform-paper.toml")  # with the lines that a kernel locks
# Kernels, and the files beside them that parts read: other programs are not built.
BUILDS: dict[str, tuple[str, ...]] = {
    **{f"{board}-after": ("pingpong.elf", "steer.elf", "latency.elf") for board in BOARDS},
    **{
        f"{board}-mcs": (
            *("pingpong.elf", "modes.elf", "sample.elf", "sched_user.elf", "edf.elf"),
            *("aes.elf", "isolation.elf", "cfs.elf"),
        )
        for board in BOARDS
    },
    **{
        f"{board}-{preset}": ("pingpong.elf",)
        for preset in ("before", "latency")
        for board in BOARDS
    },
    **{f"kzm-latency-{pin}": PLATFORMS for pin in ("l1", "l2")},
}
SOURCES = ("campaigns", "bench", "tests/testing")
FILES = ("docs/ilp.md", "kernels/bilby/run", "build/recorder/librecorder.so")
SECONDS = 3600.0  # of an analysis, on the clock
EMULATED = "600"  # seconds on the clock for a program in QEMU, beside other tasks
LAST = 4000  # characters of the output of a part that failed


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """The analysis of all entries of a kernel, whose results go into the store.

    ``kernel``: of ``BUILDS``. ``platform``: a name, or a file beside the kernel. The first analysis
    of a kernel proves its loops: its other analyses start when it has ended.
    """

    kernel: str
    platform: str
    arguments: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """A name for progress, and for ``Part.finds``."""
        return " ".join((self.kernel, self.platform, *self.arguments))

    def task(self, priority: int) -> Task:
        """The task, keyed by the content of its files."""
        folder = build.ROOT / "build/bilby" / self.kernel
        elf, facts = (folder / name for name in KERNEL)
        own = self.platform in PLATFORMS
        platform = str(folder / self.platform) if own else self.platform
        files = (elf, facts, *([folder / self.platform] if own else []))
        one = Analysis(
            str(elf),
            self.kernel,
            platform,
            " ".join(self.arguments),
            self.arguments,
            ("all",),
            (str(facts),),
            tuple((str(file), file_digest(file)) for file in files),
        )
        argument = {**asdict(one), "seconds": SECONDS}
        return Task(self.title, "campaigns.paper:analyse", argument, priority)


@dataclass(frozen=True, slots=True)
class Part:
    """A campaign, or some of its tables.

    ``tables``: the marks of its tables in ``page``, a path relative to ``docs/``. ``finds``: the
    analyses whose results it takes from the store. ``reads``: tables of other parts that it reads,
    each with its page.
    """

    name: str
    module: str
    page: str
    tables: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    finds: tuple[str, ...] = ()
    reads: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """A name for progress."""
        return f"{self.name} ({', '.join(self.tables)})"

    def task(self, priority: int, version: str) -> Task:
        """The task, keyed by the content of everything that it reads."""
        argument = {
            "module": self.module,
            "arguments": self.arguments,
            "tables": [[self.page, table] for table in self.tables],
            "inputs": [version, *(documented(*table) for table in self.reads)],
        }
        return Task(self.title, "campaigns.paper:run_part", argument, priority)


IPC, OBSERVED, MCS = "../kernels/bilby/docs/ipc.md", "results/observed.md", "results/mcs.md"
BOUNDS, PAPERS = "results/bounds.md", "results/papers.md"
NEVER = ("--share", "never")  # as campaigns.kernel_bounds.INLINED
PINNED = ("kzm-latency-l1 platform-paper.toml", "kzm-latency-l2 platform-paper.toml")
OF_PAPER = tuple(f"kzm-{preset} kzm-paper" for preset in ("before", "after", "latency"))
MCS_OF_PAPER, WITH_L2 = "kzm-mcs kzm-paper --share never", "kzm-after kzm-paper --l2 on"
OWN = tuple(
    f"{board}-{preset} {board}" for preset in ("before", "after", "latency") for board in BOARDS
)
OWN_MCS = tuple(f"{board}-mcs {board} --share never" for board in BOARDS)
# Those that take long without waiting come first, then those that others wait for.
STEPS: tuple[KernelAnalysis | Part, ...] = (
    Part(
        *("mixed criticality", "campaigns.mcs_results", MCS, ("programs",)),
        arguments=("--table", "programs"),
    ),
    KernelAnalysis("kzm-after", "kzm"),
    KernelAnalysis("kzm-mcs", "kzm", NEVER),
    KernelAnalysis("kzm-before", "kzm"),
    KernelAnalysis("cubieboard-after", "cubieboard"),
    KernelAnalysis("kzm-after", "kzm-paper"),
    KernelAnalysis("kzm-after", "kzm-paper", ("--l2", "on")),
    KernelAnalysis("kzm-before", "kzm-paper"),
    Part(
        *("computed against observed", "campaigns.observed", OBSERVED),
        tables=(
            *("computed and observed", "pessimism", "other paths", "refined", "effect of L2"),
            *("observed on kzm", "observed on cubieboard", "hill climbing", "causes"),
        ),
        arguments=("--states", "1000", "--climb", "500"),
        finds=(*OF_PAPER[:2], WITH_L2, *(f"{board}-after {board}" for board in BOARDS)),
    ),
    KernelAnalysis("kzm-after", "kzm-returns"),
    KernelAnalysis("kzm-after", "kzm-predictor"),
    Part(
        *("branch predictor", "campaigns.predicted_branches", OBSERVED),
        tables=("predicted branches", "predicted returns"),
        arguments=("--states", "1000"),
        finds=("kzm-after kzm", "kzm-after kzm-predictor", "kzm-after kzm-returns"),
    ),
    KernelAnalysis("cubieboard-mcs", "cubieboard", NEVER),
    Part(
        *("pinned cache lines", "campaigns.pinned_lines", "pinning.md", ("pinned",)),
        finds=("kzm-after kzm-paper",),
    ),
    KernelAnalysis("kzm-latency", "kzm"),
    KernelAnalysis("cubieboard-latency", "cubieboard"),
    KernelAnalysis("cubieboard-before", "cubieboard"),
    Part(
        *("frequent operations", "bench.ipc", IPC, ("operations",)),
        finds=(*OWN, *OWN_MCS),
    ),
    KernelAnalysis("kzm-mcs", "kzm-paper", NEVER),
    KernelAnalysis("kzm-latency", "kzm-paper"),
    KernelAnalysis("kzm-latency-l1", "platform-paper.toml"),
    KernelAnalysis("kzm-latency-l2", "platform-paper.toml"),
    Part(
        *("to preempt or not", "campaigns.preempt_or_not", BOUNDS, ("preempt or not",)),
        finds=(*OF_PAPER, *PINNED, MCS_OF_PAPER),
    ),
    Part(
        *("mixed criticality", "campaigns.mcs_results", MCS, ("latencies", "operations")),
        arguments=("--table", "latencies", "--table", "operations"),
        finds=("kzm-after kzm", OF_PAPER[1], *OWN_MCS, MCS_OF_PAPER),
    ),
    Part(
        *("beside published figures", "campaigns.papers", PAPERS, ("papers",)),
        finds=(*OF_PAPER, WITH_L2, *PINNED, MCS_OF_PAPER),
        reads=((IPC, "operations"),),
    ),
    Part(
        *("effort and factors", "campaigns.analysis_effort", PAPERS),
        tables=("analysis effort", "factors"),
        reads=((PAPERS, "papers"),),
    ),
    Part(
        *("bounds by preset", "campaigns.kernel_bounds", BOUNDS, ("bounds",)),
        finds=(*OF_PAPER, *OWN[::2]),
    ),
    Part(
        *("mixed criticality", "campaigns.mcs_results", MCS),
        tables=("messages", "short way", "published"),
        arguments=("--table", "messages", "--table", "short way", "--table", "published"),
        reads=((IPC, "operations"), (MCS, "operations"), (MCS, "programs")),
    ),
    Part("wrong paths", "campaigns.wrong_path_lines", "pipeline.md", ("wrong paths",)),
)
PARTS = tuple(step for step in STEPS if isinstance(step, Part))
ANALYSES = tuple(step for step in STEPS if isinstance(step, KernelAnalysis))


class PartFailed(Exception):
    """A part ended with an error; the text has the end of its output."""


def run_part(argument: Mapping[str, Any]) -> Json:
    """The tables of a part, each with its page and its name, and its processor time in seconds.

    It runs in a process of its own. Raises PartFailed, also if it has other tables than expected.
    """
    before = own()
    with TemporaryDirectory() as folder:
        sections = Path(folder, "sections")
        command = [sys.executable, "-m", argument["module"], *argument["arguments"]]
        done = subprocess.run(
            [*command, "--sections", str(sections)], cwd=build.ROOT, check=False, text=True,
            env={**os.environ, "BILBY_TIMEOUT": EMULATED}, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=partial(die_with, os.getpid()),
        )  # fmt: skip
        if done.returncode:
            raise PartFailed(f"status {done.returncode}\n{done.stdout[-LAST:]}")
        lines = sections.read_text(encoding="utf-8").splitlines() if sections.exists() else ()
    found = [json.loads(line) for line in lines]
    if (written := [section[:2] for section in found]) != argument["tables"]:
        raise PartFailed(f"it has the tables {written}, not {argument['tables']}")
    return {"sections": found, "seconds": own() - before}


def evaluate(
    steps: Sequence[KernelAnalysis | Part],
    version: str,
    folder: ResultFolder,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
) -> bool:
    """Run all steps, each when the steps that it needs have ended, and write the tables.

    ``steps``: each after those that it needs, the important ones first. ``version``: of everything
    that parts read, besides ``Part.reads``. Returns whether all have succeeded.
    """
    order = _Order(steps, version)
    report = progress(len(steps))
    run_tasks(order.ready(), folder, report, then=order.then, scheduler=scheduler, workers=workers)
    for title in order.not_run():
        print(f"{title}: not run, as a part whose tables it reads has failed", flush=True)
    return order.succeeded == {step.title for step in steps}


class _Order:
    """The steps that have ended, and those that wait."""

    def __init__(self, steps: Sequence[KernelAnalysis | Part], version: str) -> None:
        self.steps = {step.title: step for step in steps}
        self.version = version
        self.started: set[str] = set()
        self.ended: set[str] = set()
        self.succeeded: set[str] = set()

    def ready(self) -> list[Task]:
        """The tasks of the steps that need not wait any more, each once."""
        found = []
        for number, (title, step) in enumerate(self.steps.items()):
            if title in self.started or not self._may_start(step):
                continue
            self.started.add(title)
            if isinstance(step, Part):
                found.append(step.task(-number, self.version))
            else:
                found.append(step.task(-number))
        return found

    def then(self, task: Task, outcome: Outcome) -> list[Task]:
        """Write the tables of a part that has succeeded; the tasks that waited for it."""
        self.ended.add(task.name)
        if outcome.failure is None:
            self.succeeded.add(task.name)
            for section in outcome.result["sections"]:
                replace(*section)
        return self.ready()

    def not_run(self) -> list[str]:
        """The steps that never started."""
        return [title for title in self.steps if title not in self.started]

    def _may_start(self, step: KernelAnalysis | Part) -> bool:
        if isinstance(step, KernelAnalysis):
            return self._first_analysis(step) in (step.title, *self.ended)
        tables = {
            one.title
            for one in self.steps.values()
            if isinstance(one, Part) and any((one.page, t) in step.reads for t in one.tables)
        }
        return tables <= self.succeeded and self.steps.keys() & step.finds <= self.ended

    def _first_analysis(self, step: KernelAnalysis) -> str:
        """The analysis that proves the loops of the kernel."""
        return next(
            title
            for title, one in self.steps.items()
            if isinstance(one, KernelAnalysis) and one.kernel == step.kernel
        )


def documented(page: str, table: str) -> str:
    """The hash of a table in a page."""
    text = inside((build.ROOT / "docs" / page).read_text(encoding="utf-8"), table)
    return hashlib.sha256(text.encode()).hexdigest()


def inputs() -> str:
    """The versions of campaigns, programs and kernels."""
    found = [code_version(build.ROOT / folder) for folder in SOURCES]
    found += [file_digest(build.ROOT / file) for file in FILES]
    for name, files in BUILDS.items():
        folder = build.ROOT / "build/bilby" / name
        found += [file + file_digest(folder / file) for file in (*KERNEL, *files)]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def analyse(argument: Mapping[str, Any]) -> Json:
    """An analysis of ``wcet sweep``, whose results go into the store; without tables.

    Raises PartFailed.
    """
    before = own()
    if error := run_analysis(argument)["error"]:
        raise PartFailed(error)
    return {"sections": [], "seconds": own() - before}


def progress(total: int) -> Callable[[Task, Outcome, str], None]:
    """A report of each task that ends."""
    ended, start = 0, time.monotonic()

    def report(task: Task, outcome: Outcome, dashboard: str) -> None:
        nonlocal ended
        ended += 1
        if ended == 1:
            print(f"dashboard {dashboard}", flush=True)
        at = f"{ended} of at most {total} after {time.monotonic() - start:,.0f} s"
        used = outcome.failure or f"{outcome.result['seconds']:,.0f} s of processor time"
        print(f"{at}: {task.name}: {used}", flush=True)

    return report


def main() -> int:
    names = tuple(dict.fromkeys(part.name for part in PARTS))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=names, action="append", help="all without any")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes (default: all processors)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster")
    options = parser.parse_args()
    start = time.monotonic()
    for name, files in BUILDS.items():
        print(f"build {name}", flush=True)
        build.kernel(name, *KERNEL, *files, jobs=options.jobs or processors())
    build.recorder()
    print(f"built after {time.monotonic() - start:,.0f} s", flush=True)
    parts = [part for part in PARTS if part.name in (options.only or names)]
    found = {title for part in parts for title in part.finds}
    steps = [step for step in STEPS if step in parts or step.title in found]
    succeeded = evaluate(
        steps,
        inputs(),
        ResultFolder(build.ROOT / "build/paper"),
        scheduler=options.scheduler,
        workers=options.jobs,
    )
    for module in ("campaigns.tables", "campaigns.charts"):
        command = [sys.executable, "-m", module]
        succeeded &= subprocess.run(command, cwd=build.ROOT, check=False).returncode == 0
    print(f"{time.monotonic() - start:,.0f} s", flush=True)
    return 0 if succeeded else 1


if __name__ == "__main__":
    sys.exit(main())
