"""Building supergraphs: every call site gets its own copy of the callee (VIVU).

Source: Martin, Alt, Wilhelm, Ferdinand, "Analysis of Loops" (1998); loops are unrolled where that
is asked for (``quoll.inlining.unroll``). Contexts are made depth first, so that a context's number
is above that of the first of its callers. With call strings of at most k sites (Sharir and Pnueli,
1981), calls whose last k sites are the same share one context; what a function tail-calls belongs
to the context of that function, and is never shared by itself. A recursive function has as many
activations as a fact allows, each in a context of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quoll.cfg.call_graph import refuse_recursion
from quoll.cfg.cfg import Block, EdgeKind, Program
from quoll.errors import ControlFlowError
from quoll.facts.applied import Guidance, Removed
from quoll.graph.closure import closure
from quoll.image.image import Image
from quoll.inlining.function_shape import Shape, shape_of
from quoll.inlining.merged_contexts import summaries
from quoll.inlining.supergraph import Context, Node, SuperEdge, Supergraph, parts_of
from quoll.inlining.trim import Draft, refuse_stops, trimmed, without_edges
from quoll.inlining.unroll import unrolled
from quoll.inlining.vivu import FULL, Vivu

__all__ = [
    "Expansion",
    "OpenContext",
    "Return",
    "expand",
    "reached_from",
    "refuse_stops",
    "refuse_unresolved",
    "without_edges",
]

NAMED = 8  # places named in an error
ACTIVATIONS = 100_000  # contexts, beyond which those of recursive functions are not told apart


@dataclass(frozen=True, slots=True)
class Return:
    """A call that is open: the node that made it, and where it returns to."""

    call: int
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OpenContext:
    """A context whose vertices exist from node ``base`` on.

    ``returns`` is None at the root: a return there ends the path. ``string`` holds the last call
    sites, ``active`` how many activations there are of each function whose depth is bounded.
    """

    index: int
    shape: Shape
    base: int
    returns: Return | None
    string: tuple[int, ...]
    active: tuple[int, ...]


def expand(program: Program, entry: int, image: Image, vivu: Vivu = FULL) -> Supergraph:
    """The expansion of ``program`` from the function at ``entry``; bit 0 says nothing here.

    A path ends where a block exits, and where the entry function returns. Raises ControlFlowError
    when something reachable is unresolved or recursive without a bound, when a function cannot be
    made reducible or has too many nested loops to unroll, and when no exit is reachable.
    """
    entry &= ~1
    reached = reached_from(program, entry)
    refuse_unresolved(program, reached)
    refuse_recursion(_part(program, reached), image, program.guidance.depths.keys())
    shapes = {e: shape_of(program.functions[e], image) for e in sorted(reached)}
    if vivu.unroll:
        shapes = {e: unrolled(shape) for e, shape in shapes.items()}
    draft = Expansion(shapes, program.guidance, vivu.call_string).run(entry)
    merged = {context.function for context in draft.contexts if context.others}
    if merged:
        draft.summaries = {f: left for f, left in summaries(program).items() if f in merged}
    return trimmed(draft, 0, image)


class Expansion:
    """Contexts that are still to be placed, and those that later calls may share."""

    def __init__(
        self, shapes: dict[int, Shape], guidance: Guidance, call_string: int | None
    ) -> None:
        self.shapes, self.guidance, self.call_string = shapes, guidance, call_string
        self.bounded = sorted(guidance.depths)
        self.draft = Draft(guidance=guidance)
        self.shared: dict[tuple[object, ...], OpenContext] = {}
        self.tails: dict[int, list[OpenContext]] = {}  # context -> those that it tail-calls
        self.returned: dict[int, tuple[int, int]] = {}  # RETURN edge -> context called, call
        self.later: list[
            tuple[OpenContext, Return]
        ] = []  # calls of a context that was there already
        self.removed: dict[Removed, None] = {}

    def run(self, entry: int) -> Draft:
        active = tuple(int(f == entry) for f in self.bounded)
        work = [self._enter(Context(None, None, entry), None, (), active)]
        while work:
            here = work.pop()
            opened = []
            for vertex, callee in reversed(self._place(here)):
                context = self._call(here, vertex, callee)
                if context is not None:
                    opened.append(context)
            work.extend(opened)
        for shared, back in self.later:
            self._return_also(shared, shared.index, back)
        self._name_calls()
        if self.removed:
            removed = (*self.guidance.removed, *self.removed)
            self.draft.guidance = replace(self.guidance, removed=removed)
        return self.draft

    def _enter(
        self,
        context: Context,
        returns: Return | None,
        string: tuple[int, ...],
        active: tuple[int, ...],
    ) -> OpenContext:
        draft, shape = self.draft, self.shapes[context.function]
        if self.bounded and len(draft.contexts) >= ACTIVATIONS:
            raise ControlFlowError(
                f"recursion makes more than {ACTIVATIONS:,} contexts",
                where=f"{context.function:#010x} <{shape.cfg.name}>",
                hint="share them with --call-string, or state a smaller depth: "
                f"recursion of {shape.cfg.name} at most N",
            )
        opened = OpenContext(len(draft.contexts), shape, len(draft.nodes), returns, string, active)
        draft.contexts.append(replace(context, nest=shape.nest))
        blocks = shape.cfg.blocks
        placed = zip(shape.blocks, shape.turns, strict=True)
        draft.nodes.extend(Node(opened.index, blocks[b], turns) for b, turns in placed)
        return opened

    def _place(self, here: OpenContext) -> list[tuple[int, int]]:
        """Add the edges of one context; gives the calls to expand, as (vertex, callee)."""
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
                self._return(here.index, base + vertex, here.returns)
        return [(v, c) for v in here.shape.callers for c in blocks[here.shape.blocks[v]].calls]

    def _may_end(self, block: Block) -> bool:
        """Whether the path may end in a function that something else stands for."""
        return any(self.guidance.replaced[callee].ends for callee in block.passes)

    def _return(self, callee: int, src: int, back: Return) -> None:
        if self._may_end(self.draft.nodes[src].block):
            self.draft.exits.extend(back.after)
        for after in back.after:
            self.returned[len(self.draft.edges)] = callee, back.call
            self.draft.edges.append(SuperEdge(src, after, EdgeKind.RETURN))

    def _call(self, here: OpenContext, vertex: int, callee: int) -> OpenContext | None:
        """Lead into the context of one call; it is given if it is new."""
        block = here.shape.cfg.blocks[here.shape.blocks[vertex]]
        site, node = block.last.addr, here.base + vertex
        active = tuple(n + (f == callee) for f, n in zip(self.bounded, here.active, strict=True))
        depth = self.guidance.depths.get(callee)
        if depth is not None and active[self.bounded.index(callee)] > depth.activations:
            self.removed |= dict.fromkeys(Removed(site, callee, fact) for fact in depth.facts)
            self.draft.cut.add(node)
            return None
        string = (*here.string, site)
        if self.call_string is not None:
            string = string[len(string) - min(self.call_string, len(string)) :]
        back = Return(node, tuple(here.base + v for v in here.shape.across[vertex]))
        key = (callee, string, active)
        known = None if block.tail else self.shared.get(key)
        if known is not None:
            self._share(known, here, site, node, back)
            return None
        context = Context(here.index, site, callee)
        opened = self._enter(context, here.returns if block.tail else back, string, active)
        self.draft.edges.append(SuperEdge(node, opened.base, EdgeKind.CALL))
        if block.tail:
            self.tails.setdefault(here.index, []).append(opened)
        elif self.call_string is not None:
            self.shared[key] = opened
        return opened

    def _share(
        self, known: OpenContext, here: OpenContext, site: int, node: int, back: Return
    ) -> None:
        contexts = self.draft.contexts
        before = contexts[known.index]
        contexts[known.index] = replace(before, others=(*before.others, (here.index, site)))
        self.draft.edges.append(SuperEdge(node, known.base, EdgeKind.CALL))
        self.later.append((known, back))

    def _return_also(self, at: OpenContext, callee: int, back: Return) -> None:
        """Return edges of a shared context, and of what it tail-calls, to one more caller."""
        pending = [at]
        while pending:
            at = pending.pop()
            for vertex, index in enumerate(at.shape.blocks):
                if at.shape.cfg.blocks[index].returns:
                    self._return(callee, at.base + vertex, back)
            pending += reversed(self.tails.get(at.index, ()))

    def _name_calls(self) -> None:
        """Every return edge that leaves a merged part is told which call it belongs to."""
        draft = self.draft
        parts = parts_of(tuple(draft.contexts))
        for index, (_, call) in self.returned.items():
            edge = draft.edges[index]
            src, dst = (parts[draft.nodes[n].context] for n in (edge.src, call))
            if src != dst:
                draft.edges[index] = replace(edge, call=call)


def reached_from(program: Program, entry: int) -> set[int]:
    """The functions that the one at ``entry`` may call in the end, itself among them."""
    return closure([entry], lambda f: (c for b in program.functions[f].blocks for c in b.calls))


def _part(program: Program, reached: set[int]) -> Program:
    functions = {e: f for e, f in program.functions.items() if e in reached}
    return Program(functions, program.entries)


def refuse_unresolved(program: Program, reached: set[int]) -> None:
    """Raise ControlFlowError if it is not known where control goes in a function ``reached``."""
    addrs = {i.addr for e in reached for b in program.functions[e].blocks for i in b.insns}
    unresolved = [u for u in program.unresolved if u.addr in addrs]
    if not unresolved:
        return
    others = "".join(f"; also {u.where}: {u.reason}" for u in unresolved[1:NAMED])
    more = f"; and {len(unresolved) - NAMED} more" if len(unresolved) > NAMED else ""
    first = unresolved[0]
    raise ControlFlowError(
        f"{first.reason}{others}{more}",
        where=first.where,
        hint=first.hint,
        missing=[u.missing for u in unresolved],
    )
