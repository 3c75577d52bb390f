"""The number of contexts for virtual inlining, computed without expanding them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from quoll.cfg.call_graph import CallGraph, call_graph
from quoll.cfg.cfg import Cfg, Program
from quoll.image.image import Image
from quoll.inlining.function_shape import shape_of
from quoll.inlining.unroll import unrolled
from quoll.inlining.vivu import VivuSettings

__all__ = ["ContextCounter", "ExpansionSize"]


@dataclass(frozen=True, slots=True)
class ExpansionSize:
    """Size of the expansion of one entry."""

    contexts: int
    blocks: int
    instructions: int


class ContextCounter:
    """Sizes of the expansions of a program, before anything is left out.

    Blocks that are copied to make loops reducible count only where loops are unrolled.
    """

    def __init__(self, program: Program, image: Image, vivu: VivuSettings) -> None:
        self._calls: CallGraph = call_graph(program)
        self._functions = program.functions
        self._vivu = vivu
        self._image = image
        self._alone: dict[int, tuple[ExpansionSize, Mapping[int, int]]] = {}
        self._sizes: dict[int, ExpansionSize | None] = {}

    def of(self, entry: int) -> ExpansionSize | None:
        """The size of the expansion from the function at ``entry``.

        None if it is recursive or calls a recursive function. Raises ControlFlowError as unrolling
        does.
        """
        if not self._sizes:
            for function in self._calls.order:
                self._sizes[function] = self._of_calls(function)
        return self._sizes[entry]

    def _of_calls(self, entry: int) -> ExpansionSize | None:
        """The size with every call in its own context; None with recursion."""
        own, copies = self._function(entry)
        contexts, blocks, insns = own.contexts, own.blocks, own.instructions
        for call in self._calls.calls[entry]:
            size = self._sizes.get(call.callee)  # none yet of functions that call this one
            if size is None:
                return None
            contexts += copies[call.site] * size.contexts
            blocks += copies[call.site] * size.blocks
            insns += copies[call.site] * size.instructions
        return ExpansionSize(contexts, blocks, insns)

    def _function(self, entry: int) -> tuple[ExpansionSize, Mapping[int, int]]:
        """The size of one function by itself, and the number of copies of each of its calls."""
        if entry not in self._alone:
            self._alone[entry] = self._measured(self._functions[entry])
        return self._alone[entry]

    def _measured(self, cfg: Cfg) -> tuple[ExpansionSize, Mapping[int, int]]:
        placed = list(cfg.blocks)
        if self._vivu.unroll:
            placed = [cfg.blocks[b] for b in unrolled(shape_of(cfg, self._image)).blocks]
        insns = sum(len(block.insns) for block in placed)
        return ExpansionSize(1, len(placed), insns), Counter(block.last.addr for block in placed)
