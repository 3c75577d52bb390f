"""The checker whose proofs count (rule 19): NuSMV, or by choice the SMT solver.

Where the user names no checker and NuSMV is missing, the SMT solver proves.
"""

from __future__ import annotations

from loopbounds.nusmv.nusmv_checker import NusmvChecker
from loopbounds.nusmv.nusmv_run import any_solver
from loopbounds.proof.bound import EITHER, SMT
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker

__all__ = ["any_checker"]


def any_checker(name: str = EITHER) -> Checker:
    """The checker with this name. A missing NuSMV that the user names proves nothing."""
    program = any_solver()
    if name == SMT or (name == EITHER and not program.is_file()):
        return SmtChecker()
    return NusmvChecker(program)
