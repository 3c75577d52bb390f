"""A line that is as long as a terminal is wide: what is too much goes from its middle."""

from __future__ import annotations

import re

__all__ = ["fitted"]

COLOUR = re.compile(r"(\x1b\[\d+m)")
GAP = "…"
KEPT = 3, 4  # the part of the characters that are kept at the beginning: names come first


def fitted(line: str, columns: int) -> str:
    """``line`` in at most ``columns`` characters; colours take none."""
    pieces = COLOUR.split(line)
    length = sum(map(len, pieces[::2]))
    if length <= columns or columns < 1:
        return line
    before = (columns - len(GAP)) * KEPT[0] // KEPT[1]
    after = length - (columns - len(GAP) - before)
    found, at = "", 0
    for number, piece in enumerate(pieces):
        if number % 2:
            found += piece
            continue
        found += piece[: max(before - at, 0)]
        if at <= before < at + len(piece):
            found += GAP
        found += piece[max(after - at, 0) :]
        at += len(piece)
    return found
