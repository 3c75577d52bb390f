"""The largest suggestions of one entry."""

from __future__ import annotations

from collections.abc import Callable

from quoll.errors import UsageError
from wcet.advice.count_suggestions import CountProgram, CountSuggestion, of_calls, of_loops
from wcet.advice.input_suggestions import of_inputs
from wcet.advice.recorded import RecordedCounts
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult

__all__ = ["advice"]


def advice(
    result: AnalysisResult,
    entry: EntryResult,
    options: AnalysisOptions,
    most: int,
    recorded: RecordedCounts,
    progress: Callable[[str], None],
) -> tuple[Suggestion, ...]:
    """At most ``most`` suggestions that save cycles, the largest first.

    Half of them are the largest ones. In the other half suggestions on memory and options come
    before counts, as counts of nested loops and calls mostly save the same cycles. Counts come from
    ``recorded`` executions where these run the place.

    Raises UsageError where the bound is a function, or its counts are not known.
    """
    if entry.parametric is not None:
        names = ", ".join(entry.example)
        raise UsageError(
            f"the bound of {entry.name} is a function of {names}",
            hint="give numbers with --set NAME=N",
        )
    if not entry.solution.nodes:
        raise UsageError(
            f"no counts are known that reach the bound of {entry.name}",
            hint="a longer --time-limit, or smaller bounds of loops",
        )
    counted = CountProgram(result, entry, options, recorded)
    found: list[CountSuggestion | Suggestion] = []
    for kind in (of_loops, of_calls):
        for suggestion in kind(counted):
            progress(suggestion.suggestion.line)
            found.append(suggestion)
    for input_suggestion in of_inputs(result, entry, options, progress):
        found.append(input_suggestion)
    useful = [one for one in found if _plain(one).saves > 0]
    useful.sort(key=_rank)
    half = -(-most // 2)
    rest = sorted(useful[half:], key=lambda one: isinstance(one, CountSuggestion))
    chosen = sorted([*useful[:half], *rest[: most - half]], key=_rank)
    return tuple(one.whole() if isinstance(one, CountSuggestion) else one for one in chosen)


def _rank(one: CountSuggestion | Suggestion) -> tuple[int, str]:
    return -_plain(one).saves, _plain(one).line


def _plain(one: CountSuggestion | Suggestion) -> Suggestion:
    return one.suggestion if isinstance(one, CountSuggestion) else one
