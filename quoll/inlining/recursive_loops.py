"""Recursion as loops: a graph in which a call of an active function leads back to it.

At any time an execution is a chain of activations, each executed up to its open call. Every chain
is a path of this graph: a call enters a recursive function, and calls between mutually recursive
functions lead into a new context or, if the callee is active further up, back to that context. A
returned call is a step past it, which preserves the registers that the callee preserves and forgets
the rest. So the number of executions of a function's entry on a path, per entry from outside, is at
least the number of its simultaneous activations.

No recursive function returns in this graph; paths end at each recursive call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quoll.arm.status import switches_mode
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program
from quoll.errors import ControlFlowError
from quoll.facts.applied import AppliedGuidance, FunctionReplacement
from quoll.facts.contract import CallContract, CallFrame
from quoll.image.image import Image
from quoll.inlining.expand import Expansion, OpenContext, reached_from, refuse_unresolved
from quoll.inlining.function_shape import FunctionShape, shape_of
from quoll.inlining.read_arguments import read_arguments
from quoll.inlining.supergraph import Context, NestedBlock, SuperEdge, Supergraph
from quoll.inlining.trim import trimmed

__all__ = ["RecursiveActivations", "activations"]

MOST = 2_000  # most contexts of a graph

Components = Mapping[int, frozenset[int]]  # recursive function -> its mutually recursive functions


@dataclass(frozen=True, slots=True)
class RecursiveActivations:
    """The graph; the headers of its recursion loops are entries of functions."""

    graph: Supergraph
    components: Components

    def outermost(self, context: int) -> int:
        """The outermost context of a recursive function's chain, called from outside."""
        contexts = self.graph.contexts
        members = self.components[contexts[context].function]
        at = context
        while (above := contexts[at].parent) is not None and contexts[above].function in members:
            at = above
        return at

    def entries(self) -> Mapping[int, int]:
        """The entry node of each context of a recursive function."""
        found = {}
        for number, node in enumerate(self.graph.nodes):
            function = self.graph.contexts[node.context].function
            if function in self.components and node.block.index == 0:
                found[node.context] = number
        return found


def activations(program: Program, entry: int, image: Image) -> RecursiveActivations | None:
    """The graph of the chains from the function at ``entry``; None without recursion.

    Raises ControlFlowError as ``quoll.inlining.expand`` does, and if there would be too many
    contexts.
    """
    entry &= ~1
    reached = reached_from(program, entry)
    found = call_graph(program).recursive
    components = {f: component for component in found for f in component if f in reached}
    if not components:
        return None
    refuse_unresolved(program, entry)
    left = summaries(program)
    guidance = replace(
        program.guidance,
        depths={},
        replaced={**program.guidance.replaced, **{f: left[f] for f in components}},
    )
    cfgs = {f: _passing(program.functions[f], program, components) for f in sorted(reached)}
    shapes = {f: shape_of(cfg, image) for f, cfg in cfgs.items()}
    shapes |= {f: _repeated(shapes[f]) for f in components}
    draft = _Chains(shapes, guidance, program.frames, components, image).run(entry)
    return RecursiveActivations(trimmed(draft, 0, image), components)


def summaries(program: Program) -> Mapping[int, FunctionReplacement]:
    """The effect of each function on its caller: registers, arguments that it reads, and the mode.

    The mode is preserved if no function that it may call has an instruction that changes the mode.
    """
    changes = {
        entry
        for entry, cfg in program.functions.items()
        if any(switches_mode(i) for b in cfg.blocks for i in b.insns)
    }
    while True:
        more = {
            entry
            for entry, cfg in program.functions.items()
            if entry not in changes and any(c in changes for b in cfg.blocks for c in b.calls)
        }
        if not more:
            break
        changes |= more
    nothing = CallContract(frozenset())
    left = {entry: program.left.get(entry, nothing) for entry in program.functions}
    read = read_arguments(program)
    return {
        entry: FunctionReplacement(
            0,
            False,
            None,
            known.preserved,
            entry not in changes,
            stores=known.stores,
            reads=read[entry],
        )
        for entry, known in left.items()
    }


def _passing(cfg: Cfg, program: Program, components: Components) -> Cfg:
    """The function with a step past each call of a recursive function that may return."""

    def passing(block: Block) -> Block:
        passed = tuple(c for c in block.calls if c in components and program.functions[c].returns)
        if not passed:
            return block
        return replace(block, passes=(*block.passes, *passed), returns=block.returns or block.tail)

    return replace(cfg, blocks=tuple(map(passing, cfg.blocks)))


def _repeated(shape: FunctionShape) -> FunctionShape:
    """The shape of a recursive function as a loop headed by its entry (``Context.nest``)."""
    entry = shape.cfg.blocks[0].addr
    nest = tuple(NestedBlock(n.block, (entry, *n.headers)) for n in shape.nest)
    return replace(shape, nest=nest)


class _Chains(Expansion):
    """Calls of active functions lead back; recursive functions return nowhere."""

    def __init__(
        self,
        shapes: dict[int, FunctionShape],
        guidance: AppliedGuidance,
        frames: Mapping[int, Mapping[int, CallFrame]],
        components: Components,
        image: Image,
    ) -> None:
        super().__init__(shapes, guidance, frames)
        self.components, self.image = components, image
        self.open: dict[int, OpenContext] = {}  # contexts of recursive functions

    def _call(self, here: OpenContext, vertex: int, callee: int) -> OpenContext | None:
        if callee not in self.components:
            return super()._call(here, vertex, callee)
        node = here.base + vertex
        self.draft.exits.append(node)
        known = self._active(here.index, callee)
        if known is not None:
            self.draft.edges.append(SuperEdge(node, known.base, EdgeKind.CALL))
            return None
        site = here.shape.cfg.blocks[here.shape.blocks[vertex]].last.addr
        opened = self._enter(Context(here.index, site, callee), None, ())
        self.draft.edges.append(SuperEdge(node, opened.base, EdgeKind.CALL))
        return opened

    def _enter(
        self,
        context: Context,
        returns: tuple[int, ...] | None,
        active: tuple[int, ...],
    ) -> OpenContext:
        if len(self.draft.contexts) >= MOST:
            raise ControlFlowError(
                f"recursion is reached in more than {MOST:,} contexts",
                where=self.image.place(context.function),
            )
        recursive = context.function in self.components
        context = replace(context, recursive=recursive)
        opened = super()._enter(context, None if recursive else returns, active)
        if recursive:
            self.open[opened.index] = opened
        return opened

    def _active(self, context: int | None, callee: int) -> OpenContext | None:
        """The nearest activation of ``callee`` in the chain of recursive functions."""
        members = self.components[callee]
        while context is not None and self.draft.contexts[context].function in members:
            if self.draft.contexts[context].function == callee:
                return self.open[context]
            context = self.draft.contexts[context].parent
        return None
