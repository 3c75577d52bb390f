"""A report on a terminal: lines of its width, as many as its height.

Files and pipes get the full text, which must not depend on a window.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

from quoll.fitting import fitted
from wcet.analysis.result import AnalysisResult
from wcet.reports.legend import LEGEND, legend
from wcet.reports.result_text import (
    TextStyle,
    bounds_table,
    call_tree,
    calls_of,
    heading,
    latency,
)

__all__ = ["Screen", "to_screen"]

OWN = "own"  # a column of the tree
PROMPT = 1  # line, of the shell
LEAST_TREE = 4  # lines, with its heading


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
    """Bounds, latency, assumptions, and as many rows of the worst entry's path as fit."""
    lines = [
        *heading(result, style).splitlines(), "", *bounds_table(result, style, screen.columns),
        *"\n".join(latency(result, style)).splitlines(), "",
    ]  # fmt: skip
    found = result.assumptions
    words = legend("analyse", "\n".join([*lines, OWN]), screen.columns)
    if len(words) > (screen.lines - len(lines)) // 3:  # bounds take precedence over the legend
        words = [fitted(f"{LEGEND}wcet help words", screen.columns)]
    room = max(screen.lines - len(lines) - len(words) - PROMPT - 2, 0)  # a heading, the last line
    shown = found if len(found) <= room else found[: max(room - 1, 0)]
    lines.append(style.bold(f"assumptions: {len(found)}"))
    lines += [f"{number:>4}. {text}" for number, text in enumerate(shown, 1)]
    if len(shown) < len(found):
        lines.append(f"      {len(found) - len(shown)} more: --details")
    room -= len(shown)
    worst = max(result.entries.values(), key=lambda entry: entry.cycles)
    if room >= LEAST_TREE and worst.path.steps:
        lines += [
            "",
            style.bold(f"worst path of {worst.name}: cycles, share, own, calls, function"),
        ]
        lines += list(call_tree(result, worst.graph, calls_of(worst)))[: room - 2]
    lines += words
    lines.append(style.dim("--details prints all paths, loops and assumptions; --wide whole lines"))
    return "".join(f"{fitted(line, screen.columns)}\n" for line in lines)
