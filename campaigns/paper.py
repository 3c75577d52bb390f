"""The papers' evaluation, our figures beside theirs: ``make paper``.

Runs the campaigns whose tables stand beside published ones as tasks of Dask, on all processors or
on the workers of a cluster, and prints progress. Each kernel is analysed once for each platform
first: the campaigns find these results in the results store. Tables come back to this process,
which alone writes pages; ``campaigns.tables`` and ``campaigns.charts`` then make CSV files and
charts of these.

Results of tasks are stored by content in ``build/paper``: a run that was stopped goes on, and a
change of a source, of a kernel or of a page that a task reads runs it again. ``--only NAME`` runs
some parts. A part that fails does not stop the others, and changes no page; the exit status is
then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from campaigns.documented import replace
from quoll.processes.children import die_with
from quoll.processes.processor_time import own
from quoll.results.versions import code_version
from tests.testing.harness import build
from wcet.sweep.analysis_run import run_analysis
from wcet.sweep.cluster import Outcome, ResultFolder, run_tasks
from wcet.sweep.matrix import Analysis, file_digest
from wcet.sweep.task import Json, Task

__all__ = ["ANALYSES", "BUILDS", "PARTS", "Part", "PartFailed", "evaluate", "main", "run_part"]

BOARDS, PRESETS = ("kzm", "cubieboard"), ("after", "mcs", "before", "latency")
BUILDS = (
    *(f"{board}-{preset}" for preset in PRESETS for board in BOARDS),
    *("kzm-latency-l1", "kzm-latency-l2"),
)
SOURCES = ("campaigns", "bench", "tests/testing")
FILES = ("docs/ilp.md", "kernels/bilby/run", "build/recorder/librecorder.so")
BUILT = (".elf", ".facts", ".toml")
SECONDS = 3600.0  # of an analysis, on the clock
EMULATED = "600"  # seconds on the clock for a program in QEMU, beside other tasks
LAST = 4000  # characters of the output of a part that failed
# Kernel, platform and options, besides the analyses that the campaigns of the first stage make.
# The first analysis of a kernel proves its loops: the others follow when it has ended.
ANALYSES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *((f"cubieboard-{preset}", "cubieboard", ()) for preset in ("after", "before", "latency")),
    *((f"kzm-{preset}", "kzm", ()) for preset in PRESETS),
    *((f"{board}-mcs", board, ("--share", "never")) for board in BOARDS),
    ("kzm-after", "kzm-returns", ()),
    ("kzm-after", "kzm-predictor", ()),
    ("kzm-after", "kzm-paper", ("--l2", "on")),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A campaign, or some of its tables.

    ``stage``: parts of one stage run side by side, after the earlier stages. ``tables``: the marks
    of its tables in ``page``, a path relative to ``docs/``. ``reads``: other pages whose tables it
    reads, of earlier stages.
    """

    name: str
    stage: int
    module: str
    page: str
    tables: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


IPC, OBSERVED, MCS = "../kernels/bilby/docs/ipc.md", "results/observed.md", "results/mcs.md"
BOUNDS, PAPERS = "results/bounds.md", "results/papers.md"
# Stage 1: they make their own analyses; 2: they find them; 3: tables of tables; 4: measured alone.
# The longest parts of a stage are the first.
PARTS = (
    Part("pinned cache lines", 1, "campaigns.pinned_lines", "pinning.md", ("pinned",)),
    Part("to preempt or not", 1, "campaigns.preempt_or_not", BOUNDS, ("preempt or not",)),
    Part(
        *("mixed criticality", 1, "campaigns.mcs_results", MCS, ("programs",)),
        arguments=("--table", "programs"),
    ),
    Part(
        *("computed against observed", 2, "campaigns.observed", OBSERVED),
        tables=(
            *("computed and observed", "pessimism", "other paths", "refined", "effect of L2"),
            *("observed on kzm", "observed on cubieboard", "hill climbing", "causes"),
        ),
        arguments=("--states", "1000", "--climb", "500"),
    ),
    Part("frequent operations", 2, "bench.ipc", IPC, ("operations",)),
    Part(
        *("branch predictor", 2, "campaigns.predicted_branches", OBSERVED),
        tables=("predicted branches", "predicted returns"),
        arguments=("--states", "10"),
    ),
    Part(
        *("mixed criticality", 2, "campaigns.mcs_results", MCS, ("latencies", "operations")),
        arguments=("--table", "latencies", "--table", "operations"),
    ),
    Part("bounds by preset", 2, "campaigns.kernel_bounds", BOUNDS, ("bounds",)),
    Part("wrong paths", 2, "campaigns.wrong_path_lines", "pipeline.md", ("wrong paths",)),
    Part(
        *("beside published figures", 3, "campaigns.papers", PAPERS, ("papers",)),
        reads=(IPC,),
    ),
    Part(
        *("mixed criticality", 3, "campaigns.mcs_results", MCS, ("messages", "short way")),
        arguments=("--table", "messages", "--table", "short way"),
        reads=(IPC,),
    ),
    Part(
        *("effort and factors", 4, "campaigns.analysis_effort", PAPERS),
        tables=("analysis effort", "factors"),
        reads=(PAPERS,),
    ),
)


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
    parts: Sequence[Part],
    analyses: Sequence[Task],
    version: str,
    folder: ResultFolder,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
) -> bool:
    """Run parts stage by stage, and write their tables in the order of ``parts``.

    ``analyses`` run beside the first stage. ``version``: of everything that parts read, besides
    ``Part.reads``. Returns whether all have succeeded.
    """
    succeeded = True
    for stage in sorted({part.stage for part in parts}):
        own_parts = [part for part in parts if part.stage == stage]
        tasks = [task_of(part, version) for part in own_parts]
        beside, analyses = list(analyses), ()
        report = progress(f"stage {stage}", len(tasks) + len(beside))
        outcomes = run_tasks(
            [*tasks, *beside], folder, report, scheduler=scheduler, workers=workers
        )
        for outcome in outcomes[: len(tasks)]:
            if outcome.failure is None:
                for section in outcome.result["sections"]:
                    replace(*section)
        succeeded &= not any(outcome.failure for outcome in outcomes)
    return succeeded


def task_of(part: Part, version: str) -> Task:
    """The task of a part, keyed by the content of everything that it reads."""
    argument = {
        "module": part.module,
        "arguments": part.arguments,
        "tables": [[part.page, table] for table in part.tables],
        "inputs": [version, *(file_digest(build.ROOT / "docs" / page) for page in part.reads)],
    }
    name = f"{part.name} ({', '.join(part.tables)})"
    return Task(name, "campaigns.paper:run_part", argument)


def inputs() -> str:
    """The versions of campaigns, programs and kernels."""
    found = [code_version(build.ROOT / folder) for folder in SOURCES]
    found += [file_digest(build.ROOT / file) for file in FILES]
    for name in BUILDS:
        files = sorted((build.ROOT / "build/bilby" / name).iterdir())
        found += [file.name + file_digest(file) for file in files if file.suffix in BUILT]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def analyse(argument: Mapping[str, Any]) -> Json:
    """An analysis of ``wcet sweep``, whose results go into the store; without tables.

    Raises PartFailed.
    """
    before = own()
    if error := run_analysis(argument)["error"]:
        raise PartFailed(error)
    return {"sections": [], "seconds": own() - before}


def analysis_tasks() -> Iterator[Task]:
    """The analyses of ``ANALYSES``."""
    for kernel, platform, arguments in ANALYSES:
        elf = build.ROOT / "build/bilby" / kernel / "kernel.elf"
        facts = elf.with_suffix(".facts")
        files = tuple((str(file), file_digest(file)) for file in (elf, facts))
        options = " ".join(arguments)
        one = Analysis(
            str(elf), kernel, platform, options, arguments, ("all",), (str(facts),), files
        )
        argument = {**asdict(one), "seconds": SECONDS}
        name = f"analysis of {' '.join((kernel, platform, *arguments))}"
        yield Task(name, "campaigns.paper:analyse", argument)


def progress(title: str, total: int) -> Callable[[Task, Outcome, str], None]:
    """A report of each task that ends."""
    ended, start = 0, time.monotonic()

    def report(task: Task, outcome: Outcome, dashboard: str) -> None:
        nonlocal ended
        ended += 1
        if ended == 1:
            print(f"{title}: dashboard {dashboard}", flush=True)
        at = f"{title}, {ended} of at most {total} after {time.monotonic() - start:,.0f} s"
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
    for name in BUILDS:
        print(f"build {name}", flush=True)
        build.kernel(name)
    build.recorder()
    parts = [part for part in PARTS if part.name in (options.only or names)]
    succeeded = evaluate(
        parts,
        [] if options.only else list(analysis_tasks()),
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
