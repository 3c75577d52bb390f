"""Published figures beside this model: ``python -m campaigns.calibration TRACE KERNEL.ELF``.

TRACE is a recording of the kernel's user-level tests on KZM. Prints the calibration table of
docs/results/validation.md: a cold copy of one KiB, the fast paths of IPC with warm caches, and the
cost of a miss for the shorter entries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median

from cache.classify import classify
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from loopbounds.proof.options import BoundOptions
from pipeline.charge import charge
from pipeline.native import SplitMix
from pipeline.pipeline_simulator import ExecutedInsn, PipelineMachine
from pipeline.timing_model import CoreProfile
from quoll.cfg.cfg import Block
from quoll.image.image import Image
from quoll.inlining.supergraph import Context, Supergraph, SuperNode
from quoll.intervals.strided_interval import ValueSet
from quoll.recordings.follow import follow
from quoll.recordings.trace import Trace
from quoll.results.results_store import ResultsStore
from tests.testing.cache.graphs import CODE, DATA, Program, at, pool
from tests.testing.pipeline.runs import KZM, QUIET, WarmCache, timing
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.run import AnalysisRun
from wcet.analysis.stage_times import StageLog
from wcet.commands.timing import times
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import StartContents, by_path, executed, moments, random_machine
from wcet.platforms.platform_model import Platform, load

__all__ = ["COPIES", "copy"]

COPIES = {
    "ldm and stm of 8 words": "ldm r4!, {r0-r3, r5-r8}\nstm r9!, {r0-r3, r5-r8}\n" * 32,
    "ldr and str": "ldr r0, [r4], #4\nstr r0, [r9], #4\n" * 256,
}
SOURCE, TARGET = DATA, DATA + 0x10000
STATES = 20


def copy(text: str, contents: StartContents) -> tuple[int, int]:
    """Cycles of the bound and of the machine, most over states, for straight-line copying."""
    platform = load("kzm")
    insns = tuple(at(insn, CODE + 4 * i) for i, insn in enumerate(pool(text)))
    values: dict[tuple[int, int], ValueSet | None] = {}
    steps: list[ExecutedInsn] = []
    place = {True: SOURCE, False: TARGET}
    for index, insn in enumerate(insns):
        assert insn.memory is not None
        loads = insn.memory.access.name == "LOAD"
        values[0, index] = ValueSet.of(place[loads])
        steps.append(ExecutedInsn(insn, True, False, place[loads]))
        place[loads] += insn.memory.size * insn.memory.count
    graph = Supergraph(
        (Context(None, None, CODE),),
        (SuperNode(0, Block(0, insns)),),
        (),
        ((),),
        ((),),
        0,
        (0,),
        (),
    )
    program = Program(graph, values)
    caches = KZM.hierarchy(48)
    classes = classify(graph, program, caches)
    costs = charge(
        graph, classes, program, caches, timing(CoreProfile.WCET, QUIET), exception=False
    )
    most = 0
    for state in range(STATES):
        machine = random_machine(platform, steps, contents, SplitMix(state))
        machine.buffer.clear()
        machine.fills.clear()
        machine.memory.free = 0
        list(moments(machine, steps, exception=False))
        most = max(most, machine.finished)
    return costs.costs.node_cycles(0) + sum(costs.costs.start), most


def recorded(
    trace: Path, kernel: Path, entry: str, platform: Platform
) -> list[tuple[Walk, list[ExecutedInsn], int]]:
    """Every whole recorded path of an entry, with its steps and its charge."""
    options = AnalysisOptions(
        entries=(entry,), platform="kzm", l2=None, facts=(), neighbouring_facts=True, exits=(),
        solver="highs", time_limit=60.0, bounds=BoundOptions(store=ResultsStore.of_user()),
    )  # fmt: skip
    analysis = AnalysisRun.begin(kernel, options, StageLog(verbose=False))
    ((name, address),) = analysis.entries.items()
    timed = times(analysis, name, address)
    found = []
    for executions in by_path(Trace.read(trace)).get(address, []):
        execution = executions[0]
        visits = follow(timed.graph, analysis.image, execution.pcs)
        path = Walk.of(timed.graph, visits)
        first: dict[int, int] = {}
        for access in execution.accesses():
            first[access.index] = min(access.addr, first.get(access.index, access.addr))
        charged = path_cycles(timed.charges.costs, (PathStep(v.node, v.edge) for v in visits))
        found.append((path, executed(path, first, platform, Random(1)), charged))
    return found


def run(machine: PipelineMachine, steps: Sequence[ExecutedInsn]) -> tuple[int, int, int, int]:
    """Cycles, instruction misses, data misses, words stored past the cache."""
    seen = list(moments(machine, steps, exception=True))
    return (
        machine.finished,
        sum(m.fetch_misses for m in seen),
        sum(m.load_misses for m in seen),
        sum(m.stored_words for m in seen),
    )


def warm(platform: Platform, steps: Sequence[ExecutedInsn]) -> int:
    """Cycles if all accesses hit and none is pending."""
    random = SplitMix(1)
    machine = random_machine(platform, steps, StartContents.COLD, random)
    fresh = type(machine)(machine.core, machine.memory, machine.chip, aligned=True)
    fresh.memory.free = 0
    fresh.chip.prefetch_bytes = 0
    fresh.chip.fetch.cache = WarmCache(platform.hierarchy.l1i, machine.chip.dcache.policy, random)
    fresh.chip.dcache = WarmCache(platform.hierarchy.l1d, machine.chip.dcache.policy, random)
    return run(fresh, steps)[0]


def main() -> int:
    trace, kernel = Path(sys.argv[1]), Path(sys.argv[2])
    for name, text in COPIES.items():
        for contents in (StartContents.COLD, StartContents.POLLUTED):
            bound, seen = copy(text, contents)
            print(f"copy, {name}, {contents.value}: bound {bound:,}, machine {seen:,}")
    platform = load("kzm")
    for name in ("fastpath_call", "fastpath_reply_receive"):
        print_fast_path(name, platform, kernel, recorded(trace, kernel, "syscall", platform))
    for entry in ("undefined", "prefetch-abort", "data-abort", "interrupt"):
        paths = recorded(trace, kernel, entry, platform)
        rows = []
        for number, (_, steps, _) in enumerate(paths):
            for state in range(STATES):
                draws = SplitMix(100 * number + state)
                machine = random_machine(platform, steps, StartContents.POLLUTED, draws)
                rows.append((*run(machine, steps), len(steps), warm(platform, steps)))
        cycles, fetches, loads, words, insns, hits = max(rows)
        print(
            f"{entry}: most {cycles:,} cycles ({cycles / 532:.1f} us), {insns} instructions, "
            f"{fetches} I-misses, {loads} D-misses, {words} words stored past the cache; "
            f"{hits:,} cycles when all hit; "
            f"{(cycles - hits) / (fetches + loads + words):.0f} cycles for each of these"
        )
    return 0


def print_fast_path(
    name: str, platform: Platform, kernel: Path, paths: list[tuple[Walk, list[ExecutedInsn], int]]
) -> None:
    """Print executions that end in a fast path, without the slow path behind it."""
    image = Image.load(kernel)
    symbol, slow = image.symbol(name), image.symbol("syscall_invoke")
    assert symbol is not None
    assert slow is not None
    figures = []
    for path, steps, charged in paths:
        places = {insn.addr for insn in path.insns}
        if symbol.addr in places and slow.addr not in places and len(steps) < 300:
            figures.append((warm(platform, steps), len(steps), charged))
    if figures:
        cycles = [c for c, _, _ in figures]
        print(
            f"{name}, warm: {len(figures)} paths, {min(cycles)} to {max(cycles)} cycles, median "
            f"{median(cycles):.0f}; {figures[cycles.index(min(cycles))][1]} instructions in the "
            f"shortest; charged cold {min(c for _, _, c in figures):,}"
        )


if __name__ == "__main__":
    sys.exit(main())
