"""Virtual unrolling: the first iteration of every loop gets separate vertices.

Source: Martin, Alt, Wilhelm, Ferdinand, "Analysis of Loops" (1998). A loop is copied; its back
edges lead into the copy, which stands for all iterations but the first. The copy contains the inner
loops too, and each of them is unrolled: d nested loops make 2**d copies of the innermost. The
result and the shape have the same walks.
"""

from __future__ import annotations

from dataclasses import replace

from quoll.cfg.cfg import EdgeKind
from quoll.errors import ControlFlowError
from quoll.graph.natural_loops import find_loops
from quoll.inlining.function_shape import FunctionShape
from quoll.inlining.supergraph import PeeledIteration

__all__ = ["unrolled"]

COPIES_PER_BLOCK = 64  # six nested loops

_Step = tuple[int, EdgeKind | None]  # target; None: the return address of a call


def unrolled(shape: FunctionShape) -> FunctionShape:
    """``shape`` with peeled first iterations; its ``iterations`` label the vertices.

    Raises ControlFlowError if that takes more than ``COPIES_PER_BLOCK`` vertices per block.
    """
    unroller = _Unroller(shape)
    loops = find_loops([[dst for dst, _ in steps] for steps in unroller.steps], 0)
    bodies = [set(loop.nodes) for loop in loops]
    for index in reversed(range(len(loops))):  # inner loops first
        copies = unroller.unroll(loops[index].header, bodies[index])
        around = loops[index].parent
        while around is not None:
            bodies[around] |= copies
            around = loops[around].parent
    return unroller.shape()


class _Unroller:
    """The graph while vertices are added to it."""

    def __init__(self, shape: FunctionShape) -> None:
        self._shape = shape
        self._most = COPIES_PER_BLOCK * len(shape.cfg.blocks)
        self.blocks = list(shape.blocks)
        self.iterations: list[tuple[PeeledIteration, ...]] = [() for _ in shape.blocks]
        self.steps: list[list[_Step]] = [[(v, None) for v in after] for after in shape.across]
        for src, dst, kind in shape.edges:
            self.steps[src].append((dst, kind))

    def unroll(self, header: int, body: set[int]) -> set[int]:
        """Copy the loop for its later iterations; returns the copies."""
        if len(self.blocks) + len(body) > self._most:
            name = self._shape.cfg.name
            raise ControlFlowError(
                f"the first iterations of the nested loops of {name} need more than {self._most:,} "
                "copies of its blocks",
                where=f"{self._shape.cfg.entry:#010x} <{name}>",
                hint="leave out --unroll",
            )
        originals = sorted(body)
        copy = {v: len(self.blocks) + i for i, v in enumerate(originals)}
        address = self._shape.cfg.blocks[self.blocks[header]].addr
        for v in originals:
            self.blocks.append(self.blocks[v])
            self.iterations.append((PeeledIteration(address, False), *self.iterations[v]))
            self.steps.append([(copy.get(dst, dst), kind) for dst, kind in self.steps[v]])
        for v in originals:
            self.iterations[v] = (PeeledIteration(address, True), *self.iterations[v])
            self.steps[v] = [
                (copy[header] if dst == header else dst, kind) for dst, kind in self.steps[v]
            ]
        return set(copy.values())

    def shape(self) -> FunctionShape:
        """The unrolled shape."""
        callers = self._shape.cfg.blocks
        return replace(
            self._shape,
            blocks=tuple(self.blocks),
            edges=tuple(
                (src, dst, kind)
                for src, steps in enumerate(self.steps)
                for dst, kind in steps
                if kind is not None
            ),
            across=tuple(tuple(dst for dst, kind in steps if kind is None) for steps in self.steps),
            callers=tuple(v for v, block in enumerate(self.blocks) if callers[block].calls),
            iterations=tuple(self.iterations),
        )
