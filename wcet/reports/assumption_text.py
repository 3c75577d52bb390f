"""The assumptions of a result by their origin: stated, of the program, of the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quoll.assumptions import Assumption
from wcet.analysis.result import AnalysisResult
from wcet.reports.result_text import TextStyle, fact_labels, heading

__all__ = ["by_origin", "summed_up"]


def summed_up(found: Sequence[Assumption]) -> str:
    """One line: how many there are, how many are stated, how many executions may contradict."""
    stated, program, _ = _divided(found)
    return (
        f"{len(found)} assumptions, {len(stated)} stated by you, {len(program)} the program may "
        "contradict"
    )


def by_origin(result: AnalysisResult, style: TextStyle) -> Iterator[str]:
    """All assumptions, with a heading for each origin; the facts with their evidence first."""
    yield heading(result, style)
    yield from fact_labels(result, style)
    stated, program, others = _divided(result.assumptions)
    for title, group in (
        ("stated by you", stated),
        ("which executions of the program may contradict: wcet check-facts, wcet replay", program),
        ("about the board, the moment of the interrupt and the start", others),
    ):
        if group:
            rows = [f"  {one}" for one in group]
            yield "\n".join([style.bold(f"{len(group)} {title}"), *rows])


def _divided(
    found: Sequence[Assumption],
) -> tuple[list[Assumption], list[Assumption], list[Assumption]]:
    """The stated ones, those that executions may contradict, and the others."""
    stated = [one for one in found if one.source]
    program = [one for one in found if not one.source and one.kind.of_program]
    others = [one for one in found if not one.source and not one.kind.of_program]
    return stated, program, others
