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

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from quoll.arm.status import switches_mode
from quoll.cfg.call_graph import call_graph
from quoll.cfg.cfg import Block, Cfg, EdgeKind, Program
from quoll.facts.applied import AppliedGuidance, FunctionReplacement
from quoll.facts.contract import CallContract, CallFrame
from quoll.image.image import Image
from quoll.inlining.expand import Expansion, OpenContext, reached_from, refuse_unresolved
from quoll.inlining.function_shape import FunctionShape, shape_of
from quoll.inlining.read_arguments import read_arguments
from quoll.inlining.supergraph import Context, NestedBlock, SuperEdge, Supergraph
from quoll.inlining.trim import trimmed

__all__ = ["RecursiveActivations", "TooManyContexts", "activations", "outer_calls"]

MOST = 2_000  # most contexts of a graph

Components = Mapping[int, frozenset[int]]  # recursive function -> its mutually recursive functions


class TooManyContexts(Exception):
    """The graph from an entry would be too large."""


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


def outer_calls(program: Program, entry: int) -> Mapping[frozenset[int], tuple[int, ...]]:
    """By component that ``entry`` reaches, the functions of it that get control from outside."""
    entry &= ~1
    reached = reached_from(program, entry)
    graph = call_graph(program)
    found = {}
    for members in graph.recursive:
        callers = reached - members
        outside = {call.callee for caller in callers for call in graph.calls[caller]}
        if called := ({entry} | outside) & members & reached:
            found[members] = tuple(sorted(called))
    return found


def activations(
    program: Program, entry: int, image: Image, followed: Set[int] | None = None
) -> RecursiveActivations | None:
    """The graph of the chains from the function at ``entry``; None without recursion.

    ``followed``: the functions that calls enter, with all that are mutually recursive; other calls
    are steps past them. All functions by default.

    Raises ControlFlowError as ``quoll.inlining.expand`` does, and TooManyContexts.
    """
    entry &= ~1
    reached = reached_from(program, entry)
    passed = frozenset() if followed is None else reached - followed
    found = call_graph(program).recursive
    components = {f: all_ for all_ in found for f in all_ if f in reached and f not in passed}
    if not components:
        return None
    refuse_unresolved(program, entry)
    left = summaries(program)
    stepped = components.keys() | passed
    guidance = replace(
        program.guidance,
        depths={},
        replaced={**program.guidance.replaced, **{f: left[f] for f in stepped}},
    )
    entered = sorted(reached - passed)
    cfgs = {f: _passing(program.functions[f], program, stepped) for f in entered}
    shapes = {f: shape_of(cfg, image) for f, cfg in cfgs.items()}
    shapes |= {f: _repeated(shapes[f]) for f in components}
    draft = _Chains(shapes, guidance, program.frames, components, passed, image).run(entry)
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


def _passing(cfg: Cfg, program: Program, stepped: Set[int]) -> Cfg:
    """The function with a step past each call of one of ``stepped`` that may return."""

    def passing(block: Block) -> Block:
        passed = tuple(c for c in block.calls if c in stepped and program.functions[c].returns)
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
    """Calls of active functions lead back; recursive functions return nowhere.

    ``passed``: functions that no call enters.
    """

    def __init__(
        self,
        shapes: dict[int, FunctionShape],
        guidance: AppliedGuidance,
        frames: Mapping[int, Mapping[int, CallFrame]],
        components: Components,
        passed: Set[int],
        image: Image,
    ) -> None:
        super().__init__(shapes, guidance, frames)
        self.components, self.passed, self.image = components, passed, image
        self.open: dict[int, OpenContext] = {}  # contexts of recursive functions

    def _call(self, here: OpenContext, vertex: int, callee: int) -> OpenContext | None:
        if callee not in self.components and callee not in self.passed:
            return super()._call(here, vertex, callee)
        node = here.base + vertex
        self.draft.exits.append(node)
        if callee in self.passed:
            return None
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
            raise TooManyContexts(f"recursion is reached in more than {MOST:,} contexts")
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
