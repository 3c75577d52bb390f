"""Waits from which control gets to no end of a path (rules 33 and 53).

An endless loop never returns, with any instruction in it: the duration of a wait there is on no
path. So the wait itself needs no fact. Whether control may get there is decided later, as for any
code from which no path ends (``quoll.inlining.trim``).
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from quoll.cfg.cfg import Block, Cfg
from quoll.cfg.unresolved import UnresolvedKind, UnresolvedTransfer
from quoll.graph.closure import closure

__all__ = ["endless_waits"]


def endless_waits(
    functions: Mapping[int, Cfg], unresolved: Mapping[int, UnresolvedTransfer]
) -> Set[int]:
    """The unresolved waits behind which no path ends, in every function that has them.

    Paths may end at exits and returns, in callees, in replaced functions, and at each other
    unresolved place.
    """
    waits = {addr for addr, one in unresolved.items() if one.kind is UnresolvedKind.WAITS}
    if not waits:
        return waits
    doubts = unresolved.keys() - waits
    ending = _ending(functions, doubts)
    left = {
        block.last.addr
        for cfg in functions.values()
        for block in _before(
            cfg, {b.index for b in cfg.blocks if _ends(b, functions, ending, doubts)}
        )
    }
    return waits - left


def _ending(functions: Mapping[int, Cfg], doubts: Set[int]) -> Set[int]:
    """The functions in which, or in whose callees, a path may end before they return."""
    callers: dict[int, list[int]] = {}
    own = []
    for entry, cfg in functions.items():
        for block in cfg.blocks:
            for callee in block.calls:
                callers.setdefault(callee, []).append(entry)
            if block.exits or block.passes or block.last.addr in doubts:
                own.append(entry)
    return closure(own, lambda entry: callers.get(entry, ()))


def _ends(block: Block, functions: Mapping[int, Cfg], ending: Set[int], doubts: Set[int]) -> bool:
    """Whether a path may end in ``block`` or its callees, or the function may return from it."""
    if block.exits or block.returns or block.passes or block.last.addr in doubts:
        return True
    returned = block.tail and any(functions[callee].returns for callee in block.calls)
    return returned or not ending.isdisjoint(block.calls)


def _before(cfg: Cfg, ends: Set[int]) -> list[Block]:
    """The blocks from which control may get to a block in ``ends``."""
    before: dict[int, list[int]] = {}
    for edge in cfg.edges:
        before.setdefault(edge.dst, []).append(edge.src)
    return [cfg.blocks[n] for n in closure(sorted(ends), lambda n: before.get(n, ()))]
