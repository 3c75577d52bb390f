"""Proved exclusions as text and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ilp.constraints.proved_exclusions import PathDecision, ProvedExclusion

__all__ = ["exclusion_json", "exclusion_line", "exclusion_text"]


def exclusion_text(exclusion: ProvedExclusion) -> Iterator[str]:
    """The decisions, a line each, and the reason."""
    yield f"  proved: {together(exclusion)}:"
    yield from (f"    {decision_text(one)}" for one in exclusion.decisions)
    for word in exclusion.about:
        yield f"      it depends on {word}"


def exclusion_line(exclusion: ProvedExclusion) -> str:
    """The decisions in one line."""
    return f"{together(exclusion)}: {'; '.join(map(decision_text, exclusion.decisions))}"


def together(exclusion: ProvedExclusion) -> str:
    """How many of the decisions are taken, and in which passes."""
    if exclusion.distance > 1:
        return f"in at most one of {exclusion.distance} consecutive iterations of {exclusion.loop}"
    many = len(exclusion.decisions)
    taken = {1: "never", 2: "not both"}.get(many, f"not all {many}")
    within = "on a path" if exclusion.loop is None else f"in an iteration of {exclusion.loop}"
    return f"{taken} {within}"


def decision_text(decision: PathDecision) -> str:
    """The instruction that decides, and where control goes."""
    return f"{decision.place}: '{decision.insn}' goes to {decision.target}"


def exclusion_json(exclusion: ProvedExclusion) -> dict[str, Any]:
    """The loop, the distance, the decisions and their words."""
    return {
        "loop": exclusion.loop,
        "distance": exclusion.distance,
        "decisions": [
            {"place": d.place, "insn": d.insn, "target": d.target} for d in exclusion.decisions
        ],
        "about": list(exclusion.about),
    }
