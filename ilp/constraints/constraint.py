"""User constraints with their places located in a supergraph.

A place denotes the nodes, in every context, whose block contains an instruction at one of its
addresses; its count is the sum of their counts (rule 29). A block executes as a whole except for
its conditional instructions, so a place at a conditional instruction is refused: the constraint
would also count executions of the block in which the instruction does nothing. A line with
instructions in several blocks, one of which also has other instructions, is refused for the same
reason: the compiler may have moved some of its code under different control.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ilp.constraints.nest import LoopNest
from loopbounds.proof.bound import PROVED, LoopBound
from quoll.assumptions import Assumption, stated
from quoll.cfg.cfg import Block
from quoll.errors import FactsError
from quoll.facts.count_facts import AtMostFact, ConflictFact
from quoll.facts.fact import CountedFact, Fact, FactSource
from quoll.facts.fact_places import FactPlace
from quoll.facts.linear import LinearFact
from quoll.facts.located import LocatedFacts
from quoll.facts.read import Facts
from quoll.inlining.supergraph import Supergraph

__all__ = ["UNLIMITED", "Constraint", "is_implied", "resolve_constraints", "unused_constraints"]

UNLIMITED = 1 << 62  # iterations of a loop without a proved bound


@dataclass(frozen=True, slots=True)
class Constraint:
    """A fact about counts, with nodes for places and entry addresses for functions."""

    fact: CountedFact
    a: frozenset[int]
    b: frozenset[int]  # for Conflict and Consistent
    function: int | None
    caller: int | None
    weights: tuple[tuple[int, int], ...] = ()  # for Linear: the factor of each node in a

    @property
    def holds_in_subpaths(self) -> bool:
        """Whether each section of a path satisfies it whenever the path does.

        An invocation that a section cuts short is exempt; a count over the whole path is not.
        """
        return self.function is not None or self.fact.monotone

    def __str__(self) -> str:
        return f"{self.fact.source}: {self.fact}"


def resolve_constraints(graph: Supergraph, facts: LocatedFacts) -> tuple[Constraint, ...]:
    """The constraints that have an effect on this graph.

    A constraint whose places or function do not occur in this graph is left out; see
    ``unused_constraints``. Raises FactsError where a place cannot be counted, or a fact relates a
    block to itself.
    """
    counted = [fact for fact in facts.facts if isinstance(fact, CountedFact)]
    if not counted:
        return ()
    blocks = BlockCopies(graph)
    resolved = (resolve_one(graph, fact, facts, blocks) for fact in counted)
    inside = counted_in_summaries(graph)
    return tuple(one for one in resolved if effective(one) or one.fact.source in inside)


def counted_in_summaries(graph: Supergraph) -> frozenset[FactSource]:
    """The facts about the whole path whose places calls of summarised functions may execute."""
    replaced = graph.guidance.replaced
    limits = {
        callee: [fact for one in function.limited for fact, _ in one.counts]
        for callee, function in replaced.items()
        if function.limited
    }
    called = {callee for node in graph.nodes for callee in node.block.passes} if limits else set()
    return frozenset(fact for callee in called & limits.keys() for fact in limits[callee])


def unused_constraints(
    facts: Facts, per_entry: Iterable[tuple[Constraint, ...]], assumptions: Iterable[Assumption]
) -> tuple[Fact, ...]:
    """The constraints of ``facts`` without an effect in any of the analysed entries.

    Constraints in functions with a summary for all calls have an effect if they are among
    ``assumptions``.
    """
    used = {constraint.fact.source for constraints in per_entry for constraint in constraints}
    listed = frozenset(assumptions)
    return tuple(
        fact
        for fact in facts.facts
        if isinstance(fact, CountedFact) and fact.source not in used and stated(fact) not in listed
    )


class BlockCopies:
    """The blocks of a graph, by first address and end, and the nodes that are copies of each."""

    def __init__(self, graph: Supergraph) -> None:
        self._nodes: dict[tuple[int, int], list[int]] = {}
        self._blocks: dict[tuple[int, int], Block] = {}
        copies: dict[int, list[int]] = {}  # by the identity of a block, which most copies share
        for n, node in enumerate(graph.nodes):
            copies.setdefault(id(node.block), []).append(n)
        for nodes in copies.values():
            block = graph.nodes[nodes[0]].block
            extent = block.addr, block.end
            self._nodes.setdefault(extent, []).extend(nodes)
            self._blocks.setdefault(extent, block)

    def covering(self, place: FactPlace) -> list[tuple[Block, list[int]]]:
        """Each block with an instruction of ``place``, and its nodes."""
        return [
            (block, self._nodes[extent])
            for extent, block in self._blocks.items()
            if place.meets(*extent) and any(place.covers(insn.addr) for insn in block.insns)
        ]


def resolve_one(
    graph: Supergraph, fact: CountedFact, facts: LocatedFacts, blocks: BlockCopies
) -> Constraint:
    """The constraint of one fact, without nodes outside the invocations that it concerns."""
    function, caller = facts.limits(fact)
    inside = graph.invocations(function, caller)
    sets = []
    for text in fact.places():
        place = facts.at(fact, text)
        found = blocks.covering(place)
        check_countable(fact, text, place, [block for block, _ in found])
        nodes = (n for _, copies in found for n in copies)
        sets.append(frozenset(n for n in nodes if inside[graph.nodes[n].context]))
    if isinstance(fact, LinearFact):
        return linear(fact, sets, function, caller)
    a, b = sets[0], sets[1] if len(sets) > 1 else frozenset[int]()
    if a & b:
        raise FactsError(
            f"'{fact}' relates the block at {graph.nodes[min(a & b)].block.addr:#x} to itself",
            where=str(fact.source),
            hint="both places are in one basic block and always execute together",
        )
    return Constraint(fact, a, b, function, caller)


def linear(
    fact: LinearFact, sets: list[frozenset[int]], function: int | None, caller: int | None
) -> Constraint:
    """The constraint of a linear fact: the factor of a node is the sum of its places' factors."""
    weights: dict[int, int] = {}
    for (factor, _), nodes in zip(fact.terms, sets, strict=True):
        for node in nodes:
            weights[node] = weights.get(node, 0) + factor
    nodes = frozenset(weights)
    return Constraint(fact, nodes, frozenset(), function, caller, tuple(sorted(weights.items())))


def effective(constraint: Constraint) -> bool:
    """Whether the constraint gives any row: a conflict needs both of its places."""
    if isinstance(constraint.fact, ConflictFact):
        return bool(constraint.a and constraint.b)
    return bool(constraint.a or constraint.b)


def check_countable(fact: CountedFact, text: str, place: FactPlace, blocks: list[Block]) -> None:
    """Raise FactsError for a place that does not execute exactly when its blocks do (rule 29)."""
    mixed = False
    for block in blocks:
        here = [insn for insn in block.insns if place.covers(insn.addr)]
        mixed |= len(here) < len(block.insns)
        for insn in here:
            if not block.always_runs(insn):
                raise FactsError(
                    f"'{text}' is at {insn.addr:#x}, a conditional instruction ({insn.text}): "
                    "how often it takes effect is not how often it is reached",
                    where=str(fact.source),
                    hint="choose a place that a branch leads to",
                )
    if not place.exact and len(blocks) > 1 and mixed:
        raise FactsError(
            f"line '{text}' is in several blocks that also carry other lines, "
            "perhaps under different control",
            where=str(fact.source),
            hint="choose one of the addresses: " + ", ".join(hex(b.addr) for b in blocks),
        )


def is_implied(constraint: Constraint, graph: Supergraph, bounds: Sequence[LoopBound]) -> bool:
    """Whether proved loop bounds imply an ``AtMostFact``, so that it is no assumption.

    The executions on the whole path are compared, which no invocation exceeds. False for other
    constraints, and where facts removed code from the graph or replaced code by bounds.
    """
    if not isinstance(constraint.fact, AtMostFact):
        return False
    if graph.guidance.removed or graph.guidance.replaced:
        return False
    numbers = [b.bound if b.method in PROVED and b.bound is not None else UNLIMITED for b in bounds]
    nest = LoopNest.build(graph, numbers)
    return sum(nest.most_node(node) for node in constraint.a) <= constraint.fact.count
