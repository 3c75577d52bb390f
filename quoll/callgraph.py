"""Who calls whom, and which functions call themselves in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quoll.cfg import Program
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


def refuse_recursion(program: Program, image: Image) -> None:
    """Raise ControlFlowError showing the calls of the first cycle, if there is one."""
    cycles = call_graph(program).cycles
    if not cycles:
        return
    cycle = cycles[0]
    names = [program.functions[call.caller].name for call in cycle]
    sites = "; ".join(f"{image.place(call.site)} calls {_name(program, call)}" for call in cycle)
    raise ControlFlowError(
        f"recursion: {' -> '.join([*names, names[0]])} ({sites})",
        where=image.place(cycle[0].caller),
        hint="recursive functions need a bound on their depth, which is not supported: "
        "rewrite one of these calls",
    )


def _name(program: Program, call: Call) -> str:
    return program.functions[call.callee].name
