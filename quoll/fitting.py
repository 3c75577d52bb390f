"""Fits a line to the width of a terminal by eliding its middle."""

from __future__ import annotations

import re

__all__ = ["fitted"]

COLOUR = re.compile(r"(\x1b\[\d+m)")
GAP = "…"
HEAD_SHARE = 3, 4  # share of characters retained at the beginning, where names stand


def fitted(line: str, columns: int) -> str:
    """``line`` in at most ``columns`` characters, not counting colour codes."""
    runs = COLOUR.split(line)
    length = sum(map(len, runs[::2]))
    if length <= columns or columns < 1:
        return line
    before = (columns - len(GAP)) * HEAD_SHARE[0] // HEAD_SHARE[1]
    after = length - (columns - len(GAP) - before)
    found, at = "", 0
    for number, run in enumerate(runs):
        if number % 2:
            found += run
            continue
        found += run[: max(before - at, 0)]
        if at <= before < at + len(run):
            found += GAP
        found += run[max(after - at, 0) :]
        at += len(run)
    return found
