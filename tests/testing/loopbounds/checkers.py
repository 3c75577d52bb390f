"""Checkers that are there, for tests that prove."""

from __future__ import annotations

from loopbounds.nusmv.nusmv_checker import NusmvChecker
from loopbounds.nusmv.nusmv_run import find_solver
from loopbounds.proof.bound import NUSMV, SMT
from loopbounds.smt.smt_checker import SmtChecker
from loopbounds.transition.checker import Checker

__all__ = ["find_checker"]


def find_checker(name: str = NUSMV) -> Checker:
    """The checker of a name. Raises SolverError if NuSMV is missing."""
    return SmtChecker() if name == SMT else NusmvChecker(find_solver())
