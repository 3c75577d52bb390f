"""Proved exclusions as text and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ilp.constraints.proved_exclusions import ProvedExclusion

__all__ = ["exclusion_json", "exclusion_line", "exclusions_text"]


def exclusions_text(exclusions: Sequence[ProvedExclusion]) -> Iterator[str]:
    """Each exclusion; the same in several contexts once, with the words of the first one."""
    alike: dict[ProvedExclusion, list[ProvedExclusion]] = {}
    for one in exclusions:
        alike.setdefault(replace(one, about=()), []).append(one)
    for first, *others in alike.values():
        yield from exclusion_text(first, len(others) + 1)


def exclusion_text(exclusion: ProvedExclusion, contexts: int) -> Iterator[str]:
    """The decisions, a line each, and the reason."""
    each = f", in {contexts} contexts" if contexts > 1 else ""
    yield f"  proved: {together(exclusion)}{each}:"
    yield from (f"    {text}" for text in parts(exclusion))
    for word in exclusion.about:
        yield f"      it depends on {word}"


def exclusion_line(exclusion: ProvedExclusion) -> str:
    """The decisions in one line."""
    return f"{together(exclusion)}: {'; '.join(parts(exclusion))}"


def together(exclusion: ProvedExclusion) -> str:
    """How many of the decisions are taken, and in which passes."""
    within = "on a path" if exclusion.loop is None else f"in an iteration of {exclusion.loop}"
    if exclusion.most and exclusion.counts:
        return f"at most {exclusion.most} returns to both headers {within}"
    if exclusion.most:
        return f"at most {exclusion.most} times after each entry of the loop {exclusion.loop}"
    if exclusion.distance > 1:
        return f"in at most one of {exclusion.distance} consecutive iterations of {exclusion.loop}"
    many = len(exclusion.decisions) + len(exclusion.counts)
    taken = {1: "never", 2: "not both"}.get(many, f"not all {many}")
    return f"{taken} {within}"


def parts(exclusion: ProvedExclusion) -> Iterator[str]:
    """The instructions that decide, and where control goes; the loops, and how often they run."""
    for one in exclusion.decisions:
        yield f"{one.place}: '{one.insn}' goes to {one.target}"
    for loop, least in exclusion.counts:
        often = "" if exclusion.most else f" executes its header at least {least} times"
        yield f"the loop {loop}{often}"


def exclusion_json(exclusion: ProvedExclusion) -> dict[str, Any]:
    """The loop, the distance, the decisions and their words."""
    return {
        "loop": exclusion.loop,
        "distance": exclusion.distance,
        "most": exclusion.most,
        "decisions": [
            {"place": d.place, "insn": d.insn, "target": d.target} for d in exclusion.decisions
        ],
        "counts": [{"loop": loop, "least": least} for loop, least in exclusion.counts],
        "about": list(exclusion.about),
    }
