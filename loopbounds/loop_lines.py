"""Source lines that name loops of a program, with a checksum of their text.

A fact about a line concerns the innermost loops with code of the line, in each function
(``loopbounds.places``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from quoll.cfg.cfg import Cfg
from quoll.errors import ControlFlowError
from quoll.facts.fact_places import FactPlace
from quoll.facts.line_anchors import LineAnchors
from quoll.image.image import Image
from quoll.inlining.function_shape import shape_of

__all__ = ["LoopLine", "loop_lines"]


@dataclass(frozen=True, slots=True)
class LoopLine:
    """A source line as a place, and the headers of all loops that it denotes."""

    place: str
    headers: frozenset[int]


def loop_lines(
    functions: Iterable[Cfg], headers: Iterable[int], lines: LineAnchors
) -> Iterator[tuple[int, LoopLine]]:
    """For each of the ``headers``, the line of the first instruction of its loop.

    It is left out if it has code outside of ``functions``, or outside of the loops of one of them,
    as a fact about it may be refused then, or also names loops that are none of the headers.
    """
    known = tuple(functions)
    wanted = frozenset(headers)
    for header in sorted(wanted):
        text = lines.anchored(header)
        found = None if text is None else _denoted(known, header, lines.image)
        if text is not None and found is not None and header in found and found <= wanted:
            yield header, LoopLine(text, found)


def _denoted(functions: Iterable[Cfg], addr: int, image: Image) -> frozenset[int] | None:
    """The headers of all loops that the line of ``addr`` denotes; None if they are not known."""
    line = image.line(addr)
    spans = image.lines.spans(line.path, line.line, line.line) if line else ()
    starts = tuple(low for low, _ in spans)
    place = FactPlace(starts, starts, spans, exact=False)
    around = [cfg for cfg in functions if _has(cfg, place)]
    try:
        each = [_innermost(cfg, place, image) for cfg in around]
    except ControlFlowError:
        return None  # loops with several entries
    inside = {i.addr for cfg in around for block in cfg.blocks for i in block.insns}
    found = frozenset(header for headers in each for header in headers)
    return found if all(each) and inside.issuperset(starts) else None


def _has(cfg: Cfg, place: FactPlace) -> bool:
    return any(place.meets(block.addr, block.end) for block in cfg.blocks)


def _innermost(cfg: Cfg, place: FactPlace, image: Image) -> set[int]:
    """The headers of the deepest loops with code of the place."""
    here = [
        headers
        for block, headers in shape_of(cfg, image).nest
        if any(place.covers(insn.addr) for insn in block.insns)
    ]
    depth = max(map(len, here), default=0)
    return {headers[-1] for headers in here if depth and len(headers) == depth}
