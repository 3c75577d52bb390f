"""Functions in which no path ends, and which never return: panic, halt, idle.

Control that enters one has left all paths for good (rule 53), so a path should be stated to end
where it enters the first of them. The code before their end, such as printing, then needs no fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from quoll.cfg.cfg import Block, Cfg
from quoll.cfg.unresolved import UnresolvedTransfer
from quoll.graph.closure import closure
from quoll.graph.components import components

__all__ = ["EndlessFunction", "endless_functions"]


@dataclass(frozen=True, slots=True)
class EndlessFunction:
    """An endless function that others call.

    ``behind``: it, and the functions that only such ones reach. ``halts``: control then only stays
    in loops that do nothing, and all code on the way is known, so that no statement is needed.
    """

    entry: int
    behind: frozenset[int]
    halts: bool


def endless_functions(
    functions: Mapping[int, Cfg], entry: int, unresolved: Mapping[int, UnresolvedTransfer]
) -> tuple[EndlessFunction, ...]:
    """The endless functions that ``entry`` reaches through functions that are not endless.

    An unresolved call is assumed to come back, and any other unresolved transfer to end a path.
    """
    ending = _ending(functions, {a for a, one in unresolved.items() if not one.comes_back})
    endless = functions.keys() - ending

    def callees(function: int) -> set[int]:
        return {callee for block in functions[function].blocks for callee in block.calls}

    if entry in endless:
        return ()
    others = closure([entry], lambda f: callees(f) - endless)
    first = {callee for function in others for callee in callees(function)} & endless

    def halts(function: int) -> bool:
        reached = [functions[f] for f in closure([function], callees)]
        known = all(b.last.addr not in unresolved for cfg in reached for b in cfg.blocks)
        return known and all(map(_stays_idle, reached))

    return tuple(
        EndlessFunction(function, frozenset(closure([function], callees) - others), halts(function))
        for function in sorted(first)
    )


def _stays_idle(cfg: Cfg) -> bool:
    """Whether control can stay in the function itself only in loops that do nothing."""
    onward: dict[int, list[int]] = {block.index: [] for block in cfg.blocks}
    for edge in cfg.edges:
        onward[edge.src].append(edge.dst)
    for members in components(onward, onward.__getitem__):
        blocks = [cfg.blocks[n] for n in members]
        targets = {to for n in members for to in onward[n]}
        leaves = not targets <= set(members) or any(b.calls or b.returns for b in blocks)
        if targets and not leaves and not all(block.does_nothing for block in blocks):
            return False
    return True


def _ending(functions: Mapping[int, Cfg], doubts: Set[int]) -> Set[int]:
    """The functions that may return, and those in which, or in whose callees, a path may end."""
    callers: dict[int, list[int]] = {}
    for entry, cfg in functions.items():
        for block in cfg.blocks:
            for callee in block.calls:
                callers.setdefault(callee, []).append(entry)
    own = [e for e, cfg in functions.items() if any(_ends(b, doubts) for b in cfg.blocks)]
    returning = {entry for entry, cfg in functions.items() if cfg.returns}
    return returning | closure(own, lambda entry: callers.get(entry, ()))


def _ends(block: Block, doubts: Set[int]) -> bool:
    return block.exits or bool(block.passes) or block.last.addr in doubts
