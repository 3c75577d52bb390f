"""A supergraph without the branches that facts exclude within invocations of one function."""

from __future__ import annotations

from dataclasses import replace

from quoll.cfg.cfg import EdgeKind
from quoll.extraction.cuts import cut_of, require_branch
from quoll.facts import BranchFact, Facts
from quoll.facts.applied import RemovedEdge
from quoll.facts.fact_places import find_place
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.trim import without_edges

__all__ = ["guided_in_contexts"]


def guided_in_contexts(graph: Supergraph, image: Image, facts: Facts) -> Supergraph:
    """``graph`` without the branches that facts exclude within invocations of one function.

    Raises FactsError for a place that does not exist or where there is no such branch.
    """
    dead: dict[int, None] = {}
    no_exits: set[int] = set()
    removed: dict[RemovedEdge, None] = {}
    for fact in facts.of(BranchFact):
        if fact.function is None:
            continue
        cut = cut_of(image, fact)
        inside = _inside(graph, image, fact)
        for n, node in enumerate(graph.nodes):
            if not inside[node.context] or not cut.source(node.block.last.addr):
                continue
            require_branch(node.block, cut, image)
            falls = EdgeKind.FALLTHROUGH
            ways = [e for e in graph.successors[n] if (graph.edges[e].kind is falls) == fact.taken]
            dead.update(dict.fromkeys(ways))
            for e in ways:
                target = graph.nodes[graph.edges[e].dst].block.addr
                removed[RemovedEdge(node.block.last.addr, target, cut.stated)] = None
            if not fact.taken and n in graph.exits:
                no_exits.add(n)
                removed[RemovedEdge(node.block.last.addr, None, cut.stated)] = None
    if not dead and not no_exits:
        return graph
    guidance = replace(graph.guidance, removed=(*graph.guidance.removed, *removed))
    return without_edges(graph, dead, image, no_exits=no_exits, guidance=guidance)


def _inside(graph: Supergraph, image: Image, fact: BranchFact) -> list[bool]:
    """Whether each context belongs to an invocation that the fact concerns."""
    assert fact.function is not None
    (function,) = find_place(image, fact.function, fact.source).addresses
    caller = fact.caller and find_place(image, fact.caller, fact.source).addresses[0]
    contexts = graph.contexts
    inside: list[bool] = []
    for context in contexts:  # callers come first
        above = None if context.parent is None else contexts[context.parent].function
        if context.function == function:
            inside.append(caller is None or above == caller)
        else:
            inside.append(context.parent is not None and inside[context.parent])
    return inside
