"""Values of words that satisfy conditions, by the SMT solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loopbounds.smt.solver import SearchFailed, SmtResult, SmtSolver
from loopbounds.smt.translation import SmtTranslation
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, Term, const, eq
from loopbounds.terms.well_typed import IllTyped
from wcet.refinement.unsatisfiable_core import CHECK

__all__ = ["model_of", "nearest_model"]


def model_of(conditions: Sequence[Term]) -> dict[Term, int] | None:
    """A value for each symbol of ``conditions``, so that all hold; None: none was found."""
    if FALSE in conditions:
        return None
    solver = SmtSolver()
    symbols = {
        s: solver.symbol(f"{s.name}.{s.serial}", s.width) for s in rewrite.symbols(conditions)
    }
    try:
        found = solver.check(SmtTranslation(solver, symbols).of(conditions), CHECK)
        if found.result is not SmtResult.SAT:
            return None
        return {s: found.value(formula) for s, formula in symbols.items()}
    except (SearchFailed, IllTyped):
        return None


def nearest_model(
    conditions: Sequence[Term], wanted: Mapping[Term, int]
) -> tuple[dict[Term, int], tuple[Term, ...]] | None:
    """A model with as many ``wanted`` values as one search finds, and the symbols with others."""
    found = model_of(conditions)
    if found is None:
        return None
    held, others = list(conditions), list[Term]()
    for symbol, value in wanted.items():
        more = [*held, eq(symbol, const(value, symbol.width))]
        other = model_of(more)
        if other is None:
            others.append(symbol)
        else:
            held, found = more, other
    return found, tuple(others)
