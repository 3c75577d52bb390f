"""How many contexts virtual inlining needs, counted without expanding them."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.callgraph import CallGraph
from quoll.cfg import Program

__all__ = ["Expansion", "count_expansions"]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Size of the full expansion of one entry: every call in its own context."""

    contexts: int
    blocks: int
    instructions: int


def count_expansions(program: Program, graph: CallGraph) -> dict[int, Expansion | None]:
    """The size of the expansion from each function, before anything is left out.

    None if it is recursive or calls what is. Blocks copied to make loops reducible are not counted.
    """
    sizes: dict[int, Expansion | None] = {}
    for entry in graph.order:  # a callee without size comes later: it is part of a recursion
        cfg = program.functions[entry]
        contexts, blocks = 1, len(cfg.blocks)
        insns = sum(len(block.insns) for block in cfg.blocks)
        for call in graph.calls[entry]:
            size = sizes.get(call.callee)
            if size is None:
                sizes[entry] = None
                break
            contexts += size.contexts
            blocks += size.blocks
            insns += size.instructions
        else:
            sizes[entry] = Expansion(contexts, blocks, insns)
    return sizes
