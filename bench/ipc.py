"""What a call and its answer take: ``python -m bench.ipc TRACE KERNEL.ELF [--platform NAME]``.

TRACE is a recording of ``pingpong.elf`` by kernels/recorder. Its rounds are found as two system
calls that alternate, the same two paths at least 32 times; each kind of round is then executed by
the concrete machine of the platform (``wcet replay``), since the emulator has no timing:

    first    the caches are full of another program's dirty lines, accesses are under way
    again    the round has just been executed; the median of four more

Cycles are nominal, of the kernel alone: what the two threads execute is not recorded. Each figure
is the median of nine initial states.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from pipeline.block_times import transfers
from pipeline.simulator import Executed
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.errors import InputError, WcetError
from quoll.image.image import Image
from quoll.image.trace import Execution, Trace
from wcet.executions.replay import ReplayPath as Walk
from wcet.executions.replay import StartContents, executed, random_machine, taking_the_exception
from wcet.platforms.platform import Platform, for_image, load

__all__ = ["Round", "Timed", "main", "rounds", "timed"]

TIMES, STATES, WARM = 32, 9, 4
SYSCALL = 8  # offset of the system call's vector


@dataclass(frozen=True, slots=True)
class Round:
    """Two executions that alternate: a call, and an answer with the next receive."""

    call: Execution
    answer: Execution
    times: int


@dataclass(frozen=True, slots=True)
class Timed:
    """Cycles of a call and of its answer: the first time, and again."""

    first: tuple[int, int]
    again: tuple[int, int]


def rounds(trace: Trace) -> list[Round]:
    """The kinds of rounds, in the order in which they ran.

    The one that was made first in a run of alternating paths is taken as the call.
    """
    calls = [e for e in trace.executions if e.entry == trace.vectors + SYSCALL]
    paths = [execution.pcs.tobytes() for execution in calls]
    found, begin = [], 0
    while begin + 2 < len(paths):
        end = begin + 2
        while end < len(paths) and paths[end] == paths[end - 2]:
            end += 1
        if end - begin >= 2 * TIMES and paths[begin] != paths[begin + 1]:
            found.append(Round(calls[begin], calls[begin + 1], (end - begin) // 2))
            begin = end
        else:
            begin += 1
    return found


def walk(execution: Execution, image: Image) -> Walk:
    """The instructions of a recorded execution, which needs no graph."""
    insns = [_insn(image, pc) for pc in execution.pcs]
    following = [*execution.pcs[1:], -1]
    taken = [transfers(i) and i.next != pc for i, pc in zip(insns, following, strict=True)]
    return Walk((), tuple(insns), tuple(taken), tuple(range(len(insns))))


def _insn(image: Image, pc: int) -> Insn:
    found = image.code_around(pc)
    if found is None:
        raise InputError(f"the kernel has no code at {pc:#x}", hint="was this kernel recorded?")
    start, code = found
    return decode(code[pc - start : pc - start + 4], pc, image.thumb_at(pc) is True)


def timed(made: Round, image: Image, platform: Platform, seed: int) -> Timed:
    """Cycles of a round, each the median over initial states."""
    walks = [walk(execution, image) for execution in (made.call, made.answer)]
    first: list[list[int]] = []
    again: list[list[float]] = []
    for state in range(STATES):
        random = Random(f"{seed} {state}")
        steps = [
            executed(path, _addresses(execution), platform, random)
            for path, execution in zip(walks, (made.call, made.answer), strict=True)
        ]
        cycles = _alternate(steps, platform, random)
        first.append(cycles[0])
        again.append([median(column) for column in zip(*cycles[1:], strict=True)])
    call, answer = (round(median(column)) for column in zip(*first, strict=True))
    warm_call, warm_answer = (round(median(column)) for column in zip(*again, strict=True))
    return Timed((call, answer), (warm_call, warm_answer))


def _addresses(execution: Execution) -> dict[int, int]:
    """The lowest address that each instruction accessed."""
    first: dict[int, int] = {}
    for access in execution.accesses():
        first[access.index] = min(access.addr, first.get(access.index, access.addr))
    return first


def _alternate(
    steps: Sequence[Sequence[Executed]], platform: Platform, random: Random
) -> list[list[int]]:
    """Cycles of each path in each round, on one machine that goes on."""
    every = [step for path in steps for step in path]
    machine = random_machine(platform, every, StartContents.POLLUTED, random)
    exception = taking_the_exception(machine.core)
    found: list[list[int]] = []
    for _ in range(WARM + 1):
        found.append([])
        for path in steps:
            begin = machine.clock
            machine.clock += exception
            machine.start(path[0].insn.addr)
            for step, following in zip(path, [*path[1:], None], strict=True):
                machine.execute(step)
                if step.taken and following is not None:
                    machine.start(following.insn.addr)
            found[-1].append(machine.clock - begin)
    return found


def main(arguments: Sequence[str]) -> int:
    """Prints a row for each kind of round."""
    parser = argparse.ArgumentParser(
        prog="bench.ipc",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("kernel", type=Path, metavar="KERNEL.ELF")
    parser.add_argument("--platform", metavar="NAME|FILE.toml", help="as for 'wcet analyse'")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of initial states")
    options = parser.parse_args(arguments)
    try:
        image = Image.load(options.kernel)
        found = rounds(Trace.read(options.trace))
        if not found:
            raise InputError(
                f"{options.trace} has no two system calls that alternate {TIMES} times",
                hint="record pingpong.elf",
            )
        print(table(found, image, _platform(options.platform, image), options.seed))
    except WcetError as error:
        print(f"bench.ipc: {error}", file=sys.stderr)
        return 2
    return 0


def _platform(name: str | None, image: Image) -> Platform:
    return load(name) if name else for_image(image.cpu, image.attributes.arch)[0]


def table(found: Sequence[Round], image: Image, platform: Platform, seed: int) -> str:
    """As text."""
    rows = [
        f"platform {platform.name}; cycles of call + answer, medians of {STATES} states",
        f"{'round':<6}{'times':>6}{'instructions':>15}{'first':>17}{'again':>15}",
    ]
    for number, made in enumerate(found, 1):
        cycles = timed(made, image, platform, seed)
        insns = len(made.call.pcs), len(made.answer.pcs)
        columns = ("{} + {}".format(*pair) for pair in (insns, cycles.first, cycles.again))
        rows.append(f"{number:<6}{made.times:>6}" + "{:>15}{:>17}{:>15}".format(*columns))
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
