"""A check that the widths of a term and of its arguments match."""

from __future__ import annotations

from loopbounds.terms.arithmetic import result_width
from loopbounds.terms.bit_vectors import Term

__all__ = ["IllTyped", "check_type"]


class IllTyped(Exception):
    """A term whose widths do not match: a defect of the code that made it."""


def check_type(term: Term) -> None:
    """Raise IllTyped unless the widths of a term and of its arguments match."""
    widths = [a.width for a in term.args]
    if not _fits(term, widths):
        raise IllTyped(f"{term.op} of {term.width} bits has arguments of {widths} bits")


def _fits(term: Term, widths: list[int]) -> bool:
    op, width = term.op, term.width
    if op == "linear":
        return len(term.factors) == len(widths) and all(w == width for w in widths)
    if op in ("zext", "sext"):
        return len(widths) == 1 and widths[0] < width
    if op == "extract":
        return len(widths) == 1 and term.value >= 0 and term.value + width <= widths[0]
    if op == "concat":
        return len(widths) == 2 and sum(widths) == width
    if op == "ite":
        return widths == [1, width, width]
    if op in ("shl", "lshr", "ashr"):
        return len(widths) == 2 and widths[0] == width
    if op == "and" and width == 1:
        return len(widths) > 0 and all(w == 1 for w in widths)
    if op in ("clz", "popcount"):
        return widths == [width]
    if op == "not":
        return widths == [width] == [1]
    return len(widths) == 2 and widths[0] == widths[1] and width == result_width(op, widths)
