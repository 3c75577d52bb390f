"""Lower limits of an execution's time: an independent model, and the project's concrete machine.

The independent model shares no code with the project. It counts cycles that no core can avoid: a
cycle for each instruction (half a cycle where two issue together), and the accesses to memory,
which use the only bus one after another: every line that is fetched or loaded for the first time,
and, while a cache is off, every single load or fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from campaigns.adversary.executor import BELOW, Run
from campaigns.adversary.program import Board
from pipeline.block_times import transfers
from pipeline.native import Instructions, SplitMix
from quoll.arm.insn import Insn
from wcet.executions.path_replay import (
    ReplayPath,
    StartContents,
    executed,
    random_machine,
    replay,
)
from wcet.executions.path_replay import nominal_core as nominal
from wcet.platforms.platform_model import Platform

__all__ = ["Clock", "floor"]

DEVICE = 0xF800_0000  # and above
DATA, FETCH = 1 << 2, 1 << 12  # bits of SCTLR


def floor(run: Run, begin: int, board: Board, words: Callable[[int], int], access: int) -> int:
    """Least cycles of the instructions from ``begin`` on; ``words``: address -> code."""
    line = 64 if board.armv7 else 32
    fetched: set[int] = set()
    loaded: set[int] = set()
    control = DATA | FETCH
    bus = 0
    for at in range(run.steps):
        pc, addr = run.pcs[at], run.accesses.get(at)
        known = at < begin  # earlier lines may still be cached
        if not control & FETCH:
            bus += 0 if known else access // 8  # at most a burst of eight words
        elif pc // line not in fetched:
            fetched.add(pc // line)
            bus += 0 if known else access
        if addr is not None and (addr >= DEVICE or not control & DATA):
            bus += 0 if known or not is_load(words(pc), board) else access
        elif addr is not None and is_load(words(pc), board) and addr // line not in loaded:
            loaded.add(addr // line)
            bus += 0 if known else access
        change = switched(run, at, words, board)
        control = control if change is None else change
    count = run.steps - begin
    return max(bus, -(-count // 2) if board.armv7 else count)


def is_load(code: int, board: Board) -> bool:
    """Whether an instruction that accesses memory is one of the plain loads of a word."""
    if board.thumb:
        high = code & 0xFFFF
        return high & 0xF800 in (0x6800, 0x9800) or high & 0xFFF0 in (0xF8D0, 0xF850)
    return code & 0x0C100000 == 0x04100000 and code & 0xF0000000 == 0xE0000000


def switched(run: Run, at: int, words: Callable[[int], int], board: Board) -> int | None:
    """The cache bits of SCTLR after an instruction that writes it; None for any other."""
    code = words(run.pcs[at])
    if board.thumb:
        code = (code & 0xFFFF) << 16 | code >> 16
    if code & 0xFFFF0FFF != 0xEE010F10:
        return None
    before = words(run.pcs[at - 1])  # bic or orr of one bit of SCTLR, both caches on
    if board.thumb:
        immediate = before >> 16
        off = (before & 0xFFF0) == 0xF023
        field = (immediate >> 12 & 7) << 8 | immediate & 0xFF
        value = field & 0xFF if field < 256 else (field & 0x7F | 0x80) << 32 >> (field >> 7)
        value &= 0xFFFFFFFF
    else:
        off = before & 0x0FE00000 == 0x03C00000
        turn = before >> 7 & 30
        value = (before & 0xFF) << 32 >> turn & 0xFFFFFFFF if turn else before & 0xFF
    return (DATA | FETCH) & ~value if off else DATA | FETCH


class Clock:
    """The project's concrete machine, for executions without the analysis."""

    def __init__(self, platform: Platform, insns: Mapping[int, Insn]) -> None:
        self._platform, self._insns = platform, insns
        self._instructions = Instructions(
            nominal(platform.timing), aligned=platform.hierarchy.aligned
        )

    def cycles(self, runs: Sequence[Run], begin: int, states: int, chance: Random) -> int | None:
        """Most cycles of ``runs``, one after another, from instruction ``begin`` of the first one.

        None if an instruction is not known, as it is in no graph.
        """
        insns: list[Insn] = []
        taken: list[bool] = []
        accesses: dict[int, int] = {}
        for number, run in enumerate(runs):
            first = begin if number == 0 else 0
            for at in range(first, run.steps):
                insn = self._insns.get(run.pcs[at])
                if insn is None:
                    return None
                if at in run.accesses and insn.memory is not None:
                    addr = run.accesses[at]
                    accesses[len(insns)] = addr + BELOW if addr >> 28 == 0xE else addr
                follows = run.pcs[at + 1] if at + 1 < run.steps else None
                insns.append(insn)
                taken.append(transfers(insn) and follows != insn.next)
        random = SplitMix(chance.getrandbits(64))  # so that the compiled machine can follow
        path = ReplayPath(tuple(insns), tuple(taken), tuple(range(len(insns))))
        most = 0
        for state in range(states):
            steps = executed(path, accesses, self._platform, random)
            machine = random_machine(
                self._platform, steps, list(StartContents)[state % len(StartContents)], random
            )
            most = max(most, replay(machine, steps, exception=False,
                                    instructions=self._instructions))  # fmt: skip
        return most
