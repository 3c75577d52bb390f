"""The checker whose proofs count (rule 19): NuSMV, or by choice the SMT solver.

Where the user names no checker, the SMT solver proves the claims that take NuSMV long, and all if
NuSMV is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopbounds.nusmv.nusmv_checker import NusmvChecker
from loopbounds.nusmv.nusmv_run import any_solver
from loopbounds.proof.bound import EITHER, NUSMV, SMT, LoopBound
from loopbounds.proof.prompt_checker import PromptChecker
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker

__all__ = ["any_checker", "substituted"]

INSTEAD = (
    "NuSMV is missing: the bounds of loops marked 'smt' are proved by the SMT solver, which also "
    "searched for them; 'wcet setup' gets NuSMV"
)


def any_checker(name: str) -> Checker:
    """The checker with this name, or ``EITHER``. A missing NuSMV that is named proves nothing."""
    program = any_solver()
    if name == NUSMV:
        return NusmvChecker(program)
    if name == SMT or not program.is_file():
        return SmtChecker()
    return PromptChecker(NusmvChecker(program), SmtChecker())


def substituted(wanted: str, bounds: Iterable[LoopBound]) -> tuple[str, ...]:
    """The warning that the SMT solver proved bounds because NuSMV is missing; () otherwise."""
    missing = wanted == EITHER and not any_solver().is_file()
    return (INSTEAD,) if missing and any(b.method == SMT and b.final for b in bounds) else ()
