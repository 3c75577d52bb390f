"""Models of loops whose bounds are known."""

from __future__ import annotations

from loopbounds.budgets.budget import Budget
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms.bit_vectors import Term, const, operation, sym
from loopbounds.transition.model import LoopModel, StateVariable

BUDGET = Budget(seconds=60)
N, M, X, Y = sym("n", 32), sym("m", 32), sym("x", 32), sym("y", 32)
BYTE = sym("i", 8)


def word(value: int) -> Term:
    return const(value, 32)


def bits(term: Term, mask: int) -> Term:
    return operation("and", term, word(mask))


def nonzero(term: Term) -> Term:
    return terms.negate(terms.eq(term, word(0)))


def counted(initial: Term, following: Term, again: Term, *constraints: Term) -> LoopModel:
    return LoopModel((N, M), (StateVariable(X, initial, following),), (), constraints, again)


UP = terms.add(X, word(1))
PAIR = terms.add(M, terms.scale(bits(N, 127), 12))
LEVEL = terms.add(bits(terms.zext(BYTE, 32), 31), word(1))
MIDDLE = operation("ashr", terms.add(X, Y), word(1))
ABOVE, FOUND = terms.slt(M, N), terms.eq(M, N)  # N is read anew each time
DIVISOR = terms.add(bits(M, 7), word(3))
LEFT = terms.sub(bits(N, 15), word(4))  # bytes, beyond the first word of them
PROVED = {
    "inclusive binary search": (
        LoopModel(
            (M,),
            (
                StateVariable(
                    X,
                    word(0),
                    terms.ite(ABOVE, X, terms.ite(FOUND, X, terms.add(MIDDLE, word(1)))),
                ),
                StateVariable(
                    Y,
                    word(14),
                    terms.ite(
                        ABOVE,
                        terms.sub(MIDDLE, word(1)),
                        terms.ite(FOUND, terms.sub(X, word(1)), Y),
                    ),
                ),
            ),
            (N,),
            (),
            terms.sle(X, Y),
        ),
        5,
    ),
    "up to a limit": (counted(word(0), UP, terms.ult(X, N), terms.ule(N, word(120))), 121),
    "down": (counted(N, terms.sub(X, word(1)), nonzero(X), terms.ule(N, word(300))), 301),
    "pointer to end": (
        counted(
            M,
            terms.add(X, word(12)),
            terms.negate(terms.eq(terms.add(X, word(12)), PAIR)),
            nonzero(bits(N, 127)),
        ),
        127,
    ),
    "a million": (
        counted(
            M,
            terms.add(X, word(32)),
            terms.negate(terms.eq(terms.add(X, word(32)), terms.add(M, word(32 << 20)))),
        ),
        1 << 20,
    ),
    "words of what is left": (
        counted(
            word(0),
            terms.add(X, word(4)),
            terms.ult(word(3), terms.sub(LEFT, X)),
            nonzero(bits(N, 12)),
            terms.ule(N, word(1024)),
        ),
        3,
    ),
    "division by subtraction": (
        counted(bits(N, 255), terms.sub(X, DIVISOR), terms.negate(terms.ult(X, DIVISOR))),
        86,
    ),
    "clears the lowest bit": (
        counted(N, operation("and", X, terms.sub(X, word(1))), nonzero(X)),
        33,
    ),
    "halves": (counted(N, operation("lshr", X, word(1)), nonzero(X)), 33),
    "clears the highest bit": (
        counted(N, terms.sub(X, operation("lshr", word(1 << 31), operation("clz", X))), nonzero(X)),
        33,
    ),
    "wraps in a byte": (
        counted(bits(N, 255), bits(UP, 255), terms.negate(terms.eq(X, word(77)))),
        256,
    ),
    "signed": (counted(word(0), UP, terms.slt(UP, N), terms.slt(N, word(100))), 99),
    "levels": (
        LoopModel(
            (), (StateVariable(X, word(32), terms.sub(X, LEVEL)),), (BYTE,), (), terms.ult(LEVEL, X)
        ),
        32,
    ),
}
