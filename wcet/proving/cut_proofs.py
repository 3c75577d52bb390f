"""Facts that exclude branches, edges and blocks, proved by values or by pass conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quoll.cfg.cfg import EdgeKind
from quoll.facts.fact import Fact
from quoll.facts.guidance import BranchFact, IgnoreEdgeFact, IgnoreFact
from wcet.proving.count_proofs import called, never_reached
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.verdict import EntryFinding, FindingKind

__all__ = ["of_cut"]


def of_cut(basis: EntryBasis, fact: BranchFact | IgnoreFact | IgnoreEdgeFact) -> EntryFinding:
    """The finding about a fact that excludes code of the entry."""
    addresses = {a for text in fact.places() for a in basis.facts.at(fact, text).addresses}
    if hidden := basis.hidden(addresses):
        return EntryFinding(FindingKind.OPEN, hidden)
    match fact:
        case IgnoreFact():
            nodes = set(at_place(basis, fact, fact.place)) - {basis.graph.entry}
            return never_reached(basis, sorted(nodes))
        case IgnoreEdgeFact():
            return never_taken(basis, between(basis, fact))
        case BranchFact():
            return of_branch(basis, fact)


def at_place(basis: EntryBasis, fact: Fact, text: str) -> Iterator[int]:
    """The nodes with an instruction at a place that ``fact`` names."""
    place = basis.facts.at(fact, text)
    for n, node in enumerate(basis.graph.nodes):
        if any(place.covers(insn.addr) for insn in node.block.insns):
            yield n


def between(basis: EntryBasis, fact: IgnoreEdgeFact) -> Iterator[int]:
    """The edges from a block at one place to a block that begins at the other."""
    graph, target = basis.graph, basis.facts.at(fact, fact.end)
    for n in at_place(basis, fact, fact.start):
        for e in graph.successors[n]:
            if target.covers(graph.nodes[graph.edges[e].dst].block.addr):
                yield e


def of_branch(basis: EntryBasis, fact: BranchFact) -> EntryFinding:
    """Whether a branch goes one way only, in the invocations that the fact is about."""
    graph, place = basis.graph, basis.facts.at(fact, fact.place)
    inside = graph.invocations(*basis.facts.limits(fact))
    branches = [
        n
        for n, node in enumerate(graph.nodes)
        if inside[node.context] and place.covers(node.block.last.addr)
    ]
    if not branches:
        return EntryFinding(FindingKind.APART, "no path gets to the branch")
    ended = [n for n in branches if not fact.taken and n in graph.exit_nodes]
    if ended:
        return EntryFinding(FindingKind.OPEN, f"a path may end at {called(basis, ended[0])}")
    falls = EdgeKind.FALLTHROUGH
    ways = (e for n in branches for e in graph.successors[n])
    return never_taken(basis, (e for e in ways if (graph.edges[e].kind is falls) == fact.taken))


def never_taken(basis: EntryBasis, edges: Iterable[int]) -> EntryFinding:
    """Whether no execution takes any of ``edges``."""
    evidence: dict[str, None] = {}
    for edge in edges:
        found = basis.not_taken(edge)
        if found is None:
            taken = basis.graph.edges[edge]
            return EntryFinding(
                FindingKind.OPEN,
                f"no contradiction on the way from {called(basis, taken.src)} to "
                f"{basis.place(taken.dst)}",
                basis.formulas_of_edge(edge),
            )
        evidence[str(found)] = None
    why = "; ".join(evidence) or "no path goes there, by values and edges"
    return EntryFinding(FindingKind.HOLDS, why)
