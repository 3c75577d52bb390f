"""Cycles of messages, signals and interrupts: ``python -m bench.ipc [--write]``.

Each preset of the kernel runs ``pingpong.elf`` on each board in QEMU, recorded by kernels/recorder.
A round is two system calls that alternate, the same two paths at least 32 times; in the last round
an interrupt precedes each of them. The concrete machine of the platform (``wcet replay``) then
executes every path, since the emulator has no timing:

    first    the caches are empty, or full of another program's dirty lines, or a mixture; accesses
             are under way: mean and standard deviation over initial states
    again    the round has just been executed: the same, for the median of four more rounds

Cycles are nominal, of the kernel alone: instructions of threads are not recorded. Beside them are
the bound of the path, for any content of the caches, and the bound of its entry, over all paths. If
a path passes preemption points, its bound is the sum over its segments. The analysis inlines every
call: a function summary would charge the longest path of the callee instead. Without options, only
``mcs`` has enough contexts for summaries.
``--write`` puts the table into ``kernels/bilby/docs/ipc.md``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import mean, median, stdev

from cache.policy import ReplacementPolicy
from campaigns.documented import add_write, markdown, write
from campaigns.kernel_bounds import INLINED, KERNEL, sizes
from ilp.paths.path_check import path_cycles
from ilp.paths.solution import PathStep
from pipeline.block_times import transfers
from pipeline.native import CompiledTrace, Instructions, execute_in_turn
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.errors import InputError
from quoll.image.image import Image
from quoll.recordings.trace import Execution, Trace
from tests.testing.harness import build, qemu
from wcet.analysis.analysis import analyse
from wcet.analysis.result import AnalysisResult
from wcet.analysis.stage_times import StageLog
from wcet.executions.path_replay import ReplayPath as Walk
from wcet.executions.path_replay import (
    StartContents,
    executed,
    nominal_core,
    random_machine,
    taking_the_exception,
)
from wcet.executions.recorded_paths import sections
from wcet.platforms.platform_model import Platform
from wcet.request import add_analysis, requested

__all__ = ["Round", "Timed", "charged", "main", "rounds", "timed"]

TIMES, STATES, WARM = 32, 100, 4
UNKNOWNS = 10  # draws of everything that a recording leaves open, conditions for one
SYSCALL, INTERRUPT = 8, 24  # offsets of vectors
PRESETS, BOARDS = ("before", "after", "latency", "mcs"), ("kzm", "cubieboard")
# The rounds of pingpong.c, with the names of their executions.
OPERATIONS = (
    ("call, 4 words", "answer, 4 words"),
    ("call, 5 words", "answer, 5 words"),
    ("call, 120 words", "answer, 120 words"),
    ("call, 120 words and 3 capabilities", "answer, 120 words"),
    ("signal to an urgent thread", "wait for a signal"),
    ("interrupt to an urgent thread", "acknowledge", "wait for an interrupt"),
)
SHOWN = {name for names in OPERATIONS for name in names} - {"call, 5 words", "answer, 5 words"}
HEAD = ("operation", "instructions", "first: mean (deviation)", "again: mean (deviation)",
        "bound of the path", "bound of the entry")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """Executions that follow each other repeatedly."""

    executions: tuple[Execution, ...]
    times: int


@dataclass(frozen=True, slots=True)
class Timed:
    """Cycles of one execution of a round, per initial state: the first time, and again."""

    first: tuple[int, ...]
    again: tuple[float, ...]


def rounds(trace: Trace) -> list[Round]:
    """The kinds of rounds, in the order in which they ran.

    Of two alternating system calls, the last one made is the second: at first a path may differ. An
    interrupt that mostly comes before the first call belongs to the round.
    """
    calls = [i for i, e in enumerate(trace.executions) if e.entry == trace.vectors + SYSCALL]
    paths = [trace.executions[i].pcs.tobytes() for i in calls]
    found, begin = [], 0
    while begin + 2 < len(paths):
        end = begin + 2
        while end < len(paths) and paths[end] == paths[end - 2]:
            end += 1
        if end - begin >= 2 * TIMES and paths[begin] != paths[begin + 1]:
            first, second = (trace.executions[i] for i in calls[end - 2 : end])
            before = interrupt_before(trace, calls[end - 2 : begin : -2])
            found.append(Round((*before, first, second), (end - begin) // 2))
            begin = end
        else:
            begin += 1
    return found


def interrupt_before(trace: Trace, calls: Sequence[int]) -> tuple[Execution, ...]:
    """The interrupt that precedes most of these system calls, along its most frequent path."""
    before = [trace.executions[i - 1] for i in calls]
    entry = trace.vectors + INTERRUPT
    interrupts = [execution for execution in before if execution.entry == entry]
    if 2 * len(interrupts) <= len(calls):
        return ()
    paths = [execution.pcs.tobytes() for execution in interrupts]
    return (max(interrupts, key=lambda e: paths.count(e.pcs.tobytes())),)


def walk(execution: Execution, image: Image) -> Walk:
    """The instructions of a recorded execution, which needs no graph."""
    insns = [_insn(image, pc) for pc in execution.pcs]
    following = [*execution.pcs[1:], -1]
    taken = [transfers(i) and i.next != pc for i, pc in zip(insns, following, strict=True)]
    return Walk(tuple(insns), tuple(taken), tuple(range(len(insns))))


def _insn(image: Image, pc: int) -> Insn:
    found = image.code_around(pc)
    if found is None:
        raise InputError(f"the kernel has no code at {pc:#x}", hint="was this kernel recorded?")
    start, code = found
    return decode(code[pc - start : pc - start + 4], pc, image.thumb_at(pc) is True)


def timed(made: Round, image: Image, platform: Platform, states: int = STATES) -> list[Timed]:
    """Cycles of each execution of a round."""
    platform = _with_a_policy(platform)
    drawn = Random(platform.name)
    paths = [(walk(execution, image), _addresses(execution)) for execution in made.executions]
    steps = [
        [executed(path, addresses, platform, drawn) for path, addresses in paths]
        for _ in range(UNKNOWNS)
    ]
    known = Instructions(nominal_core(platform.timing), aligned=platform.hierarchy.aligned)
    traces = [[CompiledTrace.of(known, path) for path in one] for one in steps]
    every: list[list[list[int]]] = []  # per state, round and execution
    for state in range(states):
        random = Random(f"{platform.name} {state}")
        contents = list(StartContents)[state % len(StartContents)]
        every.append(_repeated(traces[state % UNKNOWNS], platform, contents, random))
    return [
        Timed(
            tuple(cycles[0][number] for cycles in every),
            tuple(median(one[number] for one in cycles[1:]) for cycles in every),
        )
        for number in range(len(paths))
    ]


def _with_a_policy(platform: Platform) -> Platform:
    """Random replacement where any policy is analysed: both cores have it."""
    hierarchy = platform.hierarchy
    if hierarchy.policy is not ReplacementPolicy.ONE_WAY:
        return platform
    return replace(platform, hierarchy=replace(hierarchy, policy=ReplacementPolicy.RANDOM))


def _addresses(execution: Execution) -> dict[int, int]:
    """The lowest address that each instruction accessed."""
    first: dict[int, int] = {}
    for access in execution.accesses():
        first[access.index] = min(access.addr, first.get(access.index, access.addr))
    return first


def _repeated(
    traces: Sequence[CompiledTrace],
    platform: Platform,
    contents: StartContents,
    random: Random,
) -> list[list[int]]:
    """Cycles of each path in each round, on one machine without a reset."""
    every = [step for trace in traces for step in trace.executed]
    machine = random_machine(platform, every, contents, random)
    exception = taking_the_exception(machine.core)
    cycles = execute_in_turn(machine, list(traces) * (WARM + 1), exception)
    return [cycles[at : at + len(traces)] for at in range(0, len(cycles), len(traces))]


def charged(execution: Execution, result: AnalysisResult) -> tuple[int, int]:
    """The analysis's charge for this path, and the bound of its entry, in cycles.

    A section of the path ends behind the test at which the next one starts: it is charged up to
    there. Raises InputError if a function summary stands for a part of the path.
    """
    entry = next(e for e in result.entries.values() if e.address == execution.entry)
    pieces = sections(entry.paths, result.image, execution)
    starts = [piece.sources[0][1] for piece in pieces]
    cycles, insns = 0, 0
    for piece, start, end in zip(pieces, starts, (*starts[1:], len(execution.pcs)), strict=True):
        path = [PathStep(v.node, v.edge) for v in piece.visits if start + v.start < end]
        cycles += path_cycles(piece.paths.costs, path)
        insns += sum(len(piece.paths.graph.nodes[step.node].block.insns) for step in path)
    if insns != len(execution.pcs):
        raise InputError(
            f"{insns} of {len(execution.pcs)} instructions have charges of their own",
            hint="was the kernel analysed with --share=never?",
        )
    return cycles, entry.cycles


def table(board: str, preset: str, trace: Path) -> str:
    """The operations of one build."""
    kernel = build.kernel(f"{board}-{preset}", *KERNEL)
    done = qemu.run_bilby(f"{board}-{preset}", "pingpong", trace)
    if done.returncode != 0:
        raise InputError(f"pingpong ended with {done.returncode}", hint=done.stdout)
    parser = argparse.ArgumentParser()
    add_analysis(parser)
    values = sizes() if preset == "before" else {}
    sizes_set = [f"--set={name}={value}" for name, value in values.items()]
    options = parser.parse_args([*INLINED.get(preset, ()), *sizes_set])
    result = analyse(kernel, requested(options, []), StageLog(verbose=False))
    found = rounds(Trace.read(trace))
    if [len(r.executions) for r in found] != [len(names) for names in OPERATIONS]:
        raise InputError(f"{len(found)} rounds were found", hint="is pingpong.c another program?")
    rows: dict[str, Sequence[str]] = {}
    for made, names in zip(found, OPERATIONS, strict=True):
        cycles = timed(made, result.image, result.platform)
        for execution, name, one in zip(made.executions, names, cycles, strict=True):
            if name in SHOWN and name not in rows:
                rows[name] = row(name, execution, one, *charged(execution, result))
    return f"### `{preset}` on {board}\n\n{markdown(HEAD, rows.values())}"


def row(name: str, execution: Execution, cycles: Timed, path: int, entry: int) -> tuple[str, ...]:
    """A row of the table. Raises AssertionError if an execution exceeds its bound."""
    assert max(*cycles.first, *cycles.again) <= path, name
    columns = (f"{mean(c):,.0f} ({stdev(c):,.0f})" for c in (cycles.first, cycles.again))
    return name, f"{len(execution.pcs):,}", *columns, f"{path:,}", f"{entry:,}"


def main(arguments: Sequence[str]) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        prog="bench.ipc",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_write(parser, "kernels/bilby/docs/ipc.md")
    options = parser.parse_args(arguments)
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        for board in BOARDS:
            for preset in PRESETS:
                tables.append(table(board, preset, Path(folder) / f"{board}-{preset}"))
                print(tables[-1], flush=True)
    write(options, "../kernels/bilby/docs/ipc.md", {"operations": "\n".join(tables)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
