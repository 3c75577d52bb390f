"""The best suggestions of one entry, by the cycles that each statement saves.

The most promising ones are tried first, and each is passed on when it is found: the search may be
interrupted, or limited in time, and then has the best of the tried ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quoll.errors import UsageError
from quoll.processes.time_limit import TimeIsUp, time_limit
from wcet.advice.count_suggestions import CountProgram, CountSuggestion, of_calls, of_loops
from wcet.advice.input_suggestions import of_inputs
from wcet.advice.recorded import RecordedCounts
from wcet.advice.suggestion import Suggestion
from wcet.analysis.analysis_options import AnalysisOptions
from wcet.analysis.result import AnalysisResult, EntryResult

__all__ = ["Advice", "AdviceSearch"]

LONGEST = 1e8  # seconds: no limit


@dataclass(frozen=True, slots=True)
class Advice:
    """``suggestions``: the best first; ``complete``: whether all were tried."""

    suggestions: tuple[Suggestion, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class AdviceSearch:
    """A search for at most ``most`` suggestions within ``seconds``, if there is a limit.

    ``progress`` gets the line that is tried next, ``found`` each suggestion that saves cycles.
    """

    most: int
    seconds: float | None
    progress: Callable[[str], None]
    found: Callable[[Suggestion], None]

    def __call__(
        self,
        result: AnalysisResult,
        entry: EntryResult,
        options: AnalysisOptions,
        recorded: RecordedCounts,
    ) -> Advice:
        """The suggestions for ``entry`` that save cycles.

        Half of them save most for each statement. In the other half suggestions on memory and
        options come before counts, as counts of nested loops and calls mostly save the same cycles.
        Counts come from ``recorded`` executions where these run the place.

        Raises UsageError where the bound is a function, or its counts are not known.
        """
        _refuse_uncounted(entry)
        useful: list[CountSuggestion | Suggestion] = []
        complete = False
        try:
            with time_limit(LONGEST if self.seconds is None else self.seconds):
                for one in self._tried(CountProgram(result, entry, options, recorded)):
                    if _plain(one).saves > 0:
                        useful.append(one)
                        self.found(_plain(one))
                complete = True
        except (TimeIsUp, KeyboardInterrupt):
            pass  # the best of the tried ones
        useful.sort(key=_rank)
        half = -(-self.most // 2)
        rest = sorted(useful[half:], key=lambda one: isinstance(one, CountSuggestion))
        chosen = sorted([*useful[:half], *rest[: self.most - half]], key=_rank)
        return Advice(tuple(_whole(one) if complete else _plain(one) for one in chosen), complete)

    def _tried(self, counted: CountProgram) -> Iterator[CountSuggestion | Suggestion]:
        """Every suggestion, counts of loops first: only the integer program is solved again."""
        for kind in (of_loops, of_calls):
            for suggestion in kind(counted):
                self.progress(suggestion.suggestion.line)
                yield suggestion
        yield from of_inputs(counted.result, counted.entry, counted.options, self.progress)


def _refuse_uncounted(entry: EntryResult) -> None:
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


def _rank(one: CountSuggestion | Suggestion) -> tuple[float, str]:
    plain = _plain(one)
    return -plain.saves / plain.statements, plain.line


def _plain(one: CountSuggestion | Suggestion) -> Suggestion:
    return one.suggestion if isinstance(one, CountSuggestion) else one


def _whole(one: CountSuggestion | Suggestion) -> Suggestion:
    return one.whole() if isinstance(one, CountSuggestion) else one
