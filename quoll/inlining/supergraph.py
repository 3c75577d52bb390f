"""Virtual inlining (VIVU): every call analysed in its calling context.

A ``Supergraph`` is the plain expansion for one entry: a node is a block in a context, a call
edge leads into the callee's copy, a return edge leads back. Nodes that the entry does not reach,
or from which no exit is reachable, are left out, but for the first of the latter (``stops``).

With call strings of limited length several calls may share one copy of their callee: its context
is *merged*. The graph then falls into *parts*, one for the root and one for each merged context,
each with all contexts below it that are not merged themselves. A path that enters a merged
context through one call must leave it through a return edge of the same call
(``SuperEdge.call``). Within a part, a call that leaves it is a step from the calling node to where
its return edges lead; loops are those of the parts, with these steps in place of other parts.
Without merged contexts there is one part, and all this is the plain graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from quoll.cfg.cfg import Block, EdgeKind
from quoll.facts.applied import NO_GUIDANCE, Guidance, Replacement

__all__ = ["Context", "Nested", "Node", "SuperEdge", "SuperLoop", "Supergraph", "Turn"]


class Nested(NamedTuple):
    """A block of a function and the loops around it: addresses of headers, outermost first."""

    block: Block
    headers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """A call string, parent-linked: contexts of different index are different activations.

    Indices differ where strings do; two have the same string only where node splitting has copied
    the calling block (``quoll.graph.node_splitting``), once for each copy. A merged context has
    ``others``: the calls beside the first that share it, as (context, call site). ``nest`` is that
    of its function, before anything was left out of the graph.
    """

    parent: int | None
    call_site: int | None  # address of the call instruction in the parent's function
    function: int  # entry address
    others: tuple[tuple[int, int], ...] = ()
    nest: tuple[Nested, ...] = field(default=(), compare=False, repr=False)

    @property
    def callers(self) -> tuple[tuple[int, int], ...]:
        """All calls that lead here: context and call site. None for the root."""
        if self.parent is None or self.call_site is None:
            return ()
        return ((self.parent, self.call_site), *self.others)


class Turn(NamedTuple):
    """The first iteration of a loop, or all others, where they are told apart."""

    header: int  # address
    first: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A block in a context; with virtual unrolling in which turns of the loops around it.

    ``turns``: of the loops of its function, outermost first.
    """

    context: int
    block: Block
    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True, slots=True)
class SuperEdge:
    """An edge between nodes, by node index.

    ``call`` is the node that made the call, of a RETURN edge out of a merged context or below it;
    of the others their call is the only one there is.
    """

    src: int
    dst: int
    kind: EdgeKind
    call: int | None = None


@dataclass(frozen=True, slots=True)
class SuperLoop:
    """A natural loop of a part, callees' copies in the same part included.

    ``entries`` are the edges into the header from outside, ``backs`` those from inside, or from
    calls inside. A bound is the number of executions of ``header`` per traversal of an entry edge
    (rule 18).
    """

    index: int
    header: int
    entries: tuple[int, ...]  # edge indices
    backs: tuple[int, ...]  # edge indices
    nodes: frozenset[int]
    parent: int | None  # index of the innermost enclosing loop in the part


@dataclass(frozen=True)
class Supergraph:
    """The expansion of one entry. All cross references are indices into the tuples here."""

    contexts: tuple[Context, ...]
    nodes: tuple[Node, ...]
    edges: tuple[SuperEdge, ...]
    successors: tuple[tuple[int, ...], ...]  # node -> outgoing edge indices
    predecessors: tuple[tuple[int, ...], ...]  # node -> incoming edge indices
    entry: int  # node
    exits: tuple[int, ...]  # nodes after which a path may end
    loops: tuple[SuperLoop, ...]  # of each part outer loops before the loops inside them
    stops: tuple[
        int, ...
    ] = ()  # nodes that control gets to, but to no exit from (``quoll.inlining.trim``)
    guidance: Guidance = NO_GUIDANCE
    crossings: Mapping[int, tuple[Replacement, ...]] = field(default_factory=dict)
    summaries: Mapping[int, Replacement] = field(default_factory=dict)  # of merged functions
    left_out: Mapping[int, frozenset[int]] = field(default_factory=dict)  # node -> where else to

    @cached_property
    def part(self) -> tuple[int, ...]:
        """Per context the one that heads its part: the root, or the nearest merged one above."""
        return parts_of(self.contexts)

    @cached_property
    def merged(self) -> bool:
        """Whether calls share contexts."""
        return any(context.others for context in self.contexts)

    @cached_property
    def called_in(self) -> tuple[tuple[int, ...], ...]:
        """Per context those of the calls that are made in it."""
        called: list[list[int]] = [[] for _ in self.contexts]
        for index, context in enumerate(self.contexts):
            if context.parent is not None:
                called[context.parent].append(index)
        return tuple(map(tuple, called))

    @cached_property
    def nodes_in(self) -> tuple[tuple[int, ...], ...]:
        """Per context its nodes."""
        found: list[list[int]] = [[] for _ in self.contexts]
        for index, node in enumerate(self.nodes):
            found[node.context].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def exit_nodes(self) -> frozenset[int]:
        """``exits``, to look them up."""
        return frozenset(self.exits)

    @cached_property
    def loop_at(self) -> Mapping[int, int]:
        """The loops by their headers."""
        return {loop.header: loop.index for loop in self.loops}

    def part_of(self, node: int) -> int:
        """The context that heads the part of ``node``."""
        return self.part[self.nodes[node].context]

    def origin(self, edge: int) -> int | None:
        """Where control on ``edge`` comes from within the part of its end.

        The source; of a return out of another part the node that called; None of a call.
        """
        e = self.edges[edge]
        if e.call is None:
            into = self.contexts[self.nodes[e.dst].context].others and e.kind is EdgeKind.CALL
            return None if into else e.src
        return e.call

    def apart(self, loop: SuperLoop) -> int:
        """Iterations that an entry of the source's loop makes before ``loop``: 1 if unrolled."""
        header = self.nodes[loop.header]
        return int(header.turns[-1:] == (Turn(header.block.addr, False),))

    def executed(self, loop: SuperLoop) -> frozenset[int]:
        """All nodes that may execute in ``loop``: its own, and the parts that are called there."""
        if not self.merged:
            return loop.nodes
        reached = set(loop.nodes)
        pending = list(loop.nodes)
        while pending:
            for e in self.successors[pending.pop()]:
                edge = self.edges[e]
                inside = self.part_of(edge.dst) != self.part_of(loop.header)
                if inside and edge.call is None and edge.dst not in reached:
                    reached.add(edge.dst)
                    pending.append(edge.dst)
        return frozenset(reached)

    def passed(self, edge: int) -> tuple[Replacement, ...]:
        """What is executed along ``edge`` in place of functions that are not looked at.

        One of them runs. Everything that they may change must be forgotten there (rule 2).
        ``crossings`` says so of edges past other parts (``quoll.inlining.merged_contexts``), else
        it is facts.
        """
        known = self.crossings.get(edge)
        if known is not None:
            return known
        over = self.edges[edge]
        block = self.nodes[over.src].block
        if not block.passes or over.kind not in (EdgeKind.ACROSS, EdgeKind.RETURN):
            return ()
        return tuple(self.guidance.replaced[callee] for callee in block.passes)

    def call_string(self, context: int) -> tuple[Context, ...]:
        """The chain of contexts from the root to ``context``, both included.

        Through the first of its callers where one of them is merged.
        """
        chain: list[Context] = []
        at: int | None = context
        while at is not None:
            chain.append(self.contexts[at])
            at = self.contexts[at].parent
        return tuple(reversed(chain))


def parts_of(contexts: tuple[Context, ...]) -> tuple[int, ...]:
    """``Supergraph.part``; a context that is not merged comes after its parent."""
    own = [i for i, context in enumerate(contexts) if context.parent is None or context.others]
    if own == [0]:
        return (0,) * len(contexts)
    heads = list(range(len(contexts)))
    for index in sorted(set(heads) - set(own)):
        heads[index] = heads[contexts[index].parent or 0]
    return tuple(heads)
