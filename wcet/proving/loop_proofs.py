"""Facts about loops and recursion, proved by the model checker or the SMT solver.

A bound that is proved does not depend on a stated one (``loopbounds.bounds``): facts that state
bounds are compared with it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from loopbounds.places import loops_meant
from loopbounds.proof.bound import PROVED, LoopBound
from quoll.facts.count_facts import LoopFact, LoopParameter
from quoll.facts.guidance import RecursionFact
from quoll.facts.invariants import ListAtMostFact
from quoll.inlining.supergraph import Supergraph
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.verdict import EntryFinding, FindingKind

__all__ = ["of_list", "of_loop", "of_recursion"]


def of_loop(
    basis: EntryBasis, fact: LoopFact | LoopParameter, numbers: Mapping[str, int]
) -> EntryFinding:
    """The finding about a stated bound of a loop; ``numbers``: values of parameters."""
    if isinstance(fact, LoopParameter) and fact.total:
        return EntryFinding(FindingKind.OPEN, f"no binary determines {fact.name}")
    most = fact.bound if isinstance(fact, LoopFact) else fact.plus + numbers.get(fact.name, 0)
    evidence: dict[str, None] = {}
    for graph, bound in meant(basis, fact):
        times = bound.iterations(graph)
        if bound.method not in PROVED or times is None:
            return EntryFinding(FindingKind.OPEN, str(bound.reason or "a proof was not found"))
        if times > most:
            return EntryFinding(FindingKind.OPEN, f"the proved bound is {times:,}")
        evidence[f"{bound.method}: {bound.explained}"] = None
    if evidence:
        return EntryFinding(FindingKind.HOLDS, "; ".join(evidence))
    addresses = basis.facts.at(fact, fact.place).addresses
    here = [n for n, node in enumerate(basis.graph.nodes)
            if any(i.addr in addresses for i in node.block.insns)]  # fmt: skip
    if here and most == 0:
        return EntryFinding(FindingKind.OPEN, "paths get there once")
    if here and fact.source.statement is None:
        return EntryFinding(FindingKind.HOLDS, "no path repeats it")
    return EntryFinding(FindingKind.APART, "no loop of the analysed code is there")


def meant(
    basis: EntryBasis, fact: LoopFact | LoopParameter | ListAtMostFact
) -> Iterator[tuple[Supergraph, LoopBound]]:
    """The bounds of the loops that a fact is about, also in functions with a summary."""
    summarised = ((p.graph, p.bounds) for one in basis.entry.summaries for p in one.paths)
    for graph, bounds in ((basis.graph, basis.bounds), *summarised):
        yield from bounds_meant(basis, graph, bounds, fact)


def bounds_meant(
    basis: EntryBasis,
    graph: Supergraph,
    bounds: Sequence[LoopBound],
    fact: LoopFact | LoopParameter | ListAtMostFact,
) -> Iterator[tuple[Supergraph, LoopBound]]:
    """As ``meant``, in one graph."""
    image = basis.entry.code.run.image
    about = loops_meant(graph, image, basis.facts, [fact], in_part=True)
    for bound in bounds:
        if about[bound.loop]:
            yield graph, bound


def of_list(basis: EntryBasis, fact: ListAtMostFact) -> EntryFinding:
    """The finding about a list, which is always open; whether its loop has a bound without it."""
    found = [bound.iterations(graph) for graph, bound in meant(basis, fact)]
    if not found:
        return EntryFinding(FindingKind.APART, "no path gets to the loop")
    known = [n for n in found if n is not None]
    less = f"; without it the loop has the bound {max(known):,}" if len(known) == len(found) else ""
    return EntryFinding(FindingKind.OPEN, f"the links are in memory of unknown contents{less}")


def of_recursion(basis: EntryBasis, fact: RecursionFact) -> EntryFinding:
    """The finding about a stated depth."""
    address = basis.facts.at(fact, fact.function).addresses[0]
    depth = basis.graph.guidance.depths.get(address)
    if depth is None:
        return EntryFinding(FindingKind.APART, "no path gets to a recursion of it")
    if depth.facts:
        return EntryFinding(FindingKind.OPEN, "no depth is proved")
    if depth.activations > fact.activations:
        return EntryFinding(FindingKind.OPEN, f"the proved depth is {depth.activations:,}")
    return EntryFinding(FindingKind.HOLDS, depth.evidence)
