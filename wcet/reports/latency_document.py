"""The longest stretches and the latency as JSON."""

from __future__ import annotations

from typing import Any

from quoll.assumptions import table
from wcet.analysis.result import AnalysisResult, EntryResult
from wcet.latency.longest import RankedStretch
from wcet.latency.stretch import Stretch, StretchLoop, function_of
from wcet.latency.total import latency_function, no_latency
from wcet.latency.view import LatencyView
from wcet.reports.latency_text import (
    beginning,
    bounded_by,
    fact_without,
    most_of,
)

__all__ = ["to_document"]

SCHEMA_VERSION = 1


def to_document(view: LatencyView, together: int, at_most: int | None) -> dict[str, Any]:
    """All of the result; ``at_most``: the declared latency in cycles."""
    result = view.result
    latency, reason = result.latency, no_latency(result)
    function = latency_function(result, together)
    return {
        "schema_version": SCHEMA_VERSION,
        "kernel": {"path": str(result.kernel), "sha256": result.image.sha256},
        "platform": result.platform.name,
        "clock_hz": result.platform.clock_hz,
        "facts": list(result.facts_files),
        "stretches": [_stretch(view, one) for one in view.stretches],
        "latency": latency
        and {
            "cycles": latency.cycles,
            "microseconds": result.microseconds(latency.cycles),
            "longest_entry": latency.longest,
            "longest_cycles": latency.longest_cycles,
            "interrupt_cycles": latency.interrupt_cycles,
            "interrupts": latency.together,
            "controller_cycles": latency.delay,
        },
        "latency_function": None if function is None else str(function),
        "no_latency": None if reason is None else str(reason),
        "at_most_cycles": at_most,
        "holds": None if at_most is None else latency is not None and latency.cycles <= at_most,
        "unbounded": [
            {"entry": name, "message": str(error)} for name, error in result.unbounded.items()
        ],
        "assumptions": list(map(str, result.assumptions)),
        "assumption_kinds": table(result.assumptions),
    }


def _stretch(view: LatencyView, one: RankedStretch) -> dict[str, Any]:
    result, stretch, bound = view.result, one.stretch, one.stretch.result
    place = result.image.place
    return {
        "entry": bound.name,
        "cycles": bound.cycles,
        "microseconds": result.microseconds(bound.cycles),
        "function": _function(bound),
        "example": dict(bound.example) if stretch.function else {},
        "begins": {
            "at": beginning(view, stretch).value,
            "place": None if stretch.start is None else place(stretch.start),
            "calls": list(map(result.function, stretch.callers)),
        },
        "ends": {
            "test": None if stretch.test is None else place(stretch.test),
            "place": None if stretch.last is None else place(stretch.last),
        },
        "operation": _operation(result, stretch),
        "decision": _decision(result, stretch),
        "loops": [_loop(result, loop) for loop in stretch.loops()],
        "without": {
            "fact": fact_without(result.image, one),
            "cycles": None if one.remaining is None else one.remaining.cycles,
            "function": _function(one.remaining),
        },
    }


def _function(bound: EntryResult | None) -> str | None:
    function = None if bound is None else function_of(bound)
    return None if function is None else str(function)


def _operation(result: AnalysisResult, stretch: Stretch) -> dict[str, Any] | None:
    operation = stretch.operation
    if operation is None:
        return None
    return {
        "calls": list(map(result.function, operation.functions)),
        "loop": None if operation.loop is None else result.image.place(operation.loop),
        "cycles": operation.cycles,
    }


def _decision(result: AnalysisResult, stretch: Stretch) -> dict[str, Any] | None:
    decided = stretch.decided
    if decided is None:
        return None
    return {
        "place": result.image.place(decided.branch),
        "ways": decided.decision.ways,
        "selected": result.image.place(decided.selected.addr),
    }


def _loop(result: AnalysisResult, loop: StretchLoop) -> dict[str, Any]:
    return {
        "place": result.image.place(loop.header),
        "entries": loop.entries,
        "iterations": loop.iterations,
        "cycles": loop.cycles,
        "bounds": [
            {
                "at_most": most_of(bound),
                "method": bound.method,
                "bounded_by": bounded_by(bound),
                "evidence": bound.explained,
            }
            for bound in loop.bounds
        ],
    }
