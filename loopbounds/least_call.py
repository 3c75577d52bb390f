"""Functions that a fact replaces, though every call of them takes longer than it says (rule 49).

A call executes at least the instructions of the shortest path, and at least the instructions of an
execution with unknown registers and memory, up to the first decision by an unknown word.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopbounds.budgets import table
from loopbounds.execution.activations import deepest
from quoll.arm.insn import PC
from quoll.assumptions import if_they_hold
from quoll.cfg.cfg import Program
from quoll.cfg.least_instructions import least_instructions
from quoll.errors import ControlFlowError, FactsError, WcetError
from quoll.extraction.extract import extract
from quoll.facts.guidance import ReplacedFact
from quoll.facts.located import LocatedFacts
from quoll.image.image import Image

__all__ = ["LeastCall", "least_call", "refuse_too_short"]


@dataclass(frozen=True, slots=True)
class LeastCall:
    """The instructions that every call issues at least, and how that is known."""

    instructions: int
    evidence: str


def refuse_too_short(
    called: Iterable[int], image: Image, facts: LocatedFacts, exits: frozenset[int], width: int
) -> None:
    """Raise FactsError for a function in ``called`` whose calls all exceed their stated cycles.

    ``width``: the most instructions that the core issues in a cycle. Functions whose code cannot be
    extracted are left out. ``exits``: instructions at which paths end.
    """
    wanted = frozenset(called)
    for address, fact in facts.addressed(ReplacedFact):
        if address & ~1 not in wanted:
            continue
        found = least_call(image, facts, exits, fact)
        least = 0 if found is None else found.instructions // width
        if found is not None and least > fact.cycles:
            raise FactsError.contradicted(
                f"{fact.function} takes at least {least} cycles in every call, not at most "
                f"{fact.cycles}: it issues at least {found.instructions} instructions that are no "
                f"branches, {found.evidence}",
                about=fact.key,
                hint=f"state at least {least} cycles, or remove the fact",
            )


def least_call(
    image: Image, facts: LocatedFacts, exits: frozenset[int], fact: ReplacedFact
) -> LeastCall | None:
    """The least call of the function that ``fact`` replaces; None if its code is not known."""
    (word,) = facts.at(fact, fact.function).words
    others = facts.stating(other for other in facts.facts if other is not fact)
    try:
        program = extract(image, [word], others, exits)
    except WcetError:  # the reason why the fact exists
        return None
    shortest = LeastCall(least_instructions(program, word & ~1), "on the shortest path")
    executed = _executed(program, word, image)
    return max(shortest, executed, key=lambda one: one.instructions)


def _executed(program: Program, word: int, image: Image) -> LeastCall:
    """The instructions of a call that are the same for all registers and memory."""
    anything, image = (None,) * PC, image.changing(image.as_loaded).starting_with(())
    try:
        found = deepest(program, word, image, anything, table.REPLAYED_INSTRUCTIONS, forgets=True)
    except ControlFlowError:  # an instruction without semantics
        return LeastCall(0, "")
    held = if_they_hold(found.assumed)
    return LeastCall(found.issued, f"in an execution with unknown registers and memory{held}")
