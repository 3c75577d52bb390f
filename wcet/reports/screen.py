"""A report on a terminal: lines as long as it is wide, and at first as many as it is high.

What is no terminal gets all of it, as it is: a file must not depend on a window.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

from ilp.paths.tree import fold
from pipeline.costs import Cause
from quoll.assumptions import listed
from quoll.fitting import fitted
from wcet.analysis.result import Result
from wcet.reports.text import CAUSES, CYCLES, NAME, Style, call_tree, functions, heading, latency

__all__ = ["Screen", "to_screen"]

OTHER = "other"
PROMPT = 1  # line, of the shell
LEAST_TREE = 4  # lines, with its heading


@dataclass(frozen=True, slots=True)
class Screen:
    """Size of a terminal in characters."""

    columns: int
    lines: int

    @classmethod
    def of_output(cls) -> Screen | None:
        """That of standard output; None if it is no terminal."""
        return cls(*shutil.get_terminal_size()) if sys.stdout.isatty() else None


def to_screen(result: Result, style: Style, screen: Screen) -> str:
    """Bounds, latency, assumptions, and as much of the worst entry's path as there is room for."""
    lines = [
        *heading(result, style).splitlines(), "", *table(result, style, screen.columns),
        *functions(result, style), *"\n".join(latency(result, style)).splitlines(), "",
    ]  # fmt: skip
    found = listed(result.assumptions)
    room = max(screen.lines - len(lines) - PROMPT - 2, 0)  # 2: a heading, and the last line
    shown = found if len(found) <= room else found[: max(room - 1, 0)]
    lines.append(style.bold(f"assumptions: {len(found)}"))
    lines += [f"{number:>4}. {text}" for number, text in enumerate(shown, 1)]
    if len(shown) < len(found):
        lines.append(f"      {len(found) - len(shown)} more: --details")
    room -= len(shown)
    worst = max(result.entries.values(), key=lambda entry: entry.cycles)
    if room >= LEAST_TREE and worst.path.steps:
        tree = fold(worst.graph, worst.costs, worst.path.steps)
        lines += [
            "",
            style.bold(f"worst path of {worst.name}: cycles, share, own, calls, function"),
        ]
        rows = list(call_tree(result, tree, tree.cycles))
        lines += rows[: room - 2]
    lines.append(style.dim("--details prints all paths, loops and assumptions; --wide whole lines"))
    return "".join(f"{fitted(line, screen.columns)}\n" for line in lines)


def table(result: Result, style: Style, columns: int) -> list[str]:
    """One row per entry; causes that take nothing are left out, then the least ones together."""
    entries = result.entries
    causes = {name: entry.cycles_by_cause() for name, entry in entries.items()}
    most = {cause: max((of[cause] for of in causes.values()), default=0) for cause in Cause}
    named = max((NAME, *(len(name) + 1 for name in (*entries, *result.unbounded))))
    first = max((CYCLES, *(len(f"{entry.cycles:,}") + 2 for entry in entries.values())))

    def width(cause: Cause) -> int:
        return max(len(CAUSES[cause]), len(f"{most[cause]:,}")) + 2

    shown = [cause for cause in CAUSES if most[cause]]
    rest: list[Cause] = []
    room = columns - named - 2 * first
    while shown and sum(map(width, shown)) + (first if rest else 0) > room:
        least = min(shown, key=lambda cause: most[cause])
        shown.remove(least)
        rest.append(least)
    head = f"{'entry':<{named}}{'cycles':>{first}}{'µs':>{first}}"
    head += "".join(f"{CAUSES[cause]:>{width(cause)}}" for cause in shown)
    rows = [style.bold("worst-case execution time")]
    rows.append(style.dim(head + (f"{OTHER:>{first}}" if rest else "")))
    for name, entry in entries.items():
        if entry.parametric:
            rows.append(f"{name:<{named}}{'f':>{first}}  a function, below")
            continue
        bound = f"{entry.cycles:>{first},}{result.microseconds(entry.cycles):>{first},.1f}"
        shares = "".join(f"{causes[name][cause]:>{width(cause)},}" for cause in shown)
        other = f"{sum(causes[name][cause] for cause in rest):>{first},}" if rest else ""
        mark = "" if entry.solution.optimal else "  (upper bound)"
        rows.append(f"{name:<{named}}{style.bold(bound)}{shares}{other}{mark}")
    rows += [f"{name:<{named}}{style.bold('none'.rjust(first))}" for name in result.unbounded]
    return rows
