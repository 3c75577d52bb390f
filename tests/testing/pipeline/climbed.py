"""Initial states of the concrete machine, changed step by step towards more cycles.

A hill climbing over contents of the caches, which of them are dirty, counters of replacement, busy
registers, and the draws that the hardware leaves open; and over executions of one path with
different operands. Each state is one that an entry may find: any lines, in their own sets.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from pipeline.native import POLICIES, CompiledTrace, SplitMix, exported, library, no_effect
from pipeline.pipeline_simulator import PipelineMachine
from tests.testing.pipeline.sampled import own_lines

__all__ = ["ClimbedState", "climb", "copied"]

Num = ctypes.c_int64
FOREIGN = 1 << 23  # lines of other programs, as simulator.c numbers them
CHANGES = (1, 1, 2, 4, 16, 64)  # of one proposal
ROWS = ("line", "dirty", "used")  # of the second-level cache, by set, then way
REGISTERS = 15


@dataclass(frozen=True)
class ClimbedState:
    """The state in which an execution was slowest, and its cycles; ``first``: before the climb."""

    state: Any  # as ``exported``; not to be changed
    trace: CompiledTrace
    most: int
    first: int

    def with_one_way(self) -> int:
        """Cycles from the same state if each set of the level-1 caches had the first way only.

        Pseudo-random replacement that always evicts the line filled last behaves so.
        """
        state = copied(self.state)
        for cached in (state.icache, state.dcache):
            for at in range(cached.sets):
                cached.line[at] = cached.line[at * cached.ways]
                cached.dirty[at] = cached.dirty[at * cached.ways]
            cached.ways, cached.counter = 1, 0
        return _cycles(state, self.trace)

    def with_hits(self, *, data: bool) -> int:
        """Cycles from the same state if every fetch hit, and with ``data`` each data access."""
        state = copied(self.state)
        state.icache.always_hits = 1
        state.dcache.always_hits = int(data)
        return _cycles(state, self.trace)


def climb(
    starts: Sequence[tuple[PipelineMachine, CompiledTrace]], proposals: int, random: Random
) -> ClimbedState:
    """The slowest state and execution found from the slowest of ``starts``.

    All traces are of one path. A proposal that takes at least as many cycles replaces the state.
    The first proposals fill each cache with dirty lines of other programs.
    """
    states = [(exported(machine, SplitMix(random.getrandbits(64))), t) for machine, t in starts]
    cycles = [_cycles(state, trace) for state, trace in states]
    first = most = max(cycles)
    best, trace = states[cycles.index(most)]
    lines = own_lines(starts[0][0], trace)
    longest = starts[0][0].core.longest
    for number in range(proposals):
        state, followed = copied(best), trace
        if number < len(starts):
            followed = starts[number][1]
            for cached in _caches(state):
                _pollute(cached)
        elif random.random() < 0.05:
            followed = random.choice(starts)[1]
        for _ in range(random.choice(CHANGES) if number else 0):
            _change(state, lines, longest, random)
        found = _cycles(state, followed)
        if found >= most:
            best, trace, most = state, followed, found
    return ClimbedState(best, trace, most, first)


def _cycles(state: Any, trace: CompiledTrace) -> int:
    compiled = library()
    assert compiled is not None, "climbing needs a C compiler"
    end: int = compiled.simulate(
        ctypes.byref(copied(state)), trace.instructions, trace.steps.ctypes.data,
        len(trace.executed), trace.first, None,
    )  # fmt: skip
    if end < 0:
        raise no_effect(trace, end)
    return end


def copied(state: Any) -> Any:
    """A state of its own, with its own second-level cache."""
    other = type(state).from_buffer_copy(state)
    if state.l2:
        level = type(state.l2.contents).from_buffer_copy(state.l2.contents)
        rows = Num * (level.ways * level.sets)
        for name in ROWS:
            row = ctypes.cast(getattr(state.l2.contents, name), ctypes.POINTER(rows))
            setattr(level, name, rows.from_buffer_copy(row.contents))
        other.l2 = ctypes.pointer(level)
    return other


Lines = np.ndarray[tuple[int], np.dtype[np.int64]]


def _change(state: Any, lines: tuple[Lines, Lines], longest: int, random: Random) -> None:
    """One random change of ``state``."""
    choice = random.random()
    if choice < 0.7:
        side = random.randrange(2)
        if len(lines[side]):
            own, cached = int(random.choice(lines[side])), (state.icache, state.dcache)[side]
            if state.l2 and random.random() < 0.4:
                own = own * cached.line_bytes // state.l2.contents.line_bytes
                cached = state.l2.contents
            _change_line(cached, own, random)
    elif choice < 0.8:
        cached = random.choice([state.icache, state.dcache])
        cached.policy = random.choice(sorted(set(POLICIES.values())))
        cached.counter = random.randrange(cached.ways)
    elif choice < 0.9:
        state.random = random.getrandbits(64)
    else:
        register = random.randrange(REGISTERS)
        state.ready[register] = random.randint(-1, longest)
        state.unlocked[register] = random.randint(-1, longest)


def _caches(state: Any) -> list[Any]:
    return [state.icache, state.dcache, *([state.l2.contents] if state.l2 else [])]


def _pollute(cached: Any) -> None:
    """Fill a cache with dirty lines of other programs."""
    for at in range(cached.sets * cached.ways):
        cached.line[at] = (FOREIGN + at % cached.ways) * cached.sets + at // cached.ways
        cached.dirty[at] = 1


def _change_line(cached: Any, own: int, random: Random) -> None:
    """Put the line ``own``, another program's or none into a way of the set of ``own``."""
    first = own % cached.sets * cached.ways
    way = random.randrange(cached.ways)
    held = [cached.line[first + other] for other in range(cached.ways)]
    line = random.choice([own, -1, *[(FOREIGN + way) * cached.sets + own % cached.sets] * 2])
    if line not in held or line == -1:
        cached.line[first + way] = line
    cached.dirty[first + way] = int(cached.line[first + way] >= 0 and random.random() < 0.8)
