"""Random models of loops in words of four bits, small enough to try every run."""

from __future__ import annotations

from hypothesis import strategies as st

from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import TRUE, Term, const, operation, sym
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["A", "B", "J", "P", "Q", "mixed", "models", "small"]

A, B, P, Q, J = (sym(f"{name}", 4) for name in ("a", "b", "p", "q", "j"))


def small(value: int) -> Term:
    return const(value, 4)


def mixed(rounds: int, *parts: Term) -> Term:
    """A word of many terms."""
    found = parts[0]
    for i in range(1, rounds):
        halved = operation("lshr", found, const(1, found.width))
        found = terms.add(operation("xor", halved, parts[i % len(parts)]), const(i, found.width))
    return found


@st.composite
def models(draw: st.DrawFn) -> LoopModel:
    """Two variables of four bits, two parameters, sometimes an input."""
    inputs = (J,) if draw(st.booleans()) else ()
    leaves = [A, B, P, Q, *inputs]

    def operand() -> Term:
        drawn: Term = draw(st.sampled_from([*leaves, small(draw(st.integers(0, 15)))]))
        return drawn

    def step(x: Term) -> Term:
        kind = draw(st.integers(0, 5))
        if kind == 0:
            return terms.add(x, small(draw(st.sampled_from([1, 2, 3, 4, 8, 12, 13, 15]))))
        if kind == 1:
            return operation("lshr", x, small(1))
        if kind == 2:
            return operation("and", x, terms.sub(x, small(1)))
        if kind == 3:
            return terms.sub(x, terms.add(operation("and", operand(), small(3)), small(1)))
        if kind == 4:
            return terms.ite(terms.ult(operand(), operand()), x, terms.add(x, small(1)))
        return operand()

    def test() -> Term:
        relation = draw(st.sampled_from([terms.eq, terms.ult, terms.slt]))
        half = operation("lshr", A, small(1))
        x = draw(st.sampled_from([A, B, terms.add(A, P), terms.add(A, half)]))
        term = relation(operation("and", x, small(draw(st.sampled_from([3, 7, 15])))), operand())
        return terms.negate(term) if draw(st.booleans()) else term

    again = test()
    if draw(st.booleans()):
        again = draw(st.sampled_from([terms.both, terms.either]))(again, test())
    deep = mixed(6, P, Q)
    least = terms.ite(terms.ult(deep, Q), deep, Q)
    start = st.sampled_from([P, Q, small(0), small(15), deep, least])
    state = (StateVariable(A, draw(start), step(A)), StateVariable(B, draw(start), step(B)))
    known = draw(st.sampled_from([TRUE, terms.negate(terms.eq(deep, small(3)))]))
    constraints = (terms.ule(P, small(draw(st.integers(0, 15)))), known)
    return LoopModel((P, Q), state, inputs, constraints, again)
