"""Instances of a function in a supergraph: the extent of one invocation (rule 24).

An instance of f is a context whose function is f. Its extent is all of its nodes and the nodes of
the contexts below it, except where a deeper context is itself an instance of f: in recursion each
activation owns its own extent. It is entered N times on a path, through its call edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ilp.constraints.nest import LoopNest
from quoll.arm.insn import ControlFlow
from quoll.cfg.cfg import EdgeKind

__all__ = ["CallStructure", "ContextInstance"]


@dataclass(frozen=True, slots=True)
class ContextInstance:
    """One context of a function. ``entries`` are the call edges into it."""

    context: int
    entries: tuple[int, ...]
    started: bool  # the path starts in it or below it, in an open invocation
    partial: bool  # the open invocation began before the path
    most: int  # proved maximum of N
    cut: tuple[int, ...]  # exits that end the path in the middle of an invocation


class CallStructure:
    """The calling structure of a graph: callers, callees and the edges between them."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest
        graph = self.graph = nest.graph
        self._into: list[list[int]] = [[] for _ in graph.contexts]
        for e, edge in enumerate(graph.edges):
            if edge.kind is EdgeKind.CALL:
                self._into[graph.nodes[edge.dst].context].append(e)

    def caller(self, context: int) -> int | None:
        """The function that calls a context; None for the root."""
        parent = self.graph.contexts[context].parent
        return None if parent is None else self.graph.contexts[parent].function

    def activation(self, context: int, function: int) -> int | None:
        """The innermost context of ``function`` that is ``context`` or one of its callers."""
        at: int | None = context
        while at is not None and self.graph.contexts[at].function != function:
            at = self.graph.contexts[at].parent
        return at

    def below(self, context: int, top: int) -> bool:
        """Whether ``context`` is ``top`` or called from it, directly or indirectly."""
        at: int | None = context
        while at is not None and at != top:
            at = self.graph.contexts[at].parent
        return at is not None

    def instances(self, nodes: Iterable[int], function: int) -> list[ContextInstance]:
        """The instances of ``function`` whose extents contain ``nodes``, by context."""
        contexts = {self.graph.nodes[n].context for n in nodes}
        tops = {self.activation(c, function) for c in contexts} - {None}
        return [self.instance(top) for top in sorted(t for t in tops if t is not None)]

    def instance(self, context: int) -> ContextInstance:
        """The instance at ``context``."""
        graph = self.graph
        entries = tuple(self._into[context])
        entry = graph.nodes[graph.entry]
        started = self.below(entry.context, context)
        whole = entry.context == context and entry.block.addr == graph.contexts[context].function
        most = started + sum(self.nest.most_edge(e) for e in entries)
        cut = tuple(n for n in graph.exits if self.cuts_short(n, context))
        return ContextInstance(
            context, entries, started=started, partial=started and not whole, most=most, cut=cut
        )

    def most_per_invocation(self, nodes: Iterable[int], top: int) -> int:
        """M of rule 24: most executions of ``nodes`` together in one invocation of ``top``."""

        def inside(header: int) -> bool:
            return self.below(self.graph.nodes[header].context, top)

        return sum(self.nest.most_node(n, inside) for n in nodes)

    def cuts_short(self, node: int, top: int) -> bool:
        """Whether a path that ends after ``node`` leaves an invocation of ``top`` unfinished.

        An invocation is finished if its last instruction returns, from the call or from the
        exception; after a tail call, if the callee's does.
        """
        context = self.graph.nodes[node].context
        if not self.below(context, top):
            return False
        while context != top:
            calls = self._into[context]
            if not calls or not all(self.graph.nodes[self.graph.edges[e].src].block.tail
                                    for e in calls):  # fmt: skip
                return True
            parent = self.graph.contexts[context].parent
            assert parent is not None, "top is above context"
            context = parent
        block = self.graph.nodes[node].block
        return not (block.returns or block.last.flow is ControlFlow.EXCEPTION_RETURN)
