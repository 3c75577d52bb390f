"""Candidates about shifted words: one word, or two words of 32 bits shifted as one.

With the initial value ``x0``, ``k = count - 1``, and ``ones`` below or up to a tested bit:

    x = x0 >> j*k, x <= all ones >> j*k, x <= most >> j*k   halving, clearing from the top
    x = x0 << j*k, low j*k bits of x are 0                  doubling
    least << j*k <= x & ones                                a bit on its way up, until it is tested
    the same, while a condition to repeat holds

``least`` and ``most`` are observed in the runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from loopbounds.budgets import table
from loopbounds.sampling.runs import ModelRun
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, const, eq, mask, operation, scale, sub, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel, StateVariable

__all__ = ["of_shifts"]

_Observations = list[tuple[int, tuple[int, ...]]]

PLACES = (1, 2, 3, 4, 8)  # shifts of one iteration
BITWISE = frozenset({"and", "or", "xor", "shl", "lshr", "ashr", "clz"})


def of_shifts(model: LoopModel, runs: Sequence[ModelRun]) -> Iterator[Term]:
    """The candidates for every shifted variable, and for every pair shifted as one."""
    bits = _tested(model)
    for v in model.state:
        if v.symbol.width == COUNT_WIDTH and _is_shifted(v):
            yield from _of_word(model, runs, v.symbol, v.initial, bits)
    for high, low in _pairs(model):
        x, x0 = terms.concat(high.symbol, low.symbol), terms.concat(high.initial, low.initial)
        above = [bit << low.symbol.width for bit in bits]
        yield from _of_word(model, runs, x, x0, [*bits, *above])


def _of_word(
    model: LoopModel, runs: Sequence[ModelRun], x: Term, x0: Term, bits: Sequence[int]
) -> Iterator[Term]:
    known = rewrite.symbols([*model.parameters, *(v.symbol for v in model.state)])
    parts = [c for c in terms.conjuncts(model.again) if rewrite.symbols([c]) <= known]
    conditions = [
        TRUE,
        *[c for c in parts if rewrite.size(c) <= table.SMALL_CONSTRAINT][
            : table.GOING_ON_CONDITIONS
        ],
    ]
    observed = _observed(model, [x, *conditions], runs)
    all_ones = mask(x.width)
    for j in _places(observed, x.width):
        yield from _shifted(x, x0, j)
        most = max((values[0] << j * (count - 1) for count, values in observed), default=0)
        if 0 < most < all_ones:
            yield ule(x, operation("lshr", const(most, x.width), _moved(x.width, j)))
        for ones in (all_ones, *(b - 1 for b in bits), *(2 * b - 1 for b in bits)):
            for index, c in enumerate(conditions, start=1):
                met = [(count, values[0] & ones) for count, values in observed if values[index]]
                least = min((value >> j * (count - 1) for count, value in met), default=0)
                if least > 0:
                    small = terms.shl(const(least, x.width), _moved(x.width, j))
                    part = operation("and", x, const(ones, x.width))
                    yield terms.either(terms.negate(c), ule(small, part))


def _shifted(x: Term, x0: Term, j: int) -> Iterator[Term]:
    """Candidates that each iteration shifts by ``j`` places, or by at least ``j``."""
    places, all_ones = _moved(x.width, j), const(-1, x.width)
    yield eq(x, operation("lshr", x0, places))
    yield eq(x, terms.shl(x0, places))
    yield ule(x, operation("lshr", all_ones, places))
    low = terms.negate(terms.shl(all_ones, places))
    yield eq(operation("and", x, low), const(0, x.width))


def _moved(width: int, j: int) -> Term:
    """The term ``j*k``."""
    return scale(sub(terms.zext(COUNT, width), const(1, width)), j)


def _places(observed: _Observations, width: int) -> list[int]:
    """The places by which iterations in the runs shift a word; if none, ``PLACES``."""
    pairs = {(a[0], b[0]) for (i, a), (n, b) in pairwise(observed) if n == i + 1}
    found = [j for j in PLACES if any(a and b in (a >> j, a << j & mask(width)) for a, b in pairs)]
    return found or list(PLACES)


def _observed(model: LoopModel, queried: Sequence[Term], runs: Sequence[ModelRun]) -> _Observations:
    """Pairs (count, values of the queried terms) for every state of the runs."""
    values = compile_terms(queried, [*model.parameters, *(v.symbol for v in model.state)])
    return [
        (count, values([*run.parameters, *state]))
        for run in runs
        for state, count in zip(run.states, run.counts, strict=True)
    ]


def _tested(model: LoopModel) -> list[int]:
    """The single bits that the condition to repeat tests."""
    constants = (t.args[1].constant for t in rewrite.walk([model.again]) if t.op == "and")
    return sorted({c for c in constants if c and c > 1 and c.bit_count() == 1})


def _is_shifted(variable: StateVariable) -> bool:
    x = variable.symbol
    following = rewrite.walk([variable.next])
    if x not in following:
        return False
    sums = (t for t in following if t.op == "linear" and x in t.args)
    scaled = any(t.factors[t.args.index(x)] not in (1, mask(x.width)) for t in sums)
    return scaled or any(t.op in BITWISE for t in following)


def _pairs(model: LoopModel) -> Iterator[tuple[StateVariable, StateVariable]]:
    """Pairs (high, low) of words that are shifted as one: a bit of one moves into the other."""
    words = [v for v in model.state if v.symbol.width == COUNT_WIDTH and _is_shifted(v)]
    for high in words:
        for low in words:
            up = low.symbol in rewrite.symbols([high.next])
            down = high.symbol in rewrite.symbols([low.next])
            if high is not low and up != down:
                yield high, low
