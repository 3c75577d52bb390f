"""How many contexts virtual inlining needs, counted without expanding them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quoll.callgraph import CallGraph
from quoll.cfg import Program

__all__ = ["Expansion", "count_expansion"]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Size of the full expansion of one entry: every call in its own context."""

    contexts: int
    blocks: int
    instructions: int


def count_expansion(program: Program, graph: CallGraph, entry: int) -> Expansion | None:
    """The size of the expansion from ``entry``, before anything is left out; None if recursive.

    Blocks copied to make loops reducible are not counted.
    """
    recursive = {call.caller for cycle in graph.cycles for call in cycle}
    instances: Counter[int] = Counter({entry: 1})
    for function in reversed(graph.order):
        if instances[function] and function in recursive:
            return None
        for call in graph.calls[function]:
            instances[call.callee] += instances[function]
    sizes = {
        f: (len(cfg.blocks), sum(len(b.insns) for b in cfg.blocks))
        for f, cfg in program.functions.items()
        if instances[f]
    }
    return Expansion(
        sum(instances.values()),
        sum(instances[f] * blocks for f, (blocks, _) in sizes.items()),
        sum(instances[f] * insns for f, (_, insns) in sizes.items()),
    )
