"""Candidate invariants that may make ``count <= n`` inductive; the checker proves each one later.

Templates over a loop variable ``x`` with initial value ``x0`` and ``k = count - 1``:

    x = x0 + s*k, x <= x0, x >= x0     affine induction
    s*k <= x0 - x, s*k <= x - x0       progress of at least s per iteration: 1, or the least seen
    x - x0 = 0 (mod 2**j)              congruence
    x = (x0 + s*k) & ones              words that wrap; s**-1 gives the iterations to an end
    high:low = high0:low0 + s*k        two words counted as one
    x <= x0 >> k, and ``shifting``     halving, doubling, count-leading-zeros loops
    bits of x <= bits ever set - k     one bit cleared in each iteration
    u <= v, u - u0 <= v0 - u0          compared terms: displacement within the initial distance
    u - u0 <= v0 - u0 + s - 1          the same if the last step may overshoot
    v - u <= (v0 - u0) >> k            distance halved, as in a binary search
    s*k <= v0 - u0                     the bound itself, as a term over parameters
    a constraint with x for x0         constraints on x0 hold for x, too
    least x seen <= x <= most seen     signed middles of two words

A candidate stays if it holds in every state of the given runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import permutations
from math import gcd
from operator import or_

from loopbounds.budgets import table
from loopbounds.sampling.runs import ModelRun
from loopbounds.sampling.shifting import BITWISE, of_shifts
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.arithmetic import signed
from loopbounds.terms.bit_vectors import Term, const, eq, mask, operation, scale, sub, ule
from loopbounds.terms.evaluate import compile_terms
from loopbounds.terms.interval import interval
from loopbounds.terms.rewrite import substitute
from loopbounds.transition.model import COUNT, COUNT_WIDTH, LoopModel, StateVariable

__all__ = ["candidate_invariants", "holding", "likely_bounds"]

K = terms.add(COUNT, const(-1, COUNT_WIDTH))
COUNTED = terms.negate(eq(COUNT, const(0, COUNT_WIDTH)))


def candidate_invariants(model: LoopModel, runs: Sequence[ModelRun]) -> list[Term]:
    """The candidate invariants that hold in ``runs``, over parameters, state and ``COUNT``."""
    found: dict[Term, None] = dict.fromkeys([COUNTED, *model.constraints, *model.hints])
    for index, variable in enumerate(model.state):
        found.update(dict.fromkeys(_of_variable(variable, index, runs)))
    for candidate in _of_comparisons(model, runs):
        found[candidate] = None
    found.update(dict.fromkeys(_of_long_words(model, runs)))
    found.update(dict.fromkeys(of_shifts(model, runs)))
    found.update(dict.fromkeys(_of_pairs(model)))
    found.update(dict.fromkeys(_as_at_first(model)))
    found.update(dict.fromkeys(_of_ranges(model)))
    usable = [c for c in found if c.constant is None and c.width == 1]
    return holding(model, usable, runs)[: table.MOST_CANDIDATES]


def holding(model: LoopModel, candidates: Sequence[Term], runs: Sequence[ModelRun]) -> list[Term]:
    """The candidates that hold in every recorded state."""
    first, others = list(runs[: table.FILTERING_RUNS]), runs[table.FILTERING_RUNS :]
    held = _holding(model, candidates, first)  # most do not
    return _holding(model, held, others) if held and others else held


def _holding(model: LoopModel, candidates: Sequence[Term], runs: Sequence[ModelRun]) -> list[Term]:
    order = [*model.parameters, *(v.symbol for v in model.state), COUNT]
    check = compile_terms(candidates, order)
    alive = list(range(len(candidates)))
    for run in runs:
        for state, count in zip(run.states, run.counts, strict=True):
            values = check([*run.parameters, *state, count])
            alive = [i for i in alive if values[i]]
    return [candidates[i] for i in alive]


def _steps(index: int, runs: Sequence[ModelRun]) -> set[int]:
    """Differences of one variable between consecutive header executions."""
    return {
        after[index] - before[index]
        for run in runs
        for (before, i), (after, j) in zip(
            zip(run.states, run.counts, strict=True),
            zip(run.states[1:], run.counts[1:], strict=True),
            strict=False,
        )
        if j == i + 1
    }


def _of_variable(variable: StateVariable, index: int, runs: Sequence[ModelRun]) -> Iterator[Term]:
    x, x0 = variable.symbol, variable.initial
    width = x.width
    steps = {s % (1 << width) for s in _steps(index, runs)}
    if not steps - {0}:
        yield eq(x, x0)
    if width == 1:
        return
    yield terms.negate(eq(x, const(0, width)))
    if x not in rewrite.symbols([variable.next]):
        return
    k = _counter(width)
    if len(steps) == 1:
        [step] = steps
        yield eq(x, terms.add(x0, scale(k, step)))
        yield from (ule(x, x0), ule(x0, x))
        narrow = _narrow(variable)
        if narrow is not None:  # it may wrap in other runs
            yield eq(x, narrow.of(terms.add(x0, scale(k, step))))
        return
    yield from _progress(x, x0, k, steps)
    common = gcd(*steps, 1 << width)
    if common > 1:
        yield eq(operation("and", sub(x, x0), const(common - 1, width)), const(0, width))
    for narrow in _narrowest(variable, index, runs):
        ones = mask(narrow.bits)
        for step in {s & ones for s in steps} if _one(steps, ones) else {1, -1}:
            yield eq(x, narrow.of(terms.add(x0, scale(k, step))))
    following = rewrite.walk([variable.next])
    scaled = any(t.op == "linear" and x in t.args and 1 not in t.factors for t in following)
    if width == COUNT_WIDTH and (scaled or {t.op for t in following} & BITWISE):
        if any(_is_middle(t) for t in following):
            yield from _observed_range(x, index, runs)
        yield from _halved(x, x0)
        yield from _cleared(x, index, runs)


def _one(steps: set[int], wrap: int) -> bool:
    """Whether a word with the bits ``wrap`` always moves by the same step."""
    return len({s & wrap for s in steps}) == 1


@dataclass(frozen=True, slots=True)
class _Narrow:
    """A word of few bits in a longer one, extended with or without sign."""

    bits: int
    signed: bool

    def of(self, t: Term) -> Term:
        """The low bits of a word."""
        if self.signed:
            return terms.sext(terms.extract(t, 0, self.bits), t.width)
        return operation("and", t, const(mask(self.bits), t.width))


def _narrow(variable: StateVariable) -> _Narrow | None:
    """The narrow word to which an iteration limits a variable; None if it may be any word."""
    following, width = variable.next, variable.symbol.width
    if following.op == "sext":
        return _Narrow(following.args[0].width, signed=True)
    bits = interval(following)[1].bit_length()
    return _Narrow(bits, signed=False) if 0 < bits < width else None


def _narrowest(variable: StateVariable, index: int, runs: Sequence[ModelRun]) -> list[_Narrow]:
    """The narrowest word that holds all observed values, and ``_narrow`` of the variable."""
    width = variable.symbol.width
    values = [state[index] for run in runs for state in run.states]
    words = (signed(v, width) for v in values)
    seen = [
        _Narrow(max(values).bit_length(), signed=False),
        _Narrow(1 + max((v if v >= 0 else ~v).bit_length() for v in words), signed=True),
    ]
    narrow = _narrow(variable)
    found = [n for n in seen if 0 < n.bits < width][:1] + ([narrow] if narrow is not None else [])
    return list(dict.fromkeys(found))


def _counter(width: int) -> Term:
    if width <= COUNT_WIDTH:
        return terms.extract(K, 0, width)
    return terms.zext(K, width)


def _progress(x: Term, x0: Term, k: Term, steps: set[int]) -> Iterator[Term]:
    for down, start, end in ((-1, x, x0), (1, x0, x)):
        least = min((down * step % (1 << x.width) for step in steps), default=1)
        for s in sorted({1, least} - {0}):
            yield ule(scale(k, s), sub(end, start))
        yield ule(start, end)


def _is_middle(t: Term) -> bool:
    """Half the sum of two words, as in a binary search: right as long as they are small."""
    return t.op in ("ashr", "lshr") and t.args[0].op == "linear" and len(t.args[0].args) > 1


def _observed_range(x: Term, index: int, runs: Sequence[ModelRun]) -> Iterator[Term]:
    values = [signed(state[index], x.width) for run in runs for state in run.states]
    yield terms.sle(const(min(values), x.width), x)
    yield terms.sle(x, const(max(values), x.width))


def _cleared(x: Term, index: int, runs: Sequence[ModelRun]) -> Iterator[Term]:
    """Candidates that each iteration clears one of the bits that are ever set."""
    bits = reduce(or_, (state[index] for run in runs for state in run.states))
    yield eq(operation("and", x, const(~bits, x.width)), const(0, x.width))
    left = sub(const(bits.bit_count(), x.width), K)
    yield ule(K, const(bits.bit_count(), x.width))
    yield ule(operation("popcount", x), left)


def _of_comparisons(model: LoopModel, runs: Sequence[ModelRun]) -> Iterator[Term]:
    """Candidate relations between the terms that the step compares."""
    initial = {v.symbol: v.initial for v in model.state}
    fixed = set(model.inputs)
    strides = _strides(model, runs)
    counts = _iteration_counts(model, runs)
    for u, v in _compared(model):
        if rewrite.symbols((u, v)) & fixed:
            continue
        yield from (ule(u, v), ule(v, u))
        if u.width == COUNT_WIDTH:
            yield from (terms.sle(u, v), terms.sle(v, u))
        u0, v0 = substitute(u, initial), substitute(v, initial)
        for a, b, a0, b0 in ((u, v, u0, v0), (v, u, v0, u0)):
            yield from _halved(sub(a, b), sub(a0, b0))
            yield from _halved(_more(sub(a, b)), _more(sub(a0, b0)))
        for a, a0, b0 in ((u, u0, v0), (v, v0, u0)):
            if a is a0:
                continue
            yield ule(sub(a, a0), sub(b0, a0))
            yield ule(sub(a0, a), sub(a0, b0))
            for past in (s - 1 for s in strides if s > 1):
                for on, end in ((sub(a, a0), sub(b0, a0)), (sub(a0, a), sub(a0, b0))):
                    yield ule(on, terms.add(end, const(past, a.width)))
            for distance in (sub(b0, a0), sub(a0, b0)):
                yield from _reach(distance, strides)
                for count in counts:
                    yield from _reach(count.of(distance), [1])


def _of_long_words(model: LoopModel, runs: Sequence[ModelRun]) -> Iterator[Term]:
    """Candidates about two words counted as one: the low word's carry moves the high word."""
    words = [(i, v) for i, v in enumerate(model.state) if v.symbol.width == COUNT_WIDTH]
    for (h, high), (at, low) in permutations(words, 2):
        carried = low.symbol in rewrite.symbols([high.next])
        counted = sub(low.next, low.symbol).constant is not None
        if not carried or not counted or not _steps(h, runs) - {0}:
            continue
        x, x0 = terms.concat(high.symbol, low.symbol), terms.concat(high.initial, low.initial)
        steps = _steps(0, [_joined(run, h, at) for run in runs])
        if len({s % (1 << x.width) for s in steps}) == 1:
            yield eq(x, terms.add(x0, scale(_counter(x.width), steps.pop())))


def _joined(run: ModelRun, high: int, low: int) -> ModelRun:
    """The run as a sequence of one long word."""
    return replace(run, states=tuple((s[high] << COUNT_WIDTH | s[low],) for s in run.states))


def _more(x: Term) -> Term:
    return terms.add(x, const(1, x.width))


def _halved(x: Term, x0: Term) -> Iterator[Term]:
    if x.width == COUNT_WIDTH and x is not x0:
        yield ule(x, operation("lshr", x0, K))


def _reach(distance: Term, strides: Sequence[int]) -> Iterator[Term]:
    if distance.constant is not None or distance.width > COUNT_WIDTH:
        return
    distance = terms.zext(distance, COUNT_WIDTH)
    for s in strides:
        yield ule(scale(K, s), distance)
        if s & (s - 1) == 0:
            yield ule(K, operation("lshr", distance, const(s.bit_length() - 1, COUNT_WIDTH)))
            yield ule(COUNT, operation("lshr", distance, const(s.bit_length() - 1, COUNT_WIDTH)))
    for factor, atom in zip(distance.factors, distance.args, strict=False):
        if distance.op == "linear" and factor in strides:
            yield from (ule(K, atom), ule(COUNT, atom))


@dataclass(frozen=True, slots=True)
class _IterationCount:
    """The number of steps of ``odd << even`` that move a word of ``bits`` bits over a distance."""

    bits: int
    even: int
    odd: int

    def of(self, distance: Term) -> Term:
        """The number of steps as a term, for a ``distance`` that is a multiple of the step."""
        left = operation("lshr", distance, const(self.even, distance.width))
        iterations = scale(left, pow(self.odd, -1, 1 << self.bits))
        return operation("and", iterations, const(mask(self.bits - self.even), distance.width))


def _iteration_counts(model: LoopModel, runs: Sequence[ModelRun]) -> list[_IterationCount]:
    """The iteration counts of words that wrap."""
    found = dict.fromkeys([_IterationCount(8, 0, 1), _IterationCount(16, 0, 1)])
    for index, variable in enumerate(model.state):
        steps = _steps(index, runs)
        for bits in (narrow.bits for narrow in _narrowest(variable, index, runs)):
            step = min(steps, default=0) & mask(bits)
            if step and bits <= table.WRAPPING_BITS and _one(steps, mask(bits)):
                even = (step & -step).bit_length() - 1
                found[_IterationCount(bits, even, step >> even)] = None
    return list(found)


def _strides(model: LoopModel, runs: Sequence[ModelRun]) -> list[int]:
    found = {1}
    for index, variable in enumerate(model.state):
        steps = {s % (1 << variable.symbol.width) for s in _steps(index, runs)}
        if len(steps) == 1:
            size = steps.pop()
            found.add(min(size, (1 << variable.symbol.width) - size))
    return sorted(s for s in found if 0 < s < table.LONGEST_STRIDE)


def _compared(model: LoopModel) -> list[tuple[Term, Term]]:
    """Pairs of compared terms in the step, also with both sides expressed at the header."""
    pairs: dict[tuple[Term, Term], None] = {}
    symbols = {v.symbol for v in model.state}
    before = {v.next: v.symbol for v in model.state}
    for t in rewrite.walk([model.again, *(v.next for v in model.state)]):
        if t.op not in ("eq", "ult", "slt") or t.args[0].width == 1:
            continue
        if not rewrite.symbols(t.args) & symbols:
            continue
        pairs[t.args[0], t.args[1]] = None
        if any(a in before for a in t.args):
            a, b = (before.get(a, a) for a in t.args)
            pairs[a, b] = None
        first, second = (_without_constant(a) for a in t.args)
        pairs[first, second] = None
    return list(pairs)[: table.COMPARED_PAIRS]


def _without_constant(t: Term) -> Term:
    return sub(t, const(t.value, t.width)) if t.op == "linear" else t


def _of_ranges(model: LoopModel) -> Iterator[Term]:
    """Candidates that a variable stays in the range of its initial and next values."""
    for v in model.state:
        if v.symbol.width == 1:
            continue
        ends = interval(v.initial), interval(v.next)
        yield ule(const(min(low for low, _ in ends), v.symbol.width), v.symbol)
        yield ule(v.symbol, const(max(high for _, high in ends), v.symbol.width))


def likely_bounds(model: LoopModel, runs: Sequence[ModelRun]) -> list[int]:
    """Bounds to try first: constants of initial values, constraints and conditions, and neighbours.

    Also constant distances between compared terms, divided by the strides.
    """
    initial = {v.symbol: v.initial for v in model.state}
    values = rewrite.walk([*model.constraints, model.again, *initial.values()])
    found = {t.value + d for t in values if t.op == "const" for d in (-1, 0, 1)}
    for u, v in _compared(model):
        distance = sub(substitute(v, initial), substitute(u, initial))
        if distance.constant is not None:
            for value in (distance.value, terms.neg(distance).value):
                found |= {value // s + d for s in _strides(model, runs) for d in (0, 1, 2)}
    return sorted(found)


def _as_at_first(model: LoopModel) -> Iterator[Term]:
    """Constraints on a variable's initial value, applied to the variable."""
    for v in model.state:
        if v.initial.op == "sym":
            for c in model.constraints:
                if v.initial in rewrite.symbols([c]) and rewrite.size(c) <= table.SMALL_CONSTRAINT:
                    yield substitute(c, {v.initial: v.symbol})


def _of_pairs(model: LoopModel) -> Iterator[Term]:
    """Candidates about two variables that move together or against each other."""
    combine: tuple[Callable[[Term, Term], Term], ...] = (sub, terms.add)
    state = [v for v in model.state if v.symbol.width > 1][: table.PAIRED_VARIABLES]
    for i, first in enumerate(state):
        for second in state[i + 1 :]:
            if first.symbol.width == second.symbol.width:
                for f in combine:
                    yield eq(f(first.symbol, second.symbol), f(first.initial, second.initial))
