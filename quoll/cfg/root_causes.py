"""Unresolved transfers that others follow from: those that a fact should resolve first.

A function with an unresolved transfer may return (rule 3), so control is followed behind its calls,
perhaps into other functions or data. Unresolved places there are consequences: the fact about the
transfer may say that no path goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from quoll.cfg.cfg import Block, Cfg, Edge, EdgeKind
from quoll.graph.closure import closure
from quoll.graph.components import components

__all__ = ["root_causes"]


def root_causes(functions: Mapping[int, Cfg], entry: int, unresolved: Set[int]) -> Set[int]:
    """The members of ``unresolved`` that ``entry`` reaches behind calls that surely return only."""
    returning = _returning(functions, unresolved)
    found: set[int] = set()

    def callees(function: int) -> set[int]:
        called: set[int] = set()
        for block in _reached(functions[function], returning, unresolved):
            called.update(block.calls)
            found.update(unresolved & {insn.addr for insn in block.insns})
        return called

    closure([entry], callees)
    return found


def _returning(functions: Mapping[int, Cfg], unresolved: Set[int]) -> Set[int]:
    """The functions in which a resolved return is reached: the least such set."""

    def callees(entry: int) -> list[int]:
        return sorted({callee for block in functions[entry].blocks for callee in block.calls})

    callees_first = [f for members in components(sorted(functions), callees) for f in members]
    returning: set[int] = set()
    while True:
        known = len(returning)
        for entry in callees_first:
            if entry in returning:
                continue
            blocks = _reached(functions[entry], returning, unresolved)
            if any(b.returns or (b.tail and not returning.isdisjoint(b.calls)) for b in blocks):
                returning.add(entry)
        if len(returning) == known:
            return returning


def _reached(cfg: Cfg, returning: Set[int], unresolved: Set[int]) -> list[Block]:
    """The blocks of a function that are reached if only calls of ``returning`` functions return."""
    following: dict[int, list[int]] = {}
    for edge in cfg.edges:
        if _goes_on(cfg, edge, returning, unresolved):
            following.setdefault(edge.src, []).append(edge.dst)
    return [cfg.blocks[n] for n in closure([0], lambda n: following.get(n, ()))]


def _goes_on(cfg: Cfg, edge: Edge, returning: Set[int], unresolved: Set[int]) -> bool:
    """Whether ``edge`` is no return of a call, or of one that returns or is itself unresolved."""
    block = cfg.blocks[edge.src]
    if edge.kind is not EdgeKind.ACROSS or block.passes or block.last.addr in unresolved:
        return True
    return not returning.isdisjoint(block.calls)
