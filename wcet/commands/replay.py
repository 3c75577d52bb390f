"""``wcet replay``: recorded executions on the concrete machine, against the bounds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from loopbounds.budgets.budget import Budget
from loopbounds.proof.options import BoundOptions
from quoll.errors import InputError, UsageError
from quoll.facts.guidance import PathStartFact
from quoll.recordings.address_trace import read_recording
from quoll.recordings.own_objects import refuse_hits
from quoll.recordings.trace import Execution
from wcet.analysis.analysis import analyse
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.raw_memory import add_memory, loaded_memory
from wcet.analysis.result import AnalysisResult
from wcet.analysis.seen_executions import SeenExecution, SeenExecutions
from wcet.analysis.stage_times import StageLog
from wcet.atomic import publish
from wcet.executions.path_replay import (
    PathReplay,
    ReplaySubject,
    TimelineStep,
    by_path,
    initial,
    moments,
    replay_paths,
    takes_exception,
)
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.recorded_paths import cut
from wcet.project_options import given_for
from wcet.request import (
    add_cache,
    add_command,
    add_count,
    add_entries,
    add_facts,
    add_json,
    add_set,
    add_sources,
    add_vivu,
    parameters,
    results_store,
    vivu_of,
)

__all__ = ["EntryReplay", "add_to", "summarise"]

SCHEMA_VERSION = 1
EXCEEDED = 1  # exit status when an execution exceeds its bound

DESCRIPTION = """\
Replay recorded executions of a kernel on a concrete machine, and compare with the bounds.

TRACE is a recording by kernels/recorder of the same KERNEL.ELF. Every entry that it contains is
analysed as 'wcet analyse' does. Each different path is then executed by a cycle-accurate twin of
the board: caches with all their ways and their real replacement policies, one memory bus, a write
buffer, the core's documented (nominal) cycles. It starts from many states: cold caches, caches
full of another program's dirty lines, mixtures, outstanding accesses, any replacement counter.

Two comparisons are made, and the exit status is 1 if either fails:
  bound    the proven bound of the entry, at least every execution
    charged  the charge of the executed path, at least the same
A text file of executed addresses with measured cycles is compared, too ('wcet help
hardware-traces').
The longest execution of each entry is stored (--cache): with it, 'wcet analyse' prints the bound as
an interval, and 'wcet check' rejects a lower bound.

Ratios above 1 are overestimation: by a path that is not the worst one, and by the models of caches
and pipeline. The column 'charged' separates the two: it is the charge of the longest execution.
"""

EXAMPLES = """\
examples:
  kernels/bilby/run kzm-after tests -plugin build/recorder/librecorder.so,out=tests.trace
  wcet replay tests.trace --kernel build/bilby/kzm-after/kernel.elf
  wcet replay tests.trace --kernel kernel.elf --timing interrupt | less
  wcet replay tests.trace --kernel build/bilby/kzm-before/kernel.elf --set queue_length=256 ...
  wcet replay tests.trace --kernel kernel.elf --states 50 --json - | jq .entries.syscall.ratio
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    text = "replay recorded executions and compare them with the bounds"
    p = add_command(commands, "replay", text, DESCRIPTION, EXAMPLES, run)
    p.add_argument("trace", type=Path, metavar="TRACE", help="a recording by kernels/recorder")
    p.add_argument(
        "--kernel", type=Path, required=True, metavar="KERNEL.ELF", help="the executed kernel"
    )
    p.add_argument("--platform", metavar="NAME|FILE.toml", help="as for 'wcet analyse'")
    facts = (
        "loop bounds and constraints; repeatable; kernel.facts in the folder of kernel.elf is "
        "read too"
    )
    add_entries(p)
    add_facts(p, facts, neighbouring=False)
    p.set_defaults(end=[])
    add_sources(p)
    add_memory(p)
    add_vivu(p)
    add_set(p, "every name needs one")
    add_count(p, "--states", 1, "initial states per path (default: 5)", high=1 << 20, default=5)
    add_count(p, "--seed", 0, "of everything drawn (default: 1)", default=1)
    p.add_argument(
        "--l2", choices=["on", "off"],
        help="as for 'wcet analyse'; the machine then misses in it on every access",
    )  # fmt: skip
    p.add_argument(
        "--real-l2", action="store_true",
        help="the machine hits on lines that an enabled L2 holds: executions closer to the "
        "board's, a weaker test of the bounds",
    )  # fmt: skip
    p.add_argument(
        "--timing", metavar="ENTRY",
        help="print the replay of ENTRY that took most, instruction by instruction",
    )  # fmt: skip
    add_json(p)
    add_cache(p)


@dataclass(frozen=True, slots=True)
class EntryReplay:
    """All replays of one entry, in cycles; ``margins``: charged over observed, path by path."""

    name: str
    bound: int
    executions: int
    most: int  # observed cycles
    charged: int | None  # for the slowest path, interrupted at the test where it was cut
    paths: int  # distinct paths, also beginnings of paths up to a test for interrupts
    margins: tuple[float, ...]  # ascending
    exceeding: tuple[PathReplay, ...]  # above the bound, or above the charge of their path
    timing: tuple[TimelineStep, ...] = ()  # the slowest replay, if requested

    @property
    def ratio(self) -> float:
        """The bound over the most observed cycles."""
        return self.bound / self.most

    @property
    def percentile_99(self) -> float:
        """The 99th percentile of the margins."""
        if len(self.margins) == 1:
            return self.margins[0]
        return quantiles(self.margins, n=100, method="inclusive")[-1]


def summarise(
    name: str, bound: int, paths: Sequence[PathReplay], timing: tuple[TimelineStep, ...] = ()
) -> EntryReplay:
    """The figures of one entry."""
    longest = max(paths, key=lambda p: p.most)
    return EntryReplay(
        name,
        bound,
        sum(p.executions for p in paths),
        longest.most,
        longest.interrupted,
        len(paths),
        tuple(sorted(p.ratio for p in paths if p.ratio is not None)),
        tuple(p for p in paths if p.exceeds(bound)),
        timing,
    )


def run(options: argparse.Namespace) -> int:
    """Analyse, replay, compare; returns the exit status."""
    given_for(options)
    wanted = analysis(options).showing_tests
    image = wanted.loaded_memory.image(options.kernel)
    trace = read_recording(options.trace, image)
    if not by_path(trace):
        raise InputError(
            f"{options.trace} has no execution that ran to its end",
            hint="record a program that makes system calls",
        )
    stages = StageLog(verbose=not options.quiet)
    result = analyse(options.kernel, wanted, stages)
    refuse_hits(result.image, result.assumptions, trace, options.trace.name)
    recorded = by_path(trace.from_entries({entry.address for entry in result.entries.values()}))
    for label in result.facts:
        if isinstance(label.fact, PathStartFact):
            raise UsageError(
                f"{label.source}: '{label.text}', but recorded executions start at entries",
                hint="replay without this fact",
            )
    for error in result.unbounded.values():
        raise error
    for name, entry in result.entries.items():
        if entry.parametric:
            raise UsageError(
                f"the bound of entry {name} is a function of {', '.join(entry.parametric.names)}",
                hint="give each a number that no execution exceeds: "
                + " ".join(f"--set {name}=N" for name in entry.parametric.names),
            )
    if options.timing is not None and options.timing not in result.entries:
        raise UsageError(
            f"--timing {options.timing}: no such entry", hint=f"known: {', '.join(result.entries)}"
        )
    missing = recorded.keys() - {entry.address for entry in result.entries.values()}
    if missing and (not options.entry or len(missing) == len(recorded)):
        raise InputError(
            f"executions start at {', '.join(map(hex, sorted(missing)))}, which is no entry",
            hint="was this kernel recorded? --entry names its entries",
        )
    found = [
        replay_entry(result, name, recorded[entry.address], options, stages)
        for name, entry in result.entries.items()
        if entry.address in recorded
    ]
    stages.done()
    publish(
        options,
        [(options.json, lambda: to_json(result, found, options))],
        lambda: to_text(result, found, options),
    )
    remember(wanted, result, found, options.trace)
    return EXCEEDED if any(entry.exceeding for entry in found) else 0


def remember(
    wanted: AnalysisOptions, result: AnalysisResult, found: Sequence[EntryReplay], trace: Path
) -> None:
    """Store the longest execution of each entry."""
    store = SeenExecutions(wanted.store, result.image, result.platform, result.located, wanted)
    for one in found:
        seen = SeenExecution(one.most, one.charged, f"recording {trace.name}")
        store.add(one.name, result.entries[one.name].address, seen)


def analysis(options: argparse.Namespace) -> AnalysisOptions:
    """The default request of ``wcet analyse``: every entry of the platform, or some of them."""
    store = results_store(options)
    return AnalysisOptions(
        entries=tuple(options.entry) or ("all",),
        exits=tuple(options.end),
        platform=options.platform,
        l2=None if options.l2 is None else options.l2 == "on",
        facts=tuple(options.facts),
        bounds=BoundOptions(store=store, models=None, budget=Budget(seconds=60)),
        store=store,
        vivu=vivu_of(options),
        loaded_memory=loaded_memory(options),
        parameters=parameters(options.set),
        sources=options.source_dir or Path(),
    )


def replay_entry(
    result: AnalysisResult,
    name: str,
    paths: Sequence[Sequence[Execution]],
    options: argparse.Namespace,
    stages: StageLog,
) -> EntryReplay:
    """Replay all paths of one entry."""
    entry = result.entries[name]
    subject = ReplaySubject(
        name, entry.paths, result.image, result.platform, real_l2=options.real_l2
    )

    def progress(done: int) -> None:
        if done % 50 == 0:
            stages.say(f"replay: {name}: {done} of {len(paths)} paths")

    with stages.stage("replay", name):
        replayed = replay_paths(subject, paths, options.states, options.seed, progress)
    timing = timeline(subject, paths, replayed, options.seed) if options.timing == name else ()
    return summarise(name, entry.cycles, replayed, timing)


def timeline(
    subject: ReplaySubject,
    paths: Sequence[Sequence[Execution]],
    replayed: Sequence[PathReplay],
    seed: int,
) -> tuple[TimelineStep, ...]:
    """The slowest replay again, instruction by instruction."""
    most = max(replayed, key=lambda r: r.most)
    recorded = list(cut(subject.paths, subject.image, paths, subject.width))[most.number]
    path = Walk.of(recorded.paths.graph, recorded.visits)
    machine, steps, _ = initial(subject, path, recorded, most.number, most.state, seed)
    exception = takes_exception(subject, recorded)
    found = tuple(moments(machine, steps, exception=exception))
    assert machine.finished == most.most, "both machines agree"
    return found


def to_text(
    result: AnalysisResult, found: Sequence[EntryReplay], options: argparse.Namespace
) -> str:
    """One row per entry, then the exceeding paths."""
    rows = [
        f"kernel    {result.kernel}",
        f"platform  {result.platform.name}; {options.states} initial states per path, "
        f"seed {options.seed}; nominal cycles",
        "",
        f"{'entry':<16}{'executions':>11}{'paths':>7}{'most':>12}{'charged':>12}{'bound':>12}{'ratio':>8}"
        f"   charged/seen per path: {'least':>6}{'median':>8}{'99 %':>8}",
    ]
    rows += [
        f"{e.name:<16}{e.executions:>11,}{e.paths:>7,}{e.most:>12,}"
        f"{'-' if e.charged is None else format(e.charged, ','):>12}{e.bound:>12,}"
        f"{e.ratio:>8.2f}{'':>26}{e.margins[0]:>6.2f}{median(e.margins):>8.2f}"
        f"{e.percentile_99:>8.2f}"
        for e in found
    ]
    for entry in found:
        if entry.timing:
            rows += ["", f"the replay of {entry.name} that took most, {entry.most:,} cycles",
                     f"{'cycle':>10}{'takes':>8}"]  # fmt: skip
            rows += [
                f"{m.at:>10,}{m.cycles:>8,}  {m.addr:08x}  {m.text:<34.34}  {m.reasons}".rstrip()
                for m in entry.timing
            ]
        rows += [
            f"EXCEEDED  {entry.name}: {p.most:,} cycles {seen_text(p)}; "
            f"{charge_text(p)} this path of {p.instructions:,} instructions, "
            f"bound {entry.bound:,}"
            for p in entry.exceeding
        ]
    return "\n".join(rows) + "\n"


def seen_text(path: PathReplay) -> str:
    """Where the cycles of a path were seen."""
    return "measured" if path.contents is None else f"seen from {path.contents.value} caches"


def charge_text(path: PathReplay) -> str:
    """The charges of a path."""
    return "nothing charged for" if path.charged is None else f"{path.charged:,} charged for"


def to_json(
    result: AnalysisResult, found: Sequence[EntryReplay], options: argparse.Namespace
) -> str:
    """The replays as JSON."""
    entries: dict[str, Any] = {
        e.name: {
            "executions": e.executions,
            "paths": e.paths,
            "most_cycles": e.most,
            "most_charged_cycles": e.charged,
            "bound_cycles": e.bound,
            "ratio": e.ratio,
            "charged_over_seen": {
                "least": e.margins[0],
                "median": median(e.margins),
                "percentile_99": e.percentile_99,
            },
            "timing": [
                {"cycle": m.at, "takes": m.cycles, "address": m.addr, "text": m.text,
                 "fetch_misses": m.fetch_misses, "load_misses": m.load_misses,
                 "stored_words": m.stored_words}
                for m in e.timing
            ],
            "exceeding": [
                {"cycles": p.most, "charged": p.charged, "caches": p.contents and p.contents.value,
                 "instructions": p.instructions}
                for p in e.exceeding
            ],
        }
        for e in found
    }  # fmt: skip
    document = {
        "schema_version": SCHEMA_VERSION,
        "kernel": {"path": str(result.kernel), "sha256": result.image.sha256},
        "platform": result.platform.name,
        "states": options.states,
        "seed": options.seed,
        "entries": entries,
    }
    return json.dumps(document, indent=1) + "\n"
