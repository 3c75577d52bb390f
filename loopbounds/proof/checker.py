"""Who proves a bound: the checker whose "is true" is believed (rule 19).

The search for a bound asks the SMT solver, and what it finds is a guess. One query proves it: the
model has an initial state, and the bound, with its relations, is an invariant. ``NuSmv`` asks the
model checker. ``Smt`` asks the SMT solver again, from nothing and without the search's settings;
its initial state is one for our own evaluator, too. Each reads answers narrowly: what is not a
proof is none. Where the user names no checker and there is no NuSMV, ``Smt`` proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from loopbounds.nusmv import query as nusmv
from loopbounds.nusmv.model import LoopModel
from loopbounds.nusmv.query import Check, CheckAnswer, CheckVerdict, Limits
from loopbounds.proof.bound import EITHER, NUSMV, SMT
from loopbounds.proof.runs import ModelStepper
from loopbounds.smt.induction import Induction
from loopbounds.smt.solver import PACKAGE, Effort
from loopbounds.terms.bit_vectors import Term
from quoll.errors import SolverError
from quoll.kept.versions import Version, file_version, package_version

__all__ = ["Checker", "NuSmv", "Smt", "any_checker", "find_checker"]

NEVER = Check("never", depth=0)  # that FALSE is violated shows an initial state
Properties = Sequence[tuple[str, Term]]


class Checker(Protocol):
    """Who proves."""

    @property
    def name(self) -> str:
        """The method of bounds that it proves."""

    @property
    def identity(self) -> tuple[Version, ...]:
        """What answers follow from: the search, and the proof."""

    def ask(
        self, model: LoopModel, properties: Properties, check: Check, limits: Limits, effort: Effort
    ) -> tuple[CheckAnswer, CheckAnswer]:
        """Whether there is an initial state (never: FALSE), and the answer to ``check``."""


@dataclass(frozen=True, slots=True)
class NuSmv:
    """The model checker."""

    program: Path
    name = NUSMV

    @property
    def identity(self) -> tuple[Version, ...]:
        """What answers follow from: the search, and the proof."""
        program = file_version(self.program) if self.program.is_file() else "missing"
        return (searcher(), (NUSMV, program))

    def ask(
        self, model: LoopModel, properties: Properties, check: Check, limits: Limits, effort: Effort
    ) -> tuple[CheckAnswer, CheckAnswer]:
        """Whether there is an initial state (never: FALSE), and the answer to ``check``."""
        some, proof = nusmv.ask(model.smv(properties), [NEVER, check], limits, self.program)
        return some, proof


@dataclass(frozen=True, slots=True)
class Smt:
    """The SMT solver."""

    name = SMT

    @property
    def identity(self) -> tuple[Version, ...]:
        """What answers follow from."""
        return (searcher(),)

    def ask(
        self, model: LoopModel, properties: Properties, check: Check, limits: Limits, effort: Effort
    ) -> tuple[CheckAnswer, CheckAnswer]:
        """Whether there is an initial state (never: FALSE), and the answer to ``check``."""
        some, proof = Induction(model, plain=True).ask(properties, [NEVER, check], effort)
        if some.verdict is CheckVerdict.FALSE:
            parameters = [some.trace[0][p.name] for p in model.parameters]
            if ModelStepper(model).start(parameters) is None:
                some = CheckAnswer(CheckVerdict.FAILED, reason="its initial state is none")
        return some, proof


def searcher() -> Version:
    """The solver of the search, name and version."""
    return (PACKAGE, package_version(PACKAGE))


def any_checker(name: str = EITHER) -> Checker:
    """The checker of a name. NuSMV, if it is named, may be missing, and then proves nothing."""
    program = nusmv.any_solver()
    if name == SMT or (name == EITHER and not program.is_file()):
        return Smt()
    return NuSmv(program)


def find_checker(name: str = NUSMV) -> Checker:
    """The same. Raises SolverError when it is missing."""
    if name == SMT:
        if package_version(PACKAGE) == "absent":
            raise SolverError(f"{PACKAGE} is missing", hint="run 'make setup'")
        return Smt()
    return NuSmv(nusmv.find_solver())
