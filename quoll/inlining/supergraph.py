"""Virtual inlining (VIVU): every call analysed in its calling context.

A ``Supergraph`` is the plain expansion for one entry: a node is a block in a context, a call edge
leads into the callee's copy, a return edge leads back. Nodes that the entry does not reach, or from
which no exit is reachable, are left out, except the first of the latter (``stops``, ``halts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from quoll.cfg.cfg import Block, EdgeKind
from quoll.facts.applied import NO_GUIDANCE, AppliedGuidance, FunctionReplacement
from quoll.facts.contract import CallFrame

__all__ = [
    "Context",
    "CountedEdges",
    "NestedBlock",
    "PeeledIteration",
    "SuperEdge",
    "SuperLoop",
    "SuperNode",
    "Supergraph",
]


class NestedBlock(NamedTuple):
    """A block of a function and the loops around it: addresses of headers, outermost first."""

    block: Block
    headers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """A call string, parent-linked: contexts of different index are different activations.

    Two contexts have the same string only where node splitting has copied the calling block
    (``quoll.graph.node_splitting``), once per copy. ``nest`` is the nest of its function, before
    anything was left out of the graph. ``recursive``: it stands for all activations in a chain, so
    the parent is one of several callers (``quoll.inlining.recursive_loops``).
    """

    parent: int | None
    call_site: int | None  # address of the call instruction in the parent's function
    function: int  # entry address
    nest: tuple[NestedBlock, ...] = field(default=(), compare=False, repr=False)
    # of its function, by address of the call
    frames: Mapping[int, CallFrame] = field(default_factory=dict, compare=False, repr=False)
    recursive: bool = False


class PeeledIteration(NamedTuple):
    """The first iteration of a loop, or all others, where the two are distinguished."""

    header: int  # address
    first: bool


@dataclass(frozen=True, slots=True)
class SuperNode:
    """A block in a context and, with virtual unrolling, in certain iterations of its loops.

    ``iterations``: for the loops of its function, outermost first.
    """

    context: int
    block: Block
    iterations: tuple[PeeledIteration, ...] = ()


@dataclass(frozen=True, slots=True)
class SuperEdge:
    """An edge between nodes, by node index."""

    src: int
    dst: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class SuperLoop:
    """A natural loop, callees' copies included.

    ``entries`` are the edges into the header from outside, ``backs`` the edges from inside. A bound
    is the number of executions of ``header`` per traversal of an entry edge (rule 18).
    """

    index: int
    header: int
    entries: tuple[int, ...]  # edge indices
    backs: tuple[int, ...]  # edge indices
    nodes: frozenset[int]
    parent: int | None  # index of the innermost enclosing loop


@dataclass(frozen=True, slots=True)
class CountedEdges:
    """Edges that a path takes at most ``most`` times before, between and behind edges of ``reset``.

    ``counter``: the address of the word that counts. With x_e traversals of edge e:
    sum(x_e : e counted) <= most * (1 + sum(x_e : e reset)).
    """

    counter: int
    most: int
    counted: frozenset[int]
    reset: frozenset[int]


@dataclass(frozen=True)
class Supergraph:
    """The expansion of one entry. All cross references are indices into the tuples here."""

    contexts: tuple[Context, ...]
    nodes: tuple[SuperNode, ...]
    edges: tuple[SuperEdge, ...]
    successors: tuple[tuple[int, ...], ...]  # node -> outgoing edge indices
    predecessors: tuple[tuple[int, ...], ...]  # node -> incoming edge indices
    entry: int  # node
    exits: tuple[int, ...]  # nodes after which a path may end
    loops: tuple[SuperLoop, ...]  # outer loops before the loops inside them
    # reached nodes from which no exit is reachable -> addresses of the blocks where control stays
    stops: Mapping[int, frozenset[int]] = field(default_factory=dict)
    guidance: AppliedGuidance = NO_GUIDANCE
    left_out: Mapping[int, frozenset[int]] = field(default_factory=dict)  # node -> omitted targets
    counted: tuple[CountedEdges, ...] = ()
    # exits from which control only gets to loops that do nothing -> addresses of their blocks
    halts: Mapping[int, frozenset[int]] = field(default_factory=dict)

    @cached_property
    def called_in(self) -> tuple[tuple[int, ...], ...]:
        """The contexts of the calls made in each context."""
        called: list[list[int]] = [[] for _ in self.contexts]
        for index, context in enumerate(self.contexts):
            if context.parent is not None:
                called[context.parent].append(index)
        return tuple(map(tuple, called))

    def called_by(self, context: int) -> frozenset[int]:
        """A context, with the contexts of all calls inside of it."""
        inside, pending = {context}, [context]
        while pending:
            called = self.called_in[pending.pop()]
            inside.update(called)
            pending += called
        return frozenset(inside)

    @cached_property
    def nodes_in(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each context."""
        found: list[list[int]] = [[] for _ in self.contexts]
        for index, node in enumerate(self.nodes):
            found[node.context].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def exit_nodes(self) -> frozenset[int]:
        """``exits`` as a set."""
        return frozenset(self.exits)

    @cached_property
    def loop_at(self) -> Mapping[int, int]:
        """Loop indices by header."""
        return {loop.header: loop.index for loop in self.loops}

    def apart(self, loop: SuperLoop) -> int:
        """Peeled iterations of the source's loop before ``loop``: 1 if unrolled, else 0."""
        header = self.nodes[loop.header]
        return int(header.iterations[-1:] == (PeeledIteration(header.block.addr, False),))

    def passed(self, edge: int) -> tuple[FunctionReplacement, ...]:
        """The replaced functions that ``edge`` passes, of which one runs.

        Everything that they may change must be forgotten there (rule 2).
        """
        over = self.edges[edge]
        block = self.nodes[over.src].block
        if not block.passes or over.kind not in (EdgeKind.ACROSS, EdgeKind.RETURN):
            return ()
        return tuple(self.guidance.replaced[callee] for callee in block.passes)

    def invocations(self, function: int | None, caller: int | None) -> list[bool]:
        """Per context: whether it belongs to an invocation of a function, perhaps by a caller.

        Without a function, all do.
        """
        inside: list[bool] = []
        for context in self.contexts:  # callers come first
            if context.function == function:
                parent = None if context.parent is None else self.contexts[context.parent].function
                inside.append(caller is None or parent == caller)
            else:
                around = function is None if context.parent is None else inside[context.parent]
                inside.append(around)
        return inside

    def frame_at(self, node: int) -> CallFrame | None:
        """The frame of the function of ``node``, when the node calls; None if it is unknown."""
        here = self.nodes[node]
        return self.contexts[here.context].frames.get(here.block.last.addr)

    def saved_words(self, node: int) -> frozenset[int]:
        """Distances from sp of saved registers, when ``node`` calls.

        Each function of the call string has saved them; the walk up ends at an unknown frame, and
        where the caller is not known.
        """
        found: set[int] = set()
        height, at, call = 0, self.nodes[node].context, self.nodes[node].block.last.addr
        while True:
            context = self.contexts[at]
            frame = context.frames.get(call)
            if frame is None:
                break
            found.update(height + distance for distance in frame.saved)
            height += frame.depth
            if context.recursive or context.parent is None or context.call_site is None:
                break
            at, call = context.parent, context.call_site
        return frozenset(found)

    def call_string(self, context: int) -> tuple[Context, ...]:
        """The chain of contexts from the root to ``context``, both included."""
        chain: list[Context] = []
        at: int | None = context
        while at is not None:
            chain.append(self.contexts[at])
            at = self.contexts[at].parent
        return tuple(reversed(chain))
