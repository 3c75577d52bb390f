"""An execution from an entry that shows how often a loop is executed, or how deep calls go.

A model of a loop does not tell whether the loop is ever entered. So a fact is refuted only if an
execution exceeds it (rule 51). The execution starts at the entry, with registers that the entry
allows, and stops where an unknown word decides a branch. The program reaches its counts up to
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from loopbounds.budgets import table
from loopbounds.execution.activations import deepest
from loopbounds.execution.concrete import LoopExecution, executed_most
from loopbounds.slicing.code import KnownValues
from quoll.arm.insn import PC
from quoll.cfg.cfg import Program
from quoll.errors import ControlFlowError
from quoll.image.image import Image
from quoll.inlining.supergraph import Supergraph

__all__ = [
    "ExecutionReplay",
    "GraphReplay",
    "NoReplay",
    "RecursionReplay",
]


class ExecutionReplay(Protocol):
    """Executions of the loops of one graph."""

    def shows(self, loop: int, least: int, registers: Mapping[int, int], /) -> LoopExecution | None:
        """An execution with at least ``least`` executions of ``loop`` per entry from outside.

        It starts with ``registers``, by number. None if no such execution is known.
        """


class NoReplay:
    """No executions, for a graph that does not start where paths do: it may never be entered."""

    def shows(self, loop: int, least: int, registers: Mapping[int, int], /) -> LoopExecution | None:
        """None."""


@dataclass(frozen=True, slots=True)
class GraphReplay:
    """Executions of ``graph`` from its entry; registers without a value hold any word."""

    graph: Supergraph
    image: Image
    values: KnownValues

    def shows(self, loop: int, least: int, registers: Mapping[int, int], /) -> LoopExecution | None:
        """An execution that is the same for all other registers and all unknown memory."""
        held = [self.values.register(self.graph.entry, r) for r in range(PC)]
        if any(word not in held[r] for r, word in registers.items()):
            return None
        start = [registers.get(r, held[r].exact) for r in range(PC)]
        try:
            found = executed_most(
                self.graph, self.image, self.values, start, loop, table.REPLAYED_INSTRUCTIONS
            )
        except ControlFlowError:  # an instruction without semantics
            return None
        return found if found is not None and found.executions >= least else None


@dataclass(frozen=True, slots=True)
class RecursionReplay:
    """Executions of ``program`` from ``entry``; ``functions``: the function of each loop."""

    program: Program
    entry: int
    image: Image
    functions: Mapping[int, int]

    def shows(self, loop: int, least: int, registers: Mapping[int, int], /) -> LoopExecution | None:
        """An execution with that many activations of the loop's function at a time."""
        start = [registers.get(r) for r in range(PC)]
        function = self.functions[loop]
        try:
            found = deepest(
                self.program, self.entry, self.image, start, table.REPLAYED_INSTRUCTIONS
            )
        except ControlFlowError:  # an instruction without semantics
            return None
        most = found.most.get(function, 0)
        if most < least:
            return None
        return LoopExecution(most, found.instructions, found.ended, found.assumed)
