"""Calls of summarised functions whose cycles depend on the counts of places, or on the result.

A fact may limit the executions of a place on the whole path, and the place may be inside of a
function with a summary. The function then has a bound for each range of counts. It may also have
one for each class of its result. A call is charged the largest bound; an option takes less cycles,
executes the places at least so often, and has a result of its class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.costs import CallOption, LimitedCall
from quoll.facts.applied import FunctionReplacement
from quoll.inlining.supergraph import Supergraph

__all__ = ["limited_calls"]


def limited_calls(graph: Supergraph, outstanding: int) -> tuple[LimitedCall, ...]:
    """The calls past an edge, or at the end of a path, that have several options.

    ``outstanding``: cycles charged in addition for a function that was not analysed.
    """
    if not any(one.limited for one in graph.guidance.replaced.values()):
        return ()
    found: list[LimitedCall] = []
    for number, edge in enumerate(graph.edges):
        if graph.passed(number):
            found += _at(graph, edge.src, number, outstanding)
    for node in graph.exits:
        if graph.nodes[node].block.tail:
            found += _at(graph, node, None, outstanding)
    return tuple(found)


def _at(graph: Supergraph, node: int, edge: int | None, outstanding: int) -> Iterator[LimitedCall]:
    """The call made by a node, if it has several options."""
    replaced = graph.guidance.replaced
    options = [
        option
        for callee in graph.nodes[node].block.passes
        for option in _options(callee, replaced[callee], outstanding)
    ]
    if any(option.counts or option.result for option in options):
        charged = max(options, key=lambda option: (option.cycles, not option.counts))
        options.remove(charged)
        yield LimitedCall(node, edge, charged, tuple(options))


def _options(callee: int, replaced: FunctionReplacement, outstanding: int) -> Sequence[CallOption]:
    if replaced.limited:
        return [
            CallOption(callee, at, one.cycles, one.counts, one.result)
            for at, one in enumerate(replaced.limited)
        ]
    assert replaced.cycles is not None, "charged before it was bounded"
    cycles = replaced.cycles + (0 if replaced.settled else outstanding)
    return [CallOption(callee, None, cycles, ())]
