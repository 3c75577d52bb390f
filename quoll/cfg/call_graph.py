"""The call graph, and the functions that are recursive, directly or not."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from quoll.cfg.cfg import Cfg, Program
from quoll.errors import ControlFlowError, MissingKind, MissingStatement
from quoll.graph.components import components
from quoll.image.image import Image

__all__ = [
    "CallGraph",
    "CallSite",
    "Recursion",
    "call_graph",
    "cutting",
    "recursions",
    "refuse_recursion",
]


@dataclass(frozen=True, slots=True)
class CallSite:
    """``caller`` may call ``callee`` (both entries) at the instruction ``site``."""

    caller: int
    site: int
    callee: int
    tail: bool


@dataclass(frozen=True, slots=True)
class CallGraph:
    """``calls[f]`` are the call sites of f; ``recursive`` are the recursive components."""

    calls: Mapping[int, tuple[CallSite, ...]]
    order: tuple[int, ...]  # callees before callers where there is no recursion
    recursive: tuple[frozenset[int], ...]  # functions that call one another, directly or not
    cycles: tuple[tuple[CallSite, ...], ...]  # the shortest cycle of calls of each component

    def callees(self, function: int) -> tuple[int, ...]:
        """The functions that ``function`` may call, ascending."""
        return tuple(sorted({call.callee for call in self.calls[function]}))


@dataclass(frozen=True, slots=True)
class Recursion:
    """Functions that call one another, directly or not, and a shortest cycle of their calls.

    ``bounded``: every cycle passes a function with a stated or proved depth.
    """

    functions: frozenset[int]
    cycle: tuple[CallSite, ...]
    bounded: bool


def call_graph(program: Program) -> CallGraph:
    """The call graph of all functions of ``program``, searched with callees ascending."""
    calls = {
        entry: tuple(
            sorted(
                (
                    CallSite(entry, block.last.addr, callee, block.tail)
                    for block in cfg.blocks
                    for callee in block.calls
                ),
                key=lambda call: (call.site, call.callee),
            )
        )
        for entry, cfg in program.functions.items()
    }
    callees = {entry: sorted({call.callee for call in made}) for entry, made in calls.items()}
    order: list[int] = []
    recursive, cycles = [], []
    for members in map(sorted, components(sorted(calls), lambda f: callees.get(f, ()))):
        order.extend(members)
        if len(members) > 1 or members[0] in callees.get(members[0], ()):
            recursive.append(frozenset(members))
            cycles.append(_shortest_cycle(calls, recursive[-1], members[0]))
    return CallGraph(calls, tuple(order), tuple(recursive), tuple(cycles))


def _shortest_cycle(
    calls: Mapping[int, tuple[CallSite, ...]], members: Set[int], start: int
) -> tuple[CallSite, ...]:
    """A shortest path of calls inside ``members`` from ``start`` back to it."""
    chains: list[tuple[CallSite, ...]] = [()]
    seen: set[int] = set()
    for chain in chains:
        for call in calls[chain[-1].callee if chain else start]:
            if call.callee == start:
                return (*chain, call)
            if call.callee in members and call.callee not in seen:
                seen.add(call.callee)
                chains.append((*chain, call))
    raise AssertionError("a recursive component has a cycle through each member")


def refuse_recursion(
    program: Program,
    image: Image,
    bounded: Set[int] = frozenset(),
    reasons: Mapping[int, str] | None = None,
) -> None:
    """Raise ControlFlowError showing the calls of the first cycle without a ``bounded`` function.

    It names functions that are together on every such cycle. ``reasons``: by function, why no depth
    is proved.
    """
    cuts = _cuts(program, bounded)
    if not cuts:
        return
    deepest, cycle = next(iter(cuts.items()))
    names = [program.functions[call.caller].name for call in cycle]
    sites = "; ".join(f"{image.place(call.site)} calls {_name(program, call)}" for call in cycle)
    known = reasons or {}
    why = next((f": {known[call.caller]}" for call in cycle if call.caller in known), "")
    raise ControlFlowError(
        f"recursion: {' -> '.join([*names, names[0]])} ({sites}){why}",
        where=image.place(cycle[0].caller),
        hint="state how many activations there can be at a time: "
        f"recursion of {program.functions[deepest].name} at most N",
        missing=[
            MissingStatement(
                function,
                MissingKind.RECURSION,
                f"recursion: {' -> '.join(_name(program, call) for call in (c[-1], *c))}",
                "recursion of PLACE at most N",
                "recursion of PLACE at most 1",
            )
            for function, c in cuts.items()
        ],
    )


def cutting(graph: CallGraph, members: Set[int]) -> tuple[int, ...]:
    """The functions of a component each of which is on all its cycles, ascending."""
    return tuple(f for f in sorted(members) if not _recursive_without(graph, members, f))


def _cuts(program: Program, bounded: Set[int]) -> dict[int, tuple[CallSite, ...]]:
    """Functions that are together on every cycle without a ``bounded`` one, each with a cycle.

    Of a shortest cycle of each component, the function without which the fewest others are
    recursive.
    """
    found: dict[int, tuple[CallSite, ...]] = {}
    while True:
        graph = _past(program, bounded | found.keys())
        if not graph.cycles:
            return found
        for members, cycle in zip(graph.recursive, graph.cycles, strict=True):
            callers = [call.caller for call in cycle]
            best = min(callers, key=lambda f: len(_recursive_without(graph, members, f)))
            found[best] = cycle


def _recursive_without(graph: CallGraph, members: Set[int], function: int) -> list[int]:
    """The functions of a component that are still recursive if ``function`` makes no call."""

    def callees(caller: int) -> list[int]:
        return [] if caller == function else [c for c in graph.callees(caller) if c in members]

    return [
        one
        for together in components(sorted(members), callees)
        if len(together) > 1 or together[0] in callees(together[0])
        for one in together
    ]


def recursions(program: Program) -> list[Recursion]:
    """All recursive components of ``program``."""
    graph = call_graph(program)
    past = _past(program, program.guidance.depths.keys())
    endless = {call.caller for cycle in past.cycles for call in cycle}
    return [
        Recursion(members, cycle, not members & endless)
        for members, cycle in zip(graph.recursive, graph.cycles, strict=True)
    ]


def _past(program: Program, bounded: Set[int]) -> CallGraph:
    """The calls of all but the ``bounded`` functions."""
    return call_graph(replace(program, functions=_without_calls_of(program, bounded)))


def _without_calls_of(program: Program, functions: Set[int]) -> dict[int, Cfg]:
    return {
        entry: cfg
        if entry not in functions
        else replace(cfg, blocks=tuple(replace(b, calls=()) for b in cfg.blocks))
        for entry, cfg in program.functions.items()
    }


def _name(program: Program, call: CallSite) -> str:
    return program.functions[call.callee].name
