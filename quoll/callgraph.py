"""Who calls whom, and which functions call themselves in the end."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from quoll.cfg import Cfg, Program
from quoll.components import components
from quoll.errors import ControlFlowError
from quoll.image import Image

__all__ = ["Call", "CallGraph", "call_graph", "refuse_recursion"]


@dataclass(frozen=True, slots=True)
class Call:
    """``caller`` may call ``callee`` (both entries) at the instruction ``site``."""

    caller: int
    site: int
    callee: int
    tail: bool


@dataclass(frozen=True, slots=True)
class CallGraph:
    """``calls[f]`` are the calls that f makes, by site; ``cycles`` the recursive components."""

    calls: Mapping[int, tuple[Call, ...]]
    order: tuple[int, ...]  # callees before callers where there is no recursion
    cycles: tuple[tuple[Call, ...], ...]  # one closed chain of calls each, the shortest

    def callees(self, function: int) -> tuple[int, ...]:
        """The functions that ``function`` may call, ascending."""
        return tuple(sorted({call.callee for call in self.calls[function]}))


def call_graph(program: Program) -> CallGraph:
    """The call graph of all functions of ``program``."""
    calls = {
        entry: tuple(
            sorted(
                (
                    Call(entry, block.last.addr, callee, block.tail)
                    for block in cfg.blocks
                    for callee in block.calls
                ),
                key=lambda call: (call.site, call.callee),
            )
        )
        for entry, cfg in program.functions.items()
    }
    entries = sorted(calls)
    number = {entry: i for i, entry in enumerate(entries)}
    successors = [sorted({number[call.callee] for call in calls[entry]}) for entry in entries]
    order: list[int] = []
    cycles = []
    for component in components(successors):
        members = [entries[i] for i in component]
        order.extend(members)
        if len(members) > 1 or component[0] in successors[component[0]]:
            cycles.append(_shortest_cycle(calls, set(members), members[0]))
    return CallGraph(calls, tuple(order), tuple(cycles))


def _shortest_cycle(
    calls: Mapping[int, tuple[Call, ...]], members: set[int], start: int
) -> tuple[Call, ...]:
    """A shortest chain of calls inside ``members`` from ``start`` back to it."""
    chains: list[tuple[Call, ...]] = [()]
    seen: set[int] = set()
    for chain in chains:
        for call in calls[chain[-1].callee if chain else start]:
            if call.callee == start:
                return (*chain, call)
            if call.callee in members and call.callee not in seen:
                seen.add(call.callee)
                chains.append((*chain, call))
    raise AssertionError("a recursive component has a cycle through each member")


def refuse_recursion(program: Program, image: Image, bounded: Set[int] = frozenset()) -> None:
    """Raise ControlFlowError showing the calls of the first cycle past no ``bounded`` function."""
    cycles = call_graph(replace(program, functions=_without_calls_of(program, bounded))).cycles
    if not cycles:
        return
    cycle = cycles[0]
    names = [program.functions[call.caller].name for call in cycle]
    sites = "; ".join(f"{image.place(call.site)} calls {_name(program, call)}" for call in cycle)
    raise ControlFlowError(
        f"recursion: {' -> '.join([*names, names[0]])} ({sites})",
        where=image.place(cycle[0].caller),
        hint="state how many activations there can be at a time: "
        f"recursion of {names[0]} at most N",
    )


def _without_calls_of(program: Program, functions: Set[int]) -> dict[int, Cfg]:
    return {
        entry: cfg
        if entry not in functions
        else replace(cfg, blocks=tuple(replace(b, calls=()) for b in cfg.blocks))
        for entry, cfg in program.functions.items()
    }


def _name(program: Program, call: Call) -> str:
    return program.functions[call.callee].name
