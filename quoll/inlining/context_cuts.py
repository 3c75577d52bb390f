"""A supergraph without the code that facts exclude within invocations of one function."""

from __future__ import annotations

from dataclasses import replace

from quoll.cfg.cfg import EdgeKind
from quoll.extraction.cuts import Cut, cut_of, never_runs, require_branch
from quoll.facts.applied import RemovedEdge
from quoll.facts.count_facts import NeverExecutesFact
from quoll.facts.guidance import BranchFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph
from quoll.inlining.trim import without_edges

__all__ = ["guided_in_contexts"]


def guided_in_contexts(graph: Supergraph, image: Image, facts: LocatedFacts) -> Supergraph:
    """``graph`` without the branches and blocks that facts exclude within one function.

    Raises FactsError where there is no such branch.
    """
    return _without_blocks(_without_branches(graph, image, facts), image, facts)


def _without_blocks(graph: Supergraph, image: Image, facts: LocatedFacts) -> Supergraph:
    """``graph`` without the blocks that never execute within invocations of one function."""
    removed: dict[int, RemovedEdge] = {}
    for fact in facts.of(NeverExecutesFact):
        if fact.function is None:
            continue
        cut = cut_of(facts, fact)
        inside = graph.invocations(*facts.limits(fact))
        for n, node in enumerate(graph.nodes):
            if inside[node.context] and never_runs(node.block, cut):
                for e in graph.predecessors[n]:
                    source = graph.nodes[graph.edges[e].src].block.last.addr
                    removed[e] = _removed(source, node.block.addr, cut)
    if not removed:
        return graph
    edges = dict.fromkeys((*graph.guidance.removed, *removed.values()))
    guidance = replace(graph.guidance, removed=tuple(edges))
    return without_edges(graph, removed, image, guidance=guidance)


def _removed(source: int, target: int | None, cut: Cut) -> RemovedEdge:
    return RemovedEdge(source, target, cut.stated, everywhere=False)


def _without_branches(graph: Supergraph, image: Image, facts: LocatedFacts) -> Supergraph:
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
                removed[_removed(node.block.last.addr, target, cut)] = None
            if not fact.taken and n in graph.exits:
                no_exits.add(n)
                removed[_removed(node.block.last.addr, None, cut)] = None
    if not dead and not no_exits:
        return graph
    guidance = replace(graph.guidance, removed=(*graph.guidance.removed, *removed))
    return without_edges(graph, dead, image, no_exits=no_exits, guidance=guidance)
