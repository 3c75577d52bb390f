"""The checker whose proofs are believed (rule 19): NuSMV, or by choice the SMT solver.

Where the user names no checker and there is no NuSMV, the SMT solver proves.
"""

from __future__ import annotations

from loopbounds.nusmv.nusmv_checker import NusmvChecker
from loopbounds.nusmv.nusmv_run import any_solver
from loopbounds.proof.bound import EITHER, SMT
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker

__all__ = ["any_checker"]


def any_checker(name: str = EITHER) -> Checker:
    """The checker of a name. NuSMV, if it is named, may be missing, and then proves nothing."""
    program = any_solver()
    if name == SMT or (name == EITHER and not program.is_file()):
        return SmtChecker()
    return NusmvChecker(program)
