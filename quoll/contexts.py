"""How many contexts virtual inlining needs, counted without expanding them."""

from __future__ import annotations

from dataclasses import dataclass

from quoll.callgraph import CallGraph
from quoll.cfg import Program

__all__ = ["Expansion", "count_expansions", "count_shared"]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Size of the expansion of one entry."""

    contexts: int
    blocks: int
    instructions: int


def count_expansions(program: Program, graph: CallGraph) -> dict[int, Expansion | None]:
    """The size of the full expansion from each function, every call in a context of its own.

    None if it is recursive or calls what is. Counted before anything is left out, and without
    blocks copied to make loops reducible.
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


def count_shared(program: Program, graph: CallGraph, entry: int, call_string: int) -> Expansion:
    """The size of the expansion from ``entry``, which is not recursive, with shared contexts.

    As ``quoll.expand`` makes them: calls whose last ``call_string`` sites are the same share one
    context, except tail calls.
    """
    contexts = blocks = insns = 0
    shared: set[tuple[int, tuple[int, ...]]] = set()
    pending: list[tuple[int, tuple[int, ...]]] = [(entry, ())]
    while pending:
        function, string = pending.pop()
        cfg = program.functions[function]
        contexts += 1
        blocks += len(cfg.blocks)
        insns += sum(len(block.insns) for block in cfg.blocks)
        for call in graph.calls[function]:
            longer = (*string, call.site)
            callee = call.callee, longer[len(longer) - min(call_string, len(longer)) :]
            if call.tail:
                pending.append(callee)
            elif callee not in shared:
                shared.add(callee)
                pending.append(callee)
    return Expansion(contexts, blocks, insns)
