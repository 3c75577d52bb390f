"""States at an entry whose executions the analysis covers, along edges or with given words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ilp.constraints.constraint import UNLIMITED
from ilp.paths.path_check import path_cycles, violations
from ilp.paths.solution import PathStep
from loopbounds.proof.bound import PROVED
from loopbounds.terms.bit_vectors import Term
from quoll.image.image import Image
from quoll.processes.processor_time import own
from wcet.analysis.integer_programs import StartProgram
from wcet.refinement.directed_execution import DirectedExecution, NodeValues
from wcet.refinement.entry_words import EntryWords, NotDirected

__all__ = ["FoundState", "StateSearch"]


@dataclass(frozen=True, slots=True)
class FoundState:
    """A state with its execution, for whose path the analysis charges ``cycles``.

    ``words``: its registers and words of memory that are not 0, by name. ``decisions``: the symbols
    of the entry on which each step decides that could have gone another way, by number.
    """

    words: Mapping[str, int]
    execution: DirectedExecution
    decisions: Mapping[int, frozenset[Term]]
    cycles: int

    @property
    def steps(self) -> Sequence[PathStep]:
        """The path of the execution."""
        return self.execution.steps


@dataclass(frozen=True, slots=True)
class StateSearch:
    """States of the paths of ``program``, which start at the entry.

    ``values``: of its graph. ``end``: the processor time after which the solver gets no query.
    """

    program: StartProgram
    image: Image
    values: NodeValues
    end: float

    def along(self, wanted: Sequence[int]) -> FoundState | None:
        """A state whose execution takes the edges ``wanted`` as far as it can; None: none is found.

        It violates no stated bound of a loop, and no constraint.
        """
        directed = self._executed(EntryWords(end=self.end), wanted)
        if directed is None:
            return None
        state = directed.fixed | directed.words.named()
        found = self.with_words({name: value for name, value in state.items() if value})
        return found and FoundState(found.words, found.execution, directed.decisions, found.cycles)

    def with_words(self, state: Mapping[str, int]) -> FoundState | None:
        """The execution from a state; None if the analysis does not cover it."""
        execution = self._executed(EntryWords(state), ())
        if execution is None or self._broken(execution):
            return None
        cycles = path_cycles(self.program.paths.costs, execution.steps)
        return FoundState(state, execution, {}, cycles)

    def over(self) -> bool:
        """Whether the time is over."""
        return own() > self.end

    def _executed(self, words: EntryWords, wanted: Sequence[int]) -> DirectedExecution | None:
        graph = self.program.paths.graph
        execution = DirectedExecution(graph, self.image, self.values, words)
        try:
            execution.run(wanted)
        except NotDirected:
            return None
        return execution

    def _broken(self, execution: DirectedExecution) -> bool:
        """Whether an execution violates a stated bound of a loop, or a constraint."""
        answer, constraints = self.program.answer, self.program.inputs.constraints
        bounds = [
            UNLIMITED if bound.method in PROVED else number
            for bound, number in zip(answer.bounds, answer.numbers, strict=True)
        ]
        graph = self.program.paths.graph
        return bool(violations(graph, bounds, constraints, execution.steps))
