"""Facts about execution counts, proved from the graph, the bounds of loops, and pass conditions.

Counts belong to invocations. Within one at context c, code is in the contexts below c
(``EntryBasis.extent``), and a path from one place to another that leaves them is in two
invocations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from ilp.constraints.constraint import UNLIMITED, BlockCopies, Constraint, resolve_one
from quoll.facts.count_facts import (
    AtMostFact,
    ConflictFact,
    ConsistentFact,
    NeverExecutesFact,
)
from quoll.facts.fact import CountedFact
from quoll.facts.guidance import RequireFact
from quoll.facts.linear import LinearFact
from wcet.proving.entry_basis import EntryBasis
from wcet.proving.verdict import EntryFinding, FindingKind

__all__ = ["never_reached", "of_constraint", "of_counts"]

HOLDS, OPEN, APART = FindingKind.HOLDS, FindingKind.OPEN, FindingKind.APART


def of_counts(basis: EntryBasis, fact: CountedFact) -> EntryFinding:
    """The finding about a fact about counts."""
    addresses = {a for text in fact.places() for a in basis.facts.at(fact, text).addresses}
    if hidden := basis.hidden(addresses):
        return EntryFinding(OPEN, hidden)
    found = resolve_one(basis.graph, fact, basis.facts, BlockCopies(basis.graph))
    return of_constraint(basis, found)


def of_constraint(basis: EntryBasis, found: Constraint) -> EntryFinding:
    """The finding about a fact whose places are nodes of the graph."""
    match found.fact:
        case NeverExecutesFact():
            return never_reached(basis, sorted(found.a))
        case RequireFact():
            return required(basis, found)
        case ConflictFact():
            return conflict(basis, found)
        case ConsistentFact():
            return consistent(basis, found)
        case AtMostFact():
            return at_most(basis, found, dict.fromkeys(found.a, 1), found.fact.count)
        case LinearFact(relation="<="):
            return at_most(basis, found, dict(found.weights), found.fact.number)
    return EntryFinding(OPEN, "least counts are not compared: only '<=' is")


def never_reached(basis: EntryBasis, nodes: Iterable[int]) -> EntryFinding:
    """Whether no execution gets to any of ``nodes``."""
    evidence: dict[str, None] = {}
    for node in nodes:
        scopes = list(basis.around(node))
        found = next((c for s in scopes if (c := basis.excluded([node], s)) is not None), None)
        if found is None:
            formulas = tuple(text for s in scopes for text in basis.formulas([node], s))
            return EntryFinding(OPEN, f"no contradiction on the way to {called(basis, node)}",
                                formulas)  # fmt: skip
        evidence[str(found)] = None
    return EntryFinding(HOLDS, "; ".join(evidence) or "no path gets there, by values and edges")


def called(basis: EntryBasis, node: int) -> str:
    """A node with the calls that lead to it."""
    image, graph = basis.entry.code.run.image, basis.graph
    chain = graph.call_string(graph.nodes[node].context)
    sites = [image.place(c.call_site) for c in chain if c.call_site is not None]
    return f"{basis.place(node)}{' as called at ' if sites else ''}{', '.join(sites)}"


def required(basis: EntryBasis, found: Constraint) -> EntryFinding:
    """Whether every path executes the place."""
    everywhere = basis.extent(None)
    free = basis.from_starts([basis.graph.entry], everywhere, found.a) - found.a
    ends = free & basis.graph.exit_nodes
    if not ends:
        return EntryFinding(HOLDS, "no path gets from the entry to an end around it")
    return EntryFinding(OPEN, f"a path may end at {basis.place(min(ends))} without it")


def conflict(basis: EntryBasis, found: Constraint) -> EntryFinding:
    """Whether no invocation executes both places."""
    evidence: dict[str, None] = {}
    after: dict[int, set[int]] = {}
    for top, nodes in invocations(basis, found, found.a | found.b).items():
        extent = basis.extent(top)
        after |= {n: basis.reached_from([n], extent, frozenset()) for n in nodes}
    for a, b, top in pairs(basis, found):
        if b not in after[a] and a not in after[b]:
            evidence["no path leads from one to the other in an invocation"] = None
            continue
        scope = basis.pass_around((a, b), top)
        apart = basis.lifted(a, scope) != basis.lifted(b, scope)
        proof = basis.excluded([a, b], scope) if apart else None
        if proof is None:
            formulas = basis.formulas([a, b], scope) if apart else ()
            return EntryFinding(OPEN, f"{called(basis, a)} and {basis.place(b)} may both be "
                                "executed, as far as is known", formulas)  # fmt: skip
        evidence[str(proof)] = None
    if not evidence:
        return nowhere(basis, found)
    return EntryFinding(HOLDS, "; ".join(evidence))


def nowhere(basis: EntryBasis, found: Constraint) -> EntryFinding:
    """The finding about two places that are in no invocation together."""
    if not found.a and not found.b:
        return EntryFinding(APART, "no path gets to either place")
    return EntryFinding(HOLDS, "no invocation has a path to both, by values and edges")


def pairs(basis: EntryBasis, found: Constraint) -> Iterator[tuple[int, int, int | None]]:
    """Copies of the two places in one invocation, with its context."""
    for a, b in product(sorted(found.a), sorted(found.b)):
        top = owner(basis, found, a)
        if top == owner(basis, found, b):
            yield a, b, top


def owner(basis: EntryBasis, found: Constraint, node: int) -> int | None:
    """The context of the innermost invocation around a node that the fact is about."""
    if found.function is None:
        return None
    return basis.calls.activation(basis.graph.nodes[node].context, found.function)


def invocations(
    basis: EntryBasis, found: Constraint, nodes: Iterable[int]
) -> dict[int | None, list[int]]:
    """``nodes`` by the invocations that the fact is about."""
    by_top: dict[int | None, list[int]] = {}
    for node in sorted(nodes):
        by_top.setdefault(owner(basis, found, node), []).append(node)
    return by_top


def at_most(
    basis: EntryBasis, found: Constraint, weights: dict[int, int], most: int
) -> EntryFinding:
    """Whether bounds of loops limit the weighted count in each invocation."""
    by_top = invocations(basis, found, found.a)
    if not by_top:
        return EntryFinding(APART if most >= 0 else OPEN, "no path gets there")
    for top, nodes in by_top.items():
        counts = {n: max(0, weights[n]) * most_in(basis, n, top) for n in nodes}
        total = largest(basis, counts, top)
        if total > most:
            many = "any number of" if total >= UNLIMITED else f"{total:,}"
            return EntryFinding(OPEN, f"bounds of loops allow {many} executions, first at "
                                f"{called(basis, nodes[0])}")  # fmt: skip
    return EntryFinding(HOLDS, "proved bounds of the loops around it allow no more")


def most_in(basis: EntryBasis, node: int, top: int | None) -> int:
    """Most executions of a node in an invocation."""
    if top is None:
        return basis.calls.nest.most_node(node)
    return basis.calls.most_per_invocation([node], top)


def largest(basis: EntryBasis, counts: dict[int, int], top: int | None) -> int:
    """Most executions of nodes together: of one of them, if no path leads from one to another."""
    extent, nodes = basis.extent(top), frozenset(counts)
    linked = any((basis.reached_from([n], extent, nodes) & nodes) - {n} for n in nodes)
    return sum(counts.values()) if linked else max(counts.values())


def consistent(basis: EntryBasis, found: Constraint) -> EntryFinding:
    """Whether both places take turns in every complete invocation, in one order or the other."""
    both = found.a | found.b
    if not both:
        return EntryFinding(APART, "no path gets to either place")
    for top, nodes in invocations(basis, found, both).items():
        here = frozenset(nodes)
        a, b = found.a & here, found.b & here
        if not (in_turns(basis, a, b, top) or in_turns(basis, b, a, top)):
            return EntryFinding(OPEN, f"in {basis.place(nodes[0])} a path may execute one place "
                                "and not the other")  # fmt: skip
    return EntryFinding(HOLDS, "every path of an invocation takes both places in turns")


def in_turns(
    basis: EntryBasis, first: frozenset[int], second: frozenset[int], top: int | None
) -> bool:
    """Whether each complete invocation executes first, second, first, second ... second."""
    extent = basis.extent(top)
    before = basis.from_starts(starts(basis, extent), extent, first)
    between = basis.reached_from(first, extent, second) - second
    after = basis.reached_from(second, extent, first)
    ends = frozenset(completing(basis, extent, top))
    return not (before & second or between & first or (between | first) & ends or after & second)


def starts(basis: EntryBasis, extent: frozenset[int]) -> Iterator[int]:
    """The nodes at which an invocation begins, or a path in the middle of one."""
    graph = basis.graph
    for n in sorted(extent):
        sources = (graph.edges[e].src for e in graph.predecessors[n])
        if n == graph.entry or any(source not in extent for source in sources):
            yield n


def completing(basis: EntryBasis, extent: frozenset[int], top: int | None) -> Iterator[int]:
    """The nodes with which an invocation may be complete."""
    graph = basis.graph
    for n in extent:
        targets = (graph.edges[e].dst for e in graph.successors[n])
        ended = n in graph.exit_nodes and (top is None or not basis.calls.cuts_short(n, top))
        if ended or any(target not in extent for target in targets):
            yield n
