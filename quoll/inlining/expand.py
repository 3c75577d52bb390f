"""Building supergraphs: every call site gets its own copy of the callee (VIVU).

Source: Martin, Alt, Wilhelm, Ferdinand, "Analysis of Loops" (1998); loops are unrolled on request
(``quoll.inlining.unroll``). Contexts are made depth first, so the number of a context is above its
caller's. A recursive function has as many activations as a fact allows, each in its own context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from quoll.cfg.call_graph import refuse_recursion
from quoll.cfg.cfg import Block, EdgeKind, Program
from quoll.cfg.root_causes import root_causes
from quoll.errors import ControlFlowError
from quoll.facts.applied import AppliedGuidance, RemovedEdge
from quoll.facts.contract import CallFrame
from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.inlining.function_shape import FunctionShape, shape_of
from quoll.inlining.supergraph import Context, SuperEdge, Supergraph, SuperNode
from quoll.inlining.trim import SupergraphDraft, refuse_stops, trimmed, without_edges
from quoll.inlining.unroll import unrolled
from quoll.inlining.vivu import FULL, VivuSettings

__all__ = [
    "Expansion",
    "OpenContext",
    "expand",
    "reached_from",
    "refuse_stops",
    "refuse_unexpandable",
    "refuse_unresolved",
    "without_edges",
]

NAMED = 8  # places named in an error
ACTIVATIONS = 100_000  # most contexts in which activations of recursive functions are distinguished


@dataclass(frozen=True, slots=True)
class OpenContext:
    """A context whose vertices exist from node ``base`` on.

    ``returns`` are the nodes that it returns to; None at the root, where a return ends the path.
    ``active``: the number of activations of each function with a bounded depth.
    """

    index: int
    shape: FunctionShape
    base: int
    returns: tuple[int, ...] | None
    active: tuple[int, ...]


def expand(program: Program, entry: int, image: Image, vivu: VivuSettings = FULL) -> Supergraph:
    """The expansion of ``program`` from the function at ``entry``; bit 0 is ignored.

    A path ends where a block exits, and where the entry function returns. Raises ControlFlowError
    when something reachable is unresolved or recursive without a bound, when a function cannot be
    made reducible or has too many nested loops to unroll, and when no exit is reachable.
    """
    entry &= ~1
    reached = refuse_unexpandable(program, entry, image)
    shapes = {e: shape_of(program.functions[e], image) for e in sorted(reached)}
    if vivu.unroll:
        shapes = {e: unrolled(shape) for e, shape in shapes.items()}
    return trimmed(Expansion(shapes, program.guidance, program.frames).run(entry), 0, image)


class Expansion:
    """Places one context after another."""

    def __init__(
        self,
        shapes: Mapping[int, FunctionShape],
        guidance: AppliedGuidance,
        frames: Mapping[int, Mapping[int, CallFrame]],
    ) -> None:
        self.shapes, self.guidance, self.frames = shapes, guidance, frames
        self.bounded = sorted(guidance.depths)
        self.draft = SupergraphDraft(guidance=guidance)
        self.removed: dict[RemovedEdge, None] = {}

    def run(self, entry: int) -> SupergraphDraft:
        active = tuple(int(f == entry) for f in self.bounded)
        work = [self._enter(Context(None, None, entry), None, active)]
        while work:
            here = work.pop()
            opened = []
            for vertex, callee in reversed(self._place(here)):
                context = self._call(here, vertex, callee)
                if context is not None:
                    opened.append(context)
            work.extend(opened)
        if self.removed:
            removed = (*self.guidance.removed, *self.removed)
            self.draft.guidance = replace(self.guidance, removed=removed)
        return self.draft

    def _enter(
        self,
        context: Context,
        returns: tuple[int, ...] | None,
        active: tuple[int, ...],
    ) -> OpenContext:
        draft, shape = self.draft, self.shapes[context.function]
        if self.bounded and len(draft.contexts) % ACTIVATIONS == ACTIVATIONS - 1:
            self._refuse_depths()
        opened = OpenContext(len(draft.contexts), shape, len(draft.nodes), returns, active)
        frames = self.frames.get(context.function, {})
        draft.contexts.append(replace(context, nest=shape.nest, frames=frames))
        blocks = shape.cfg.blocks
        placed = zip(shape.blocks, shape.iterations, strict=True)
        draft.nodes.extend(
            SuperNode(opened.index, blocks[b], iterations) for b, iterations in placed
        )
        return opened

    def _refuse_depths(self) -> None:
        """Raise ControlFlowError naming the recursive function with the most contexts, if any.

        Of these that are active more than once at a time: others make no more contexts.
        """
        counts = Counter(context.function for context in self.draft.contexts)
        depths = self.guidance.depths
        deep = [f for f in self.bounded if counts[f] and depths[f].activations > 1]
        recursive = [f for f in deep if f in closure(self._callees(f), self._callees)]
        if recursive:
            most = max(recursive, key=counts.__getitem__)
            name = self.shapes[most].cfg.name
            raise ControlFlowError(
                f"recursion makes more than {ACTIVATIONS:,} contexts, {counts[most]:,} of them of "
                f"{name}",
                where=f"{most:#010x} <{name}>",
                hint=f"state a smaller depth: recursion of {name} at most N",
            )

    def _callees(self, function: int) -> tuple[int, ...]:
        return tuple(c for block in self.shapes[function].cfg.blocks for c in block.calls)

    def _place(self, here: OpenContext) -> list[tuple[int, int]]:
        """Add the edges of one context; returns the calls to expand, as (vertex, callee)."""
        draft, base, blocks = self.draft, here.base, here.shape.cfg.blocks
        draft.edges.extend(SuperEdge(base + s, base + d, kind) for s, d, kind in here.shape.edges)
        draft.exits.extend(
            base + d
            for s, d, kind in here.shape.edges
            if kind is EdgeKind.ACROSS and self._may_end(blocks[here.shape.blocks[s]])
        )
        for vertex, index in enumerate(here.shape.blocks):
            block = blocks[index]
            if block.last.addr in self.guidance.cut:
                draft.cut.add(base + vertex)
            if block.exits or (block.returns and here.returns is None):
                draft.exits.append(base + vertex)
            if block.returns and here.returns is not None:
                self._return(base + vertex, here.returns)
        return [(v, c) for v in here.shape.callers for c in blocks[here.shape.blocks[v]].calls]

    def _may_end(self, block: Block) -> bool:
        """Whether the path may end in a replaced function."""
        return any(self.guidance.replaced[callee].exits for callee in block.passes)

    def _return(self, src: int, returns: tuple[int, ...]) -> None:
        if self._may_end(self.draft.nodes[src].block):
            self.draft.exits.extend(returns)
        self.draft.edges.extend(SuperEdge(src, after, EdgeKind.RETURN) for after in returns)

    def _call(self, here: OpenContext, vertex: int, callee: int) -> OpenContext | None:
        """Add the context of one call; None if it exceeds the recursion depth."""
        block = here.shape.cfg.blocks[here.shape.blocks[vertex]]
        site, node = block.last.addr, here.base + vertex
        active = tuple(n + (f == callee) for f, n in zip(self.bounded, here.active, strict=True))
        depth = self.guidance.depths.get(callee)
        if depth is not None and active[self.bounded.index(callee)] > depth.activations:
            removed = (RemovedEdge(site, callee, fact, everywhere=False) for fact in depth.facts)
            self.removed |= dict.fromkeys(removed)
            self.draft.cut.add(node)
            return None
        after = tuple(here.base + v for v in here.shape.across[vertex])
        returns = here.returns if block.tail else after
        opened = self._enter(Context(here.index, site, callee), returns, active)
        self.draft.edges.append(SuperEdge(node, opened.base, EdgeKind.CALL))
        return opened


def reached_from(program: Program, entry: int) -> set[int]:
    """The functions that the one at ``entry`` may call, directly or not, itself included."""
    return closure([entry], lambda f: (c for b in program.functions[f].blocks for c in b.calls))


def refuse_unexpandable(program: Program, entry: int, image: Image) -> set[int]:
    """The functions that ``entry`` reaches; ControlFlowError for unresolved or recursive ones."""
    reached = reached_from(program, entry)
    refuse_unresolved(program, entry)
    refuse_recursion(_reached_program(program, reached), image, program.guidance.depths.keys())
    return reached


def _reached_program(program: Program, reached: set[int]) -> Program:
    functions = {e: f for e, f in program.functions.items() if e in reached}
    return Program(functions, program.entries)


def refuse_unresolved(program: Program, entry: int) -> None:
    """Raise ControlFlowError if ``entry`` reaches unresolved transfers, naming the root causes."""
    reached = reached_from(program, entry) if program.unresolved else set()
    addrs = {i.addr for e in reached for b in program.functions[e].blocks for i in b.insns}
    unresolved = [u for u in program.unresolved if u.addr in addrs]
    if not unresolved:
        return
    causes = root_causes(program.functions, entry, {u.addr for u in unresolved})
    unresolved = [u for u in unresolved if u.addr in causes] or unresolved
    others = "".join(f"; also {u.where}: {u.reason}" for u in unresolved[1:NAMED])
    more = f"; and {len(unresolved) - NAMED} more" if len(unresolved) > NAMED else ""
    first = unresolved[0]
    raise ControlFlowError(
        f"{first.reason}{others}{more}",
        where=first.where,
        hint=first.hint,
        missing=[u.missing for u in unresolved],
    )
