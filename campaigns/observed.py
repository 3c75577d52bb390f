"""Worst cases computed and observed: ``make campaign-observed ARGS=--write``.

The shipped kernel runs the programs that steer into its longest paths, in QEMU with the recorder.
Each recorded path of an entry is replayed on the concrete machine of the board from a few initial
states. The paths that take most are replayed again from ``--states`` states: polluted, cold and
mixed caches, each policy of replacement, pending accesses, and the level-2 cache as a cache with
contents. From the slowest of a few more states, ``--climb`` proposals change the state, and choose
other recorded operands, towards more cycles. Table 2 and figures 8 and 9 of EuroSys 2012 stand
beside these results, and the causes of the ratios (``campaigns.causes``).

With ``--write`` the tables in ``docs/results/observed.md`` are replaced. Exits with status 1 if an
execution takes longer than its bound, or than the charge of its path.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from campaigns.causes import Beyond, Causes, beyond, causes
from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import KERNEL, KERNELS, analysis, sizes
from campaigns.papers import Entry, published
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.native import CompiledTrace, Instructions, SplitMix
from pipeline.pipeline_simulator import PipelineMachine
from quoll.facts.entry_invariants import InvariantFact
from quoll.recordings.trace import Execution, Trace
from tests.testing.harness import build, qemu
from tests.testing.pipeline.climbed import ClimbedState, climb
from tests.testing.pipeline.sampled import sample
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.analysis.stage_times import StageLog
from wcet.executions.path_replay import (
    ReplayPath,
    ReplaySubject,
    StartContents,
    by_path,
    executed,
    first_addresses,
    nominal_core,
    random_machine,
    takes_exception,
    taking_the_exception,
)
from wcet.executions.recorded_paths import RecordedPath, cut
from wcet.proving.prove import prove_facts
from wcet.proving.verdict import FactVerdict
from wcet.refinement.refine import refine
from wcet.request import add_analysis, requested

__all__ = ["Observed", "main", "observed"]

PROGRAMS = ("steer", "latency")
INVARIANT = "invariant woken: woken = 0\n"  # of src/sched_benno.c, between entries
FEW, CLIMBED = 20, 3  # states of every path; paths that are replayed from all states
SOURCES = 2  # executions of a path with different addresses
BLOCKS = 4  # of a worst path that no program takes
STARTS, OPERANDS = 24, 8  # of a climb: states, and executions of its path
SEED = 2026
REFINED = "interrupt"  # the entry whose worst path depends on the invariant
SECONDS = 60.0  # of refinement


@dataclass(frozen=True, slots=True)
class Observed:
    """An entry in cycles: its bound, the most observed, and the same of one path alone.

    ``path``: the charge and the most observed cycles of the path that takes most among those that
    no test for interrupts cuts; None if all are cut. ``sampled``: the most without climbing.
    ``causes``: of the bound, on the path that takes most among those with a charge. ``beyond``: the
    blocks on which its worst path spends most beyond this one.
    """

    bound: int
    most: int
    path: tuple[int, int] | None
    exceeded: bool
    sampled: int
    causes: Causes | None
    beyond: tuple[Beyond, ...]

    @property
    def ratio(self) -> float:
        """The bound over the most observed cycles."""
        return self.bound / self.most

    @property
    def model(self) -> float | None:
        """The charge of the path over its most observed cycles."""
        return None if self.path is None else self.path[0] / self.path[1]


def recorded(build_name: str) -> dict[int, list[list[Execution]]]:
    """The executions of all programs, by entry and then by path."""
    found: dict[int, list[list[Execution]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            qemu.record(path := Path(folder) / program, build_name, program)
            for entry, paths in by_path(Trace.read(path)).items():
                found.setdefault(entry, []).extend(paths)
    return found


def observed(
    result: AnalysisResult,
    recordings: dict[int, list[list[Execution]]],
    states: int,
    proposals: int,
) -> dict[str, Observed]:
    """All recorded entries of one analysis."""
    found = {}
    for name, entry in result.entries.items():
        if entry.address in recordings:
            subject = ReplaySubject(name, entry.paths, result.image, result.platform, real_l2=True)
            recorded = recordings[entry.address]
            found[name] = longest(subject, entry, recorded, states, proposals)
            print(f"    {name}: {found[name]}", flush=True)
    return found


def longest(
    subject: ReplaySubject,
    entry: EntryResult,
    recordings: Sequence[Sequence[Execution]],
    states: int,
    proposals: int,
) -> Observed:
    """All paths from a few states, and those that take most from ``states`` and by climbing."""
    paths = cut(subject.paths, subject.image, recordings, subject.width)
    core = nominal_core(subject.platform.timing)
    known = Instructions(core, aligned=subject.platform.hierarchy.aligned)
    first = [most_cycles(subject, path, FEW, known) for path in paths]
    order = sorted(range(len(paths)), key=first.__getitem__, reverse=True)
    whole = next((n for n in order if paths[n].complete), None)
    chosen = dict.fromkeys([*order[:CLIMBED], *([] if whole is None else [whole])])
    drawn = {n: max(first[n], most_cycles(subject, paths[n], states, known)) for n in chosen}
    climbed = {n: climbed_state(subject, paths[n], proposals, known) for n in chosen}
    most = {n: max(drawn[n], climbed[n].most) for n in chosen}
    charges = {n: charge(paths[n]) for n in chosen}
    exceeded = max(most.values()) > entry.cycles or any(
        paths[n].complete and most[n] > charges[n] for n in chosen
    )
    alone = None if whole is None else (charges[whole], most[whole])
    slowest = max(chosen, key=most.__getitem__)
    parts = causes(entry.cycles, paths[slowest], climbed[slowest])
    more = beyond(entry, paths[slowest], subject.image, BLOCKS)
    sampled = max(drawn.values())
    return Observed(entry.cycles, max(most.values()), alone, exceeded, sampled, parts, more)


def charge(path: RecordedPath) -> int:
    """The cycles that the analysis charges for a path."""
    return path_cycles(path.paths.costs, (PathStep(v.node, v.edge) for v in path.visits))


def climbed_state(
    subject: ReplaySubject, recording: RecordedPath, proposals: int, known: Instructions
) -> ClimbedState:
    """The slowest state and operands of a path that climbing finds."""
    random = Random(f"{SEED} climb {subject.name}")
    starts = []
    for number in range(STARTS):
        source = recording.sources[number % min(OPERANDS, len(recording.sources))]
        starts.append(started(subject, recording, source, list(StartContents), random, known))
    return climb(starts, proposals, random)


def started(
    subject: ReplaySubject,
    recording: RecordedPath,
    source: tuple[Execution, int],
    contents: Sequence[StartContents],
    random: Random,
    known: Instructions,
) -> tuple[PipelineMachine, CompiledTrace]:
    """One execution of a path, and the machine in a random state before it."""
    path, platform = ReplayPath.of(recording.paths.graph, recording.visits), subject.platform
    draws = SplitMix(random.getrandbits(64))
    accesses = first_addresses(source[0], source[1], path)
    steps = executed(path, accesses, platform, draws)
    machine = random_machine(platform, steps, draws.choice(contents), draws, real_l2=True)
    machine.clock = taking_the_exception(known.core) if takes_exception(subject, recording) else 0
    return machine, CompiledTrace.of(known, steps)


def most_cycles(
    subject: ReplaySubject, recording: RecordedPath, states: int, known: Instructions
) -> int:
    """The most cycles of a path from random states, with some of its recordings."""
    random, most = Random(f"{SEED} {subject.name}"), 0
    entry = subject.platform.timing.entry
    for source in recording.sources[:SOURCES]:
        cold = (StartContents.COLD,)
        machine, trace = started(subject, recording, source, cold, random, known)
        most = max(most, sample(machine, trace, entry, states, SEED, one_way=False).most)
    return most


def worst(entry: Entry, found: dict[str, Observed]) -> Observed:
    """The one of our entries that corresponds to a published one and has the largest bound."""
    return max((found[name] for name in entry.ours if name in found), key=lambda row: row.bound)


def microseconds(cycles: float, megahertz: float) -> str:
    return f"{cycles / megahertz:,.1f}"


def computed_and_observed(
    before: AnalysisResult, off: dict[str, Observed], on: dict[str, Observed], megahertz: float
) -> str:
    """Table 2: ours above, the published row below."""
    head = (
        "entry", "kernel", "before: computed", "after, L2 off: computed", "observed", "ratio",
        "after, L2 on: computed", "observed", "ratio",
    )  # fmt: skip
    rows = []
    for entry in published().entries:
        fixed = max(before.entries[name].cycles for name in entry.ours)
        ours = [microseconds(fixed, megahertz)]
        for found in (off, on):
            row = worst(entry, found)
            seen = microseconds(row.most, megahertz)
            ours += [microseconds(row.bound, megahertz), seen, f"{row.ratio:.2f}"]
        theirs = [f"{entry.microseconds[0]:,.1f}"]
        for computed, measured in zip(entry.microseconds[1:], entry.observed, strict=True):
            theirs += [f"{computed:,.1f}", f"{measured:,.1f}", f"{computed / measured:.2f}"]
        rows += [[entry.name, "bilby", *ours], ["", "seL4", *theirs]]
    return markdown(head, rows)


def pessimism(off: dict[str, Observed], on: dict[str, Observed]) -> str:
    """Figure 8: the analysis on the observed path alone, above the observation, in percent."""
    head = ("entry", "L2 off: charged", "observed", "above", "L2 on: charged", "observed", "above")
    rows = []
    for name in off:
        cells = [name]
        for row in (off[name], on[name]):
            if row.path is None:
                cells += ["", "", ""]
            else:
                charged, most = row.path
                cells += [f"{charged:,}", f"{most:,}", f"{charged / most - 1:.0%}"]
        rows.append(cells)
    return markdown(head, rows)


def effect_of_l2(off: dict[str, Observed], on: dict[str, Observed]) -> str:
    """Figure 9, as far as the machine has it: observed with the L2 on, over observed without."""
    rows = [
        (name, f"{off[name].most:,}", f"{on[name].most:,}", f"{on[name].most / off[name].most:.2f}")
        for name in off
    ]
    return markdown(("entry", "L2 off", "L2 on", "on / off"), rows)


def ratios(board: dict[str, Observed]) -> str:
    """Bound, observed and ratio of a board's own platform."""
    rows = [
        (name, f"{row.bound:,}", f"{row.most:,}", f"{row.ratio:.2f}",
         "" if row.model is None else f"{row.model:.2f}")
        for name, row in board.items()
    ]  # fmt: skip
    return markdown(("entry", "computed", "observed", "ratio", "of it, the model"), rows)


def gains(found: dict[str, dict[str, Observed]]) -> str:
    """The most observed cycles without and with climbing, of each platform."""
    rows = []
    for title, entries in found.items():
        for name, row in entries.items():
            more = row.most / row.sampled - 1
            rows.append((title, name, f"{row.sampled:,}", f"{row.most:,}", f"{more:.1%}"))
    return markdown(("platform", "entry", "random states", "climbed", "gain"), rows)


def parts(found: dict[str, dict[str, Observed]]) -> str:
    """The causes of the difference between bound and observation, of each platform."""
    head = (
        "platform", "entry", "computed", "other paths", "fetches", "data", "pipeline", "observed",
        "with one way",
    )  # fmt: skip
    rows = []
    for title, entries in found.items():
        for name, row in entries.items():
            if row.causes is not None:
                cells = (f"{cycles:,}" for cycles in row.causes.row)
                rows.append((title, name, f"{row.bound:,}", *cells))
    return markdown(head, rows)


def unexecuted(found: dict[str, Observed]) -> str:
    """The blocks on which the worst paths spend most beyond the executed ones."""
    head = ("entry", "block", "on the worst path", "executed", "cycles more")
    rows = [
        (name, f"`{one.place}`", f"{one.worst:,}", f"{one.executed:,}", f"{one.cycles:,}")
        for name, row in found.items()
        for one in row.beyond
    ]
    return markdown(head, rows)


@dataclass(frozen=True, slots=True)
class Refined:
    """The bounds of ``REFINED`` under ``INVARIANT`` by level-2 cache; ``verdict``: on it."""

    verdict: str
    bounds: dict[str, int]

    def of(self, level2: str, found: dict[str, Observed]) -> dict[str, Observed]:
        """``found`` with the refined bound, if the invariant is proved."""
        if self.verdict != FactVerdict.PROVED.value:
            return found
        row = found[REFINED]
        return {**found, REFINED: replace(row, bound=min(row.bound, self.bounds[level2]))}


def refined(seconds: float) -> Refined:
    """Judge ``INVARIANT``, which is about no cache, and refine with either level-2 cache."""
    kernel = KERNELS / "kzm-after/kernel.elf"
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "invariants.facts"
        facts.write_text(INVARIANT, encoding="utf-8")
        stages = StageLog(verbose=False)
        judged = prove_facts(kernel, invariant_options(facts, "off", ["all"]), stages).facts
        [verdict] = (one.verdict for one in judged if isinstance(one.fact, InvariantFact))
        bounds = {}
        for level2 in ("off", "on"):
            options = invariant_options(facts, level2, [REFINED])
            bounds[level2] = refine(kernel, options, seconds, stages).cycles
    return Refined(verdict.value, bounds)


def invariant_options(facts: Path, level2: str, entries: list[str]) -> AnalysisOptions:
    """The options of an analysis with facts, stored beside them."""
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    arguments = ["--platform=kzm-paper", f"--l2={level2}", f"--facts={facts}"]
    return requested(parser.parse_args([*arguments, f"--cache={facts.parent}/store"]), entries)


def refined_rows(found: dict[str, dict[str, Observed]], more: Refined) -> str:
    """The bounds of ``REFINED`` without and with refinement."""
    rows = []
    for level2, bound in more.bounds.items():
        row = found[level2][REFINED]
        cells = (f"{row.bound:,}", f"{bound:,}", f"{row.most:,}", f"{bound / row.most:.2f}")
        rows.append((REFINED, PLATFORMS[level2], more.verdict, *cells))
    head = ("entry", "platform", "`woken = 0`", "computed", "refined", "observed", "ratio")
    return markdown(head, rows)


PLATFORMS = {  # titles of the tables
    "off": "`kzm-paper`, L2 off",
    "on": "`kzm-paper`, L2 on",
    "kzm": "`kzm`",
    "cubieboard": "`cubieboard`",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=10_000, help="of the paths that take most")
    parser.add_argument("--climb", type=int, default=2_000, help="proposals of each climb")
    add_write(parser, "docs/results/observed.md")
    options = parser.parse_args()
    for board, preset in (("kzm", "before"), ("kzm", "after"), ("cubieboard", "after")):
        build.kernel(f"{board}-{preset}", *KERNEL)
    before = analysis("kzm", "kzm-paper", "before", sizes())
    tables, exceeded = {}, False
    kzm, a8 = (recorded(f"{board}-after") for board in ("kzm", "cubieboard"))
    found = {}
    for name, board, platform, level2, paths in (
        ("off", "kzm", "kzm-paper", "off", kzm),
        ("on", "kzm", "kzm-paper", "on", kzm),
        ("kzm", "kzm", "kzm", "off", kzm),
        ("cubieboard", "cubieboard", "cubieboard", "on", a8),
    ):
        print(f"{board}-after under {platform}, L2 {level2}", flush=True)
        result = analysis(board, platform, "after", {}, level2)
        found[name] = observed(result, paths, options.states, options.climb)
        exceeded |= any(row.exceeded for row in found[name].values())
    megahertz = before.platform.clock_hz / 1e6
    off, on = found["off"], found["on"]
    more = refined(SECONDS)
    rows = {level2: more.of(level2, found[level2]) for level2 in more.bounds}
    exceeded |= any(row[REFINED].most > row[REFINED].bound for row in rows.values())
    tables["computed and observed"] = computed_and_observed(
        before, rows["off"], rows["on"], megahertz
    )
    tables["pessimism"] = pessimism(off, on)
    tables["other paths"] = unexecuted(off)
    tables["refined"] = refined_rows(found, more)
    tables["effect of L2"] = effect_of_l2(off, on)
    tables["observed on kzm"] = ratios(found["kzm"])
    tables["observed on cubieboard"] = ratios(found["cubieboard"])
    titled = {title: found[name] for name, title in PLATFORMS.items()}
    tables["hill climbing"], tables["causes"] = gains(titled), parts(titled)
    for title, table in tables.items():
        print(f"\n{title}\n\n{table}")
    write(options, "results/observed.md", tables)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
