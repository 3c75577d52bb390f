"""Loops whose bound has a name instead of a number: ``loop PLACE at most NAME + N`` (rule 27).

A parameter counts only where nothing else bounds the loop: a proof, or a number in another fact,
holds whatever the parameter is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from loopbounds.bound import LoopBound
from loopbounds.places import facts_of_loops
from quoll.errors import UsageError
from quoll.facts import Facts, LoopFact, LoopParameter, Source
from quoll.image import Image
from quoll.supergraph import Supergraph

__all__ = ["Parameter", "loop_parameters", "numbered", "open_loops", "refuse_unknown"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A loop's bound: ``name + plus`` header executions per entry."""

    name: str
    plus: int
    source: Source | None = None  # the fact that says so

    def __str__(self) -> str:
        return f"{self.name} + {self.plus}" if self.plus else self.name


def loop_parameters(graph: Supergraph, image: Image, facts: Facts) -> dict[int, Parameter]:
    """The parameter of each loop that a fact gives one, by loop index."""
    named = {fact.source: fact for fact in facts.of(LoopParameter)}
    places = Facts(tuple(LoopFact(f.source, f.place, 1) for f in named.values()))
    found = {}
    for loop, stated in enumerate(facts_of_loops(graph, image, places)):
        for fact in stated:
            parameter = named[fact.source]
            found[loop] = Parameter(parameter.name, parameter.plus, fact.source)
    return found


def open_loops(
    bounds: Sequence[LoopBound], parameters: Mapping[int, Parameter]
) -> dict[int, Parameter]:
    """The parameters of the loops that nothing else bounds."""
    known = {b.loop for b in bounds if b.bound is not None}
    return {loop: p for loop, p in parameters.items() if loop not in known}


def numbered(
    bounds: Sequence[LoopBound], parameters: Mapping[int, Parameter], values: Mapping[str, int]
) -> tuple[LoopBound, ...]:
    """``bounds`` with ``value + plus`` for the loops whose parameter has a value."""
    still = open_loops(bounds, parameters)
    return tuple(
        replace(
            b,
            bound=values[p.name] + p.plus,
            method="fact",
            evidence=f"{p.source}: {p}, and {p.name} = {values[p.name]}",
            reason="",
        )
        if (p := still.get(b.loop)) is not None and p.name in values
        else b
        for b in bounds
    )


def refuse_unknown(facts: Facts, names: Iterable[str]) -> None:
    """Raise UsageError for a name that is the parameter of no loop."""
    known = dict.fromkeys(fact.name for fact in facts.of(LoopParameter))
    for name in names:
        if name not in known:
            raise UsageError(
                f"no fact has a loop with the parameter '{name}'",
                hint=f"there are: {', '.join(known)}" if known else "there are none",
            )
