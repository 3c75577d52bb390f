"""Doubts about a worst path as text and JSON: pairs of decisions that look exclusive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quoll.image.image import Image
from wcet.proving.doubts import DoubtedDecision, PathDoubt, PathDoubts
from wcet.reports.path_text import read_source
from wcet.reports.result_text import TextStyle

__all__ = ["doubts_json", "doubts_text"]

SCHEMA_VERSION = 1


def doubts_text(
    name: str, found: PathDoubts, image: Image, folder: Path, style: TextStyle
) -> Iterator[str]:
    """The bound, and each pair of decisions; ``folder``: of the sources."""
    yield style.bold(
        f"worst path of {name}: {found.cycles:,} cycles; {found.decisions:,} decisions with code "
        "of their own"
    )
    if not found.doubts:
        yield "no two of them look exclusive, or no fact about two of them lowers the bound"
    for number, one in enumerate(found.doubts, 1):
        yield ""
        yield from doubt_text(number, one, found.cycles, image, folder)


def doubt_text(
    number: int, one: PathDoubt, bound: int, image: Image, folder: Path
) -> Iterator[str]:
    """The decisions, the words that look the same, and the line to state."""
    less = bound - one.cycles
    within = (
        "a path" if one.loop is None else f"an iteration of the loop at {image.place(one.loop)}"
    )
    yield f"{number}. can {within} take both of these?"
    for decision in (one.first, one.second):
        yield f"     {decision_text(decision, image, folder)}"
    for word in one.about:
        yield f"   they test {word}"
    if one.proved:
        yield f"   no: 'wcet refine' proves it; without both the bound is {one.cycles:,}"
        return
    yield f"   if not, the bound is {one.cycles:,}, {less:,} less ({less / bound:.1%}); state:"
    yield f"     {one.fact}"


def decision_text(decision: DoubtedDecision, image: Image, folder: Path) -> str:
    """A decision in source terms; by its instruction, where the source is not there."""
    here = image.line(decision.insn)
    text = read_source(folder / here.path) if here is not None else []
    if here is None or here.line > len(text):
        return (
            f"'{decision.text}' at {image.place(decision.insn)}, to {image.place(decision.target)}"
        )
    return f"`{text[here.line - 1].strip()}` at {here}, to {image.place(decision.target)}"


def doubts_json(name: str, found: PathDoubts, image: Image) -> dict[str, Any]:
    """The doubts as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "entry": name,
        "cycles": found.cycles,
        "decisions": found.decisions,
        "doubts": [
            {
                "decisions": [
                    {"place": image.place(d.insn), "insn": d.text, "target": image.place(d.target)}
                    for d in (one.first, one.second)
                ],
                "loop": None if one.loop is None else image.place(one.loop),
                "about": list(one.about),
                "proved": one.proved,
                "fact": one.fact,
                "cycles": one.cycles,
            }
            for one in found.doubts
        ],
    }
