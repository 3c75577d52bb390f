"""The transition system of a loop: one transition per iteration (rule 19).

The state at the loop's header consists of ``state`` variables, ``parameters`` that never change,
and a counter of header executions that starts at 1 and saturates. A step reads fresh ``inputs``,
the words unknown to the slice; with ``again`` it returns to the header, otherwise the model enters
an exit state that loops to itself, so that no path ends. A bound n is proved where ``count <= n``
is an invariant.
"""

from __future__ import annotations

from dataclasses import dataclass

from loopbounds.terms.bit_vectors import Term, const, mask, sym, ult

__all__ = ["COUNT", "COUNT_WIDTH", "RUNNING", "LoopModel", "StateVariable", "at_most"]

COUNT_WIDTH = 32
COUNT = sym("executions", COUNT_WIDTH)
RUNNING = sym("running", 1)


@dataclass(frozen=True, slots=True)
class StateVariable:
    """A word that changes from one header execution to the next.

    An unknown initial value is a parameter of its own.
    """

    symbol: Term
    initial: Term  # over parameters
    next: Term  # over parameters, state and inputs


@dataclass(frozen=True, slots=True)
class LoopModel:
    """The model of a loop. ``constraints`` hold initially; ``again``: the header runs once more."""

    parameters: tuple[Term, ...]
    state: tuple[StateVariable, ...]
    inputs: tuple[Term, ...]
    constraints: tuple[Term, ...]  # over parameters
    again: Term
    hints: tuple[Term, ...] = ()  # candidate invariants, over parameters and state
    exits: tuple[Term, ...] = ()  # conjuncts of ``again``: exit conditions of inner loops

    @property
    def deterministic(self) -> bool:
        """Whether a run depends on its initial state alone."""
        return not self.inputs

    def terms(self) -> list[Term]:
        """All terms of the model except for hints."""
        parts = [t for v in self.state for t in (v.symbol, v.initial, v.next)]
        return [*self.parameters, *self.inputs, *parts, *self.constraints, self.again]


def at_most(bound: int) -> Term:
    """``count <= bound``; ``bound`` must be below the value at which the counter saturates."""
    if not 0 <= bound < mask(COUNT_WIDTH) - 1:
        raise ValueError(f"{bound} is beyond the counter")
    return ult(COUNT, const(bound + 1, COUNT_WIDTH))
