"""Virtual inlining (VIVU): every call analysed in its calling context.

A ``Supergraph`` is the plain expansion for one entry: a node is a block in a context, a call
edge leads into the callee's copy, a return edge leads back. Nodes that the entry does not reach,
or from which no exit is reachable, are left out (the latter are listed in ``excluded``).
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.cfg import Block, EdgeKind
from quoll.guidance import NO_GUIDANCE, Guidance, Replacement

__all__ = ["Context", "Node", "SuperEdge", "SuperLoop", "Supergraph"]


@dataclass(frozen=True, slots=True)
class Context:
    """A call string, parent-linked: contexts of different index are different activations.

    Indices differ where strings do; two have the same string only where node splitting has copied
    the calling block (``quoll.reducible``), once for each copy.
    """

    parent: int | None
    call_site: int | None  # address of the call instruction in the parent's function
    function: int  # entry address


@dataclass(frozen=True, slots=True)
class Node:
    """A block in a context."""

    context: int
    block: Block


@dataclass(frozen=True, slots=True)
class SuperEdge:
    """An edge between nodes, by node index."""

    src: int
    dst: int
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class SuperLoop:
    """A natural loop in one context, callees' copies included.

    ``entries`` are the edges into the header from outside, ``backs`` those from inside. A bound
    is the number of executions of ``header`` per traversal of an entry edge (rule 18).
    """

    index: int
    header: int
    entries: tuple[int, ...]  # edge indices
    backs: tuple[int, ...]  # edge indices
    nodes: frozenset[int]
    parent: int | None  # index of the innermost enclosing loop


@dataclass(frozen=True, slots=True)
class Supergraph:
    """The expansion of one entry. All cross references are indices into the tuples here."""

    contexts: tuple[Context, ...]
    nodes: tuple[Node, ...]
    edges: tuple[SuperEdge, ...]
    successors: tuple[tuple[int, ...], ...]  # node -> outgoing edge indices
    predecessors: tuple[tuple[int, ...], ...]  # node -> incoming edge indices
    entry: int  # node
    exits: tuple[int, ...]  # nodes after which a path may end
    loops: tuple[SuperLoop, ...]  # outer loops before the loops inside them
    excluded: tuple[str, ...] = ()  # printed places that cannot reach an exit, and why
    guidance: Guidance = NO_GUIDANCE

    def passed(self, edge: int) -> tuple[Replacement, ...]:
        """What is executed along ``edge`` in place of the functions that facts replace.

        One of them runs. Everything that they may change must be forgotten there (rule 2).
        """
        over = self.edges[edge]
        block = self.nodes[over.src].block
        if not block.passes or over.kind not in (EdgeKind.ACROSS, EdgeKind.RETURN):
            return ()
        return tuple(self.guidance.replaced[callee] for callee in block.passes)

    def call_string(self, context: int) -> tuple[Context, ...]:
        """The chain of contexts from the root to ``context``, both included."""
        chain: list[Context] = []
        at: int | None = context
        while at is not None:
            chain.append(self.contexts[at])
            at = self.contexts[at].parent
        return tuple(reversed(chain))
