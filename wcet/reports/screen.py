"""A report on a terminal: lines of its width, as many as its height.

Files and pipes get the full text, which must not depend on a window.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.costs import CostCause
from quoll.assumptions import S4
from quoll.facts.memory_facts import UnknownPointsIntoFact
from quoll.fitting import fitted
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.platforms.outside import outside_map
from wcet.reports.assumption_text import summed_up
from wcet.reports.hot_places import HotPlace, LoopShare, hot_places, loop_shares
from wcet.reports.legend import LEGEND, legend
from wcet.reports.result_text import (
    CYCLES,
    TextStyle,
    bounds_table,
    heading,
    latency,
    line_of,
    wide,
)

__all__ = ["Screen", "to_screen"]

PROMPT = 1  # line, of the shell
MOST_PLACES = 5  # places where cycles go
LEAST_PLACES = 1
MOST_REMEDIES = 3
SHORTEST_NAME = 12  # characters of a function
MUCH = 0.4  # share of data accesses from which on their addresses are worth a fact
WORTH = 0.02  # share of the bound from which on a loop is named as worth a fact


@dataclass(frozen=True, slots=True)
class Screen:
    """Size of a terminal in characters."""

    columns: int
    lines: int

    @classmethod
    def of_output(cls) -> Screen | None:
        """The size of standard output; None if it is no terminal."""
        return cls(*shutil.get_terminal_size()) if sys.stdout.isatty() else None


def to_screen(result: AnalysisResult, style: TextStyle, screen: Screen) -> str:
    """Bounds, latency, the costliest places, remedies, and a line on assumptions."""
    table = bounds_table(result, style, screen.columns)
    counted = [one for one in result.entries.values() if one.solution.nodes]
    worst = max(counted, key=lambda entry: entry.cycles, default=None)
    bounds = [
        *heading(result, style).splitlines(), "", *table, *_interval(worst),
        *"\n".join(latency(result, style)).splitlines(), "",
    ]  # fmt: skip
    last = [
        f"{summed_up(result.assumptions)}: --assumptions",
        style.dim("--details prints all paths, loops and assumptions; --wide whole lines"),
    ]
    room = screen.lines - len(bounds) - len(last) - PROMPT
    costs = _costs(result, worst, style, screen.columns, room)
    words = legend("analyse", table[1], screen.columns)  # the heads of its columns
    room -= len(costs)
    if len(words) > room:  # bounds and places take precedence over the legend
        words = [fitted(f"{LEGEND}wcet help words", screen.columns)] if words and room > 0 else []
    lines = [*bounds, *costs, *words, *last]
    return "".join(f"{fitted(line, screen.columns)}\n" for line in lines)


def _interval(worst: EntryResult | None) -> list[str]:
    """The interval of the worst entry, if an execution of it is known."""
    return [f"{worst.name}: {worst.interval}"] if worst is not None and worst.interval else []


def _costs(
    result: AnalysisResult, worst: EntryResult | None, style: TextStyle, columns: int, room: int
) -> list[str]:
    """Where the cycles of the worst entry go, and remedies, in at most ``room`` lines."""
    if worst is None or room < 1 + LEAST_PLACES:
        return []
    loops = loop_shares(worst)
    places = hot_places(result, worst)[:MOST_PLACES]
    rows = [_place_row(result, worst, place, loops, columns) for place in places]
    remedies = list(_remedies(result, worst, loops))[:MOST_REMEDIES]
    lines = [style.bold(f"where the cycles of {worst.name} go{worst.for_what}"), *rows]
    if not remedies or room < len(lines) + 2:
        return [*lines[: room - 1], ""] if room > len(lines) else lines[:room]
    more = ["", style.bold("statements that may lower it most: wcet advise"), *remedies]
    return [*lines, *more[: room - len(lines)]]


def _place_row(
    result: AnalysisResult,
    entry: EntryResult,
    place: HotPlace,
    loops: Mapping[int, LoopShare],
    columns: int,
) -> str:
    """Cycles, share and executions of a place, its function and line, and the loop around it.

    A long name of a function is shortened, so that the rest fits.
    """
    width = wide(entry.cycles, CYCLES)
    row = f"{place.cycles:>{width},}{place.cycles / entry.cycles:>7.1%}{place.count:>7,}×  "
    line = line_of(result, place.address)
    text = f" {line}"
    if place.loop is not None:
        loop = loops[place.loop]
        file, mark, number = line_of(result, loop.header).rpartition(":")
        at = f":{number}" if mark and line.startswith(f"{file}:") else f"{file}{mark}{number}"
        text += f", loop {at} {_bound(loop)}"
    room = max(columns - len(row) - len(text), SHORTEST_NAME)
    return f"{row}{fitted(result.function(place.function), room)}{text}"


def _bound(loop: LoopShare) -> str:
    """The bound of a loop, and its evidence in a word."""
    if loop.most is None:
        return "without a bound of its own"
    evidence = "stated" if loop.stated else "exact" if loop.exact else "proved"
    return f"at most {loop.most:,}, {evidence}"


def _remedies(
    result: AnalysisResult, entry: EntryResult, loops: Mapping[int, LoopShare]
) -> Iterator[str]:
    """Statements that would lower the bound, if they are true: about memory, then about loops."""
    for outside in outside_map(result.image, result.platform.hierarchy.memory):
        yield f"  {outside.fact}"
    causes = entry.cycles_by_cause()
    data = (causes[CostCause.LOAD_MISS] + causes[CostCause.STORE]) / entry.cycles
    if data >= MUCH and any(one.name == S4.name for one in entry.assumptions):
        place = result.function(entry.address)
        yield f"  where the stack is: register r13 at {place} points into a region"
    if data >= MUCH and not result.located.of(UnknownPointsIntoFact):
        yield f"  where accesses of unknown address point: data accesses take {data:.0%}"
    for loop in sorted(loops.values(), key=_excess, reverse=True):
        if _excess(loop) >= WORTH * entry.cycles:
            yield (
                f"  fewer than {loop.iterations:,} iterations of the loop at "
                f"{line_of(result, loop.header)}: {loop.cycles // loop.iterations:,} cycles each"
            )


def _excess(loop: LoopShare) -> int:
    """The cycles beyond one iteration of each entry, which a true smaller count may save.

    0 if the count is stated, or reached by an execution.
    """
    once = loop.entries <= 1
    if loop.stated or (loop.exact and once) or not loop.iterations:
        return 0
    return loop.cycles - loop.cycles * loop.entries // loop.iterations
