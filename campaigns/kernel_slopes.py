"""The cost of one more element in the preset ``before``, whose paths grow with its data.

    make campaign-kernel_slopes

Executions of the kernel, recorded while programs steer into worst cases, are replayed on the
concrete machine from cold caches. For each parameter of ``docs/ilp.md`` the two executions that
differ most in it are compared; the longer one executes every instruction of the shorter one, and
its other instructions count towards the slope. The difference per element must not exceed the slope
of the bound. Exits with status 1 if it does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

import wcet.executions.path_replay
from pipeline.block_times import transfers
from pipeline.native import SplitMix
from quoll.arm.decode import decode
from quoll.arm.insn import Insn
from quoll.image.image import Image
from quoll.recordings.trace import End, Execution, Trace
from tests.testing.harness import build, qemu
from wcet.executions.path_replay import StartContents, executed, random_machine, replay
from wcet.platforms import platform_model as platforms
from wcet.platforms.platform_model import Platform

# An instruction that executes once for each element.
ELEMENTS = {
    "object_chunks": "create_clear_chunk",
    "queue_length": "thread_abort",
    "live_asids": "asid_release",
    "blocked_threads": "blocked_thread",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Elements and cycles of two executions; the longer one executes all that the shorter does."""

    few: tuple[int, int]
    many: tuple[int, int]

    @property
    def slope(self) -> float:
        """Cycles per element."""
        return (self.many[1] - self.few[1]) / (self.many[0] - self.few[0])


def cycles(execution: Execution, image: Image, platform: Platform, insns: dict[int, Insn]) -> int:
    """One execution on the concrete machine, from cold caches."""
    pcs = list(execution.pcs)
    for pc in set(pcs) - set(insns):
        code_at = image.read(pc, 4)
        assert code_at is not None
        insns[pc] = decode(code_at, pc, thumb=False)
    code = tuple(insns[pc] for pc in pcs)
    nexts = [*pcs[1:], 0]
    taken = tuple(
        transfers(i) and after != i.addr + i.size for i, after in zip(code, nexts, strict=True)
    )
    path = wcet.executions.path_replay.ReplayPath(code, taken, tuple(range(len(code))))
    first: dict[int, int] = {}
    for access in execution.accesses():
        first[access.index] = min(access.addr, first.get(access.index, access.addr))
    random = SplitMix(Random("slopes").getrandbits(64))
    steps = executed(path, first, platform, random)
    machine = random_machine(platform, steps, StartContents.COLD, random)
    return replay(machine, steps, exception=True)


def pairs(executions: list[Execution], image: Image, platform: Platform) -> dict[str, Pair]:
    """For each name the two executions that differ most in it."""
    found: dict[str, Pair] = {}
    insns: dict[int, Insn] = {}
    for name, symbol in ELEMENTS.items():
        at = image.symbol(symbol)
        if at is None:
            continue
        counted: dict[tuple[int, frozenset[int]], Execution] = {}
        for execution in executions:
            pcs = execution.pcs.tolist()
            if count := pcs.count(at.addr):
                counted.setdefault((count, frozenset(pcs)), execution)
        nested = [(a, b) for a in counted for b in counted if a[0] < b[0] and a[1] <= b[1]]
        if not nested:
            continue
        ends = max(
            nested, key=lambda pair: (pair[1][0] - pair[0][0], -len(pair[1][1] - pair[0][1]))
        )
        few, many = ((end[0], cycles(counted[end], image, platform, insns)) for end in ends)
        found[name] = Pair(few, many)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="kzm-paper")
    parser.add_argument("--slope", action="append", default=[], metavar="NAME=CYCLES")
    options = parser.parse_args()
    slopes = {name: int(n) for name, n in (text.split("=") for text in options.slope)}
    image = Image.load(build.kernel("kzm-before"))
    executions: list[Execution] = []
    with tempfile.TemporaryDirectory() as folder:
        for program in ("steer", "tests"):
            done = qemu.run_bilby("kzm-before", program, path := Path(folder) / program)
            assert done.returncode == 0, done.stdout
            trace = Trace.read(path)
            executions += [e for e in trace.executions if e.end is not End.STOPPED]
    exceeded = False
    for name, pair in pairs(executions, image, platforms.load(options.platform)).items():
        allowed = slopes.get(name)
        print(
            f"{name}: {pair.few[0]} -> {pair.many[0]} elements, {pair.few[1]:,} -> "
            f"{pair.many[1]:,} cycles: {pair.slope:,.1f} per element"
            + (f", of {allowed:,} allowed" if allowed else "")
        )
        exceeded |= allowed is not None and pair.slope > allowed
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
