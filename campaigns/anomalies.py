"""Timing anomalies of the concrete machines: ``python -m campaigns.anomalies``.

    python -m campaigns.anomalies [LENGTH [SEED]]

Every program of up to LENGTH instructions (3 by default) from a small set, with every combination
of hits and misses of its accesses, from a few states of the write buffer and of the bus: does one
hit instead of a miss, all else equal, ever delay the end? Prints the number of comparisons, and the
shortest programs with a delay, for either core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

from cache.cache_simulator import CacheOutcome, SimulatedCache
from cache.policy import ReplacementPolicy
from pipeline.core import load_core
from pipeline.dual_issue_simulator import concrete_machine
from pipeline.pipeline_simulator import ExecutedInsn, FetchAndCaches, MemoryBus, PipelineMachine
from pipeline.timing_model import CoreProfile
from quoll.arm.insn import Insn
from tests.testing.cache.graphs import CODE, DATA, at, pool
from tests.testing.pipeline.runs import BOARDS, Board

__all__ = ["Anomaly", "search"]

SET = """
    ldr r0, [r1]
    ldr r1, [r0]
    str r2, [r3]
    stm r3, {r4-r7}
    add r0, r0, r2
    mul r2, r0, r4
    cmp r0, r2
    addeq r1, r1, r2
"""
BUFFERED = (0, 7, 8)  # words in the write buffer at the start


class Scripted(SimulatedCache):
    """A cache whose outcomes are given, in the order of the accesses."""

    outcomes: Iterator[bool]

    def load(self, line: int) -> CacheOutcome:
        return CacheOutcome(next(self.outcomes))

    def store(self, line: int) -> CacheOutcome:
        return CacheOutcome(next(self.outcomes))


@dataclass(frozen=True)
class Anomaly:
    """A hit instead of a miss that delays the end, in cycles."""

    board: str
    program: tuple[str, ...]
    outcomes: tuple[bool, ...]  # with the hit: data accesses, then the code line at the end
    position: int
    with_hit: int
    with_miss: int
    buffered: int


@dataclass
class Found:
    """The result of a search."""

    comparisons: int = 0
    anomalies: list[Anomaly] = field(default_factory=list)


def search(board: Board, length: int, limit: int = 10_000_000) -> Found:
    """All programs of up to ``length`` instructions, until ``limit`` comparisons were made."""
    found = Found()
    insns = pool(SET)
    for size in range(1, length + 1):
        for chosen in product(insns, repeat=size):
            if found.comparisons >= limit:
                return found
            for buffered in BUFFERED if size <= 2 else BUFFERED[:2]:
                _compare(found, board, chosen, buffered)
    return found


def _compare(found: Found, board: Board, chosen: tuple[Insn, ...], buffered: int) -> None:
    accesses = sum(insn.memory is not None for insn in chosen)
    if not accesses:
        return
    times = {
        outcomes: _run(board, chosen, outcomes, buffered)
        for outcomes in product((False, True), repeat=accesses)
    }
    for outcomes, cycles in times.items():
        for position, hit in enumerate(outcomes):
            if hit:
                missing = (*outcomes[:position], False, *outcomes[position + 1 :])
                found.comparisons += 1
                if cycles > times[missing]:
                    texts = tuple(insn.text for insn in chosen)
                    found.anomalies.append(
                        Anomaly(board.core, texts, outcomes, position, cycles, times[missing],
                                buffered)
                    )  # fmt: skip


def _run(board: Board, chosen: tuple[Insn, ...], outcomes: tuple[bool, ...], buffered: int) -> int:
    """Cycles; each access has its own line, and the next line of code misses."""
    random = Random(0)
    line = board.line_bytes
    icache, dcache = (
        Scripted(board.geometries[0], ReplacementPolicy.ROUND_ROBIN, random) for _ in range(2)
    )
    first = CODE + line - 4 * ((len(chosen) + 1) // 2)
    icache.outcomes, dcache.outcomes = iter([True, False]), iter(outcomes)
    machine: PipelineMachine = concrete_machine(
        load_core(board.core, CoreProfile.NOMINAL), MemoryBus(board.memory, dirty=10),
        FetchAndCaches(icache, dcache, 0, random),
    )  # fmt: skip
    for _ in range(buffered):
        machine.buffer.append(machine.memory.write(0))
    machine.start(first)
    for index, insn in enumerate(chosen):
        address = None if insn.memory is None else DATA + 4 * line * index
        machine.execute(ExecutedInsn(at(insn, first + 4 * index), True, False, address))
    return machine.finished


def main() -> int:
    length = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    for board in BOARDS:
        found = search(board, length)
        print(
            f"{board.core}: {found.comparisons:,} comparisons, {len(found.anomalies):,} anomalies"
        )
        for anomaly in found.anomalies[:5]:
            print(f"  {anomaly}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
