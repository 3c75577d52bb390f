"""A class of executions of a function, by the word that they return in r0."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.intervals.strided_interval import ValueSet

__all__ = ["CalledResult", "ResultClass"]


@dataclass(frozen=True, slots=True)
class CalledResult:
    """A result of the call that ``node`` makes along ``edge``, or at the end of the path (None).

    ``level``: of ``FunctionReplacement.limited`` of ``function``; None if it has one bound.
    """

    node: int
    edge: int | None
    function: int
    level: int | None


@dataclass(frozen=True, slots=True)
class ResultClass:
    """The executions that return one of ``words``.

    They take none of ``edges``, and no call has one of ``results``.
    """

    words: ValueSet
    edges: frozenset[int]
    results: frozenset[CalledResult]
