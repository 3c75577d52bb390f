"""Loops whose bound has a name instead of a number: ``loop PLACE at most NAME + N`` (rule 27).

A number in another fact applies for any parameter, and so does a proof that is exact or at most N.
Any other proof may be far too loose: it is listed beside the parameter, and applies where the
parameter has a number (``numbered``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ilp.constraints.constraint import resolve_constraints
from loopbounds.places import loops_meant
from loopbounds.proof.bound import LoopBound, NamedCount
from quoll.assumptions import LOOP_FACT, Assumption
from quoll.errors import UsageError
from quoll.facts.count_facts import AtMostFact, LoopFact, LoopParameter
from quoll.facts.fact import FactSource
from quoll.facts.located import LocatedFacts
from quoll.facts.read import Facts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph, SuperLoop

__all__ = [
    "LoopBoundParameter",
    "VisitLimit",
    "loop_parameters",
    "named",
    "numbered",
    "open_loops",
    "refuse_unknown",
    "visits",
]


@dataclass(frozen=True, slots=True)
class LoopBoundParameter:
    """A loop's bound: ``name + plus`` header executions per entry.

    With ``nodes``: they execute at most ``name + plus`` times on the whole path, and every
    iteration of the loop goes through one of them.
    """

    name: str
    plus: int
    source: FactSource | None = None  # the fact that states it
    nodes: frozenset[int] = frozenset()

    def bound(self, value: int) -> int:
        """Header executions per entry, for a value of the name."""
        return value + self.plus + bool(self.nodes)

    def numbered(self, values: Mapping[str, int]) -> NamedCount:
        """The evidence of a bound for a value of the name."""
        return NamedCount(str(self.source), str(self), f"{self.name} = {values[self.name]}")

    def __str__(self) -> str:
        most = f"{self.name} + {self.plus}" if self.plus else self.name
        return f"{most} in total" if self.nodes else most


@dataclass(frozen=True, slots=True)
class VisitLimit:
    """``assumption``: these nodes together execute at most ``most`` times on a path."""

    nodes: frozenset[int]
    most: int
    assumption: Assumption


def loop_parameters(
    graph: Supergraph, image: Image, facts: LocatedFacts
) -> dict[int, LoopBoundParameter]:
    """The parameters that facts give to loops, by loop index."""
    stated = facts.of(LoopParameter)
    if not stated:
        return {}
    about = (*(fact for fact in stated if not fact.total), *facts.of(LoopFact))
    found = {}
    for loop, meant in enumerate(loops_meant(graph, image, facts, about, in_part=True)):
        for fact in meant:
            if isinstance(fact, LoopParameter):
                found[loop] = LoopBoundParameter(fact.name, fact.plus, fact.source)
    for total in stated:
        if total.total:
            nodes = counted_nodes(graph, total, facts)
            for loop in bounded_by(graph, nodes):
                found.setdefault(
                    loop, LoopBoundParameter(total.name, total.plus, total.source, nodes)
                )
    return found


def counted_nodes(graph: Supergraph, fact: LoopParameter, facts: LocatedFacts) -> frozenset[int]:
    """The nodes whose executions a fact limits. Raises FactsError where they cannot be counted."""
    limit = AtMostFact(fact.source, fact.place, 1, None)
    return frozenset(n for c in resolve_constraints(graph, facts.stating((limit,))) for n in c.a)


def bounded_by(graph: Supergraph, nodes: frozenset[int]) -> list[int]:
    """The loops that cannot return to their header without going through one of ``nodes``."""
    return [
        loop.index
        for loop in graph.loops
        if nodes & loop.nodes and (loop.header in nodes or not returns(graph, loop, nodes))
    ]


def returns(graph: Supergraph, loop: SuperLoop, without: frozenset[int]) -> bool:
    """Whether an iteration of the loop is possible without these nodes."""
    counted, pending = {loop.header}, [loop.header]
    while pending:
        for e in graph.successors[pending.pop()]:
            after = graph.edges[e].dst
            if after == loop.header:
                return True
            if after in loop.nodes and after not in without and after not in counted:
                counted.add(after)
                pending.append(after)
    return False


def open_loops(
    bounds: Sequence[LoopBound], parameters: Mapping[int, LoopBoundParameter]
) -> dict[int, LoopBoundParameter]:
    """The parameters of the loops without a number as their bound."""
    decided = {b.loop for b in bounds if b.loop in parameters and decides(b, parameters[b.loop])}
    return {loop: p for loop, p in parameters.items() if loop not in decided}


def decides(bound: LoopBound, parameter: LoopBoundParameter) -> bool:
    """Whether a bound is used instead of the parameter."""
    if bound.bound is None:
        return False
    return bound.method == "fact" or bool(bound.exact) or bound.bound <= parameter.bound(0)


def numbered(
    bounds: Sequence[LoopBound],
    parameters: Mapping[int, LoopBoundParameter],
    values: Mapping[str, int],
) -> tuple[LoopBound, ...]:
    """``bounds`` with ``value + plus`` for the loops whose parameter has a value."""
    still = open_loops(bounds, parameters)
    return tuple(
        replace(
            b,
            bound=p.bound(values[p.name]),
            exact=None,
            method="fact",
            evidence=p.numbered(values),
            reason=None,
        )
        if (p := still.get(b.loop)) is not None
        and p.name in values
        and (b.bound is None or p.bound(values[p.name]) < b.bound)
        else b
        for b in bounds
    )


def named(
    bounds: Sequence[LoopBound], parameters: Mapping[int, LoopBoundParameter]
) -> tuple[LoopBound, ...]:
    """``bounds`` with the parameter as the evidence of the loops without a number."""
    still = open_loops(bounds, parameters)
    return tuple(
        replace(b, method="parameter", evidence=NamedCount(str(p.source), str(p)), reason=None)
        if (p := still.get(b.loop)) is not None
        else b
        for b in bounds
    )


def visits(
    parameters: Mapping[int, LoopBoundParameter], values: Mapping[str, int]
) -> tuple[VisitLimit, ...]:
    """The limits of counted nodes whose parameter has a value."""
    known = dict.fromkeys(p for p in parameters.values() if p.nodes and p.name in values)
    return tuple(
        VisitLimit(
            p.nodes,
            values[p.name] + p.plus,
            LOOP_FACT.of(str(p.source), evidence=str(p.numbered(values))),
        )
        for p in known
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
