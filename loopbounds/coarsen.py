"""A simpler model with at least the runs of a given one: what is dropped can only lengthen runs.

Most loops are bounded by one easy condition among others that are hard for a solver (a compare of
shifted capability words, say). So the easy part is tried first: conditions of ``again`` that are
large or shift by a variable are dropped, values that are hard become any word, and what then
decides nothing is left out.
"""

from __future__ import annotations

from dataclasses import replace

from loopbounds import rewrite, terms
from loopbounds.interval import interval
from loopbounds.model import Model, Variable
from loopbounds.simplify import replaced, simplified
from loopbounds.terms import TRUE, Term, conjuncts, const, sym

__all__ = ["coarsen", "easy", "without_large"]

LARGE = 60  # terms, beyond which a condition or value is hard
JOIN = 15  # terms, beyond which a choice between initial values is any word
HARD = frozenset({"mul", "udiv", "urem"})
SHIFTS = frozenset({"shl", "lshr", "ashr"})


def coarsen(model: Model) -> Model:
    """Every run of ``model`` corresponds to a run of the result with as many executions."""
    model = simplified(_cut(simplified(model)))
    again = TRUE
    for c in conjuncts(model.again):
        if easy(c):
            again = terms.both(again, c)
    return simplified(_with_easy_values(model, again))


def _cut(model: Model) -> Model:
    """Hard values that are the same throughout a run become parameters, wherever they occur."""
    roots = [model.again, *(v.next for v in model.state), *(v.initial for v in model.state)]
    roots += model.constraints
    parameters = list(model.parameters)
    ranges: list[Term] = []
    done: dict[Term, Term] = {p: p for p in parameters}
    for t in rewrite.walk(roots):
        if t in done:
            continue
        if not all(a in done for a in t.args) or t.op == "sym":
            continue  # depends on the state
        new = rewrite.rebuild(t, [done[a] for a in t.args])
        if t.width > 1 and _worth_cutting(new):
            low, high = interval(new)
            new = sym(f"cut{len(parameters)}", t.width)
            parameters.append(new)
            ranges += [terms.ule(const(low, t.width), new), terms.ule(new, const(high, t.width))]
        done[t] = new

    def cut(term: Term) -> Term:
        return replaced(term, done)

    return Model(
        tuple(parameters),
        tuple(Variable(v.symbol, cut(v.initial), cut(v.next)) for v in model.state),
        model.inputs,
        tuple(c for c in (*map(cut, model.constraints), *ranges) if c is not TRUE),
        cut(model.again),
        model.hints,
    )


def _worth_cutting(term: Term) -> bool:
    """Sums stay: their members may cancel against those of other terms."""
    if term.op in ("sym", "const", "linear"):
        return False
    if term.op in SHIFTS and term.args[1].constant is None:
        return True
    return _hard(term) or rewrite.size(term) > JOIN


def easy(term: Term) -> bool:
    """Small, and without operators that a solver finds hard."""
    parts = rewrite.walk([term])
    return len(parts) <= LARGE and not any(map(_hard, parts))


def _hard(t: Term) -> bool:
    if t.op in SHIFTS:
        return t.args[0].constant is None and t.args[1].constant is None
    return t.op in HARD


def _with_easy_values(model: Model, again: Term) -> Model:
    parameters, inputs, state = list(model.parameters), list(model.inputs), []
    for i, v in enumerate(model.state):
        initial, following = v.initial, v.next
        if not easy(initial):
            initial = sym(f"some{i}", v.symbol.width)
            parameters.append(initial)
        if not easy(following):
            following = sym(f"any{i}", v.symbol.width)
            inputs.append(following)
        state.append(Variable(v.symbol, initial, following))
    constraints = tuple(c for c in model.constraints if easy(c))
    return Model(tuple(parameters), tuple(state), tuple(inputs), constraints, again, model.hints)


def without_large(model: Model) -> Model:
    """The model without constraints that are too large to be worth their cost."""
    small = tuple(c for c in model.constraints if rewrite.size(c) <= 2 * LARGE)
    return replace(model, constraints=small)
