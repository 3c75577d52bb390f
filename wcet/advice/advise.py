"""The largest levers of one entry."""

from __future__ import annotations

from collections.abc import Callable

from quoll.errors import UsageError
from wcet.advice.counts import CountLever, CountProgram, of_calls, of_loops
from wcet.advice.inputs import of_inputs
from wcet.advice.lever import Lever
from wcet.advice.recorded import Recorded
from wcet.analysis.options import Options
from wcet.analysis.result import EntryResult, Result

__all__ = ["advice"]


def advice(
    result: Result,
    entry: EntryResult,
    options: Options,
    most: int,
    recorded: Recorded,
    progress: Callable[[str], None],
) -> tuple[Lever, ...]:
    """At most ``most`` levers that save anything, the largest first.

    Half of them are the largest ones. In the other half those on memory and options come before
    counts: what counts of nested loops and calls save is mostly the same cycles. Counts are those
    of ``recorded`` executions where these run the place.

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
    found: list[CountLever | Lever] = []
    for kind in (of_loops, of_calls):
        for lever in kind(counted):
            progress(lever.lever.line)
            found.append(lever)
    for lever_of_input in of_inputs(result, entry, options, progress):
        found.append(lever_of_input)
    useful = [one for one in found if _plain(one).saves > 0]
    useful.sort(key=_rank)
    half = -(-most // 2)
    rest = sorted(useful[half:], key=lambda one: isinstance(one, CountLever))
    chosen = sorted([*useful[:half], *rest[: most - half]], key=_rank)
    return tuple(one.whole() if isinstance(one, CountLever) else one for one in chosen)


def _rank(one: CountLever | Lever) -> tuple[int, str]:
    return -_plain(one).saves, _plain(one).line


def _plain(one: CountLever | Lever) -> Lever:
    return one.lever if isinstance(one, CountLever) else one
