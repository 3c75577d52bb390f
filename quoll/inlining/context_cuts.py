"""A supergraph without the branches that facts exclude within invocations of one function."""

from __future__ import annotations

from dataclasses import replace

from quoll.cfg.cfg import EdgeKind
from quoll.extraction.cuts import cut_of, require_branch
from quoll.facts.applied import RemovedEdge
from quoll.facts.guidance import BranchFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.trim import without_edges

__all__ = ["guided_in_contexts"]


def guided_in_contexts(graph: Supergraph, image: Image, facts: LocatedFacts) -> Supergraph:
    """``graph`` without the branches that facts exclude within invocations of one function.

    Raises FactsError where there is no such branch.
    """
    dead: dict[int, None] = {}
    no_exits: set[int] = set()
    removed: dict[RemovedEdge, None] = {}
    for fact in facts.of(BranchFact):
        if fact.function is None:
            continue
        cut = cut_of(facts, fact)
        inside = graph.invocations(*facts.limits(fact))
        for n, node in enumerate(graph.nodes):
            if not inside[node.context] or not cut.source.covers(node.block.last.addr):
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
