"""The transition system of a loop: one transition per iteration (rule 19).

The state is what the loop's header finds: ``state`` variables, ``parameters`` that never change,
and a counter of header executions that starts at 1 and saturates. A step reads fresh ``inputs``
(anything the slice does not know), and ``again`` says whether the header is reached once more;
otherwise the model enters an exit state that loops to itself, so no path ever ends. A bound n
is proved where ``count <= n`` is an invariant.
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
    """One loop. ``constraints`` hold initially; ``again``: the header is executed once more."""

    parameters: tuple[Term, ...]
    state: tuple[StateVariable, ...]
    inputs: tuple[Term, ...]
    constraints: tuple[Term, ...]  # over parameters
    again: Term
    hints: tuple[Term, ...] = ()  # candidate invariants, over parameters and state
    exits: tuple[Term, ...] = ()  # parts of ``again`` that hold when a loop inside has ended

    @property
    def deterministic(self) -> bool:
        """Whether a run depends on its initial state alone."""
        return not self.inputs

    def terms(self) -> list[Term]:
        """All that it consists of, but for hints."""
        parts = [t for v in self.state for t in (v.symbol, v.initial, v.next)]
        return [*self.parameters, *self.inputs, *parts, *self.constraints, self.again]


def at_most(bound: int) -> Term:
    """``count <= bound``; only below the value where the counter saturates."""
    if not 0 <= bound < mask(COUNT_WIDTH) - 1:
        raise ValueError(f"{bound} is beyond the counter")
    return ult(COUNT, const(bound + 1, COUNT_WIDTH))
