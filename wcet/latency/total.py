"""The worst interrupt latency of a result, or the reason why it has none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from ilp.parametric import ParametricBound, largest
from wcet.analysis.result import AnalysisResult
from wcet.platforms.platform_model import INTERRUPT

__all__ = ["NoLatency", "NoLatencyKind", "latency_function", "no_latency"]


class NoLatencyKind(Enum):
    """The kind of reason why a result has no latency."""

    UNBOUNDED = "there is no bound for"
    LEFT_OUT = "it needs every entry of the platform; not analysed:"
    NO_INTERRUPT = "the platform names no interrupt entry"
    UNMASKING = "interrupts may be unmasked before a path ends, in"
    FUNCTION = "it is a function; give parameters a number with --set:"


@dataclass(frozen=True, slots=True)
class NoLatency:
    """A reason, and the names that it concerns: of entries, or of parameters."""

    kind: NoLatencyKind
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind.value} {', '.join(self.names)}".strip()


def no_latency(result: AnalysisResult) -> NoLatency | None:
    """Why ``result`` has no latency; None if it has one."""
    if result.latency is not None:
        return None
    if INTERRUPT not in result.platform.entries:
        return NoLatency(NoLatencyKind.NO_INTERRUPT)
    if result.unbounded:
        return NoLatency(NoLatencyKind.UNBOUNDED, tuple(result.unbounded))
    left_out = [name for name in result.platform.entries if name not in result.entries]
    if left_out:
        return NoLatency(NoLatencyKind.LEFT_OUT, tuple(left_out))
    unmasking = [name for name, entry in result.entries.items() if entry.unmasking]
    if unmasking:
        return NoLatency(NoLatencyKind.UNMASKING, tuple(unmasking))
    found = [entry.parametric for entry in result.entries.values() if entry.parametric]
    names = dict.fromkeys(name for function in found for name in function.names)
    return NoLatency(NoLatencyKind.FUNCTION, tuple(names))


def latency_function(result: AnalysisResult, together: int) -> ParametricBound | None:
    """The latency as a function of parameters, in cycles; None if it has none, or is a number.

    The interrupt path must have a number; ``together`` such paths follow the longest stretch.
    """
    reason = no_latency(result)
    if reason is None or reason.kind is not NoLatencyKind.FUNCTION:
        return None
    interrupt = result.entries[INTERRUPT]
    longest = largest([(entry.parametric, entry.cycles) for entry in result.entries.values()])
    if interrupt.parametric is not None or longest is None:
        return None
    more = together * interrupt.cycles + (result.platform.controller_delay or 0)
    pieces = tuple(replace(piece, constant=piece.constant + more) for piece in longest.pieces)
    return replace(longest, pieces=pieces)
