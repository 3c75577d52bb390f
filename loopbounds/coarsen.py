"""A simpler model with at least the runs of a given one: what is dropped can only lengthen runs.

Most loops are bounded by one easy condition among others that are hard for a solver (a compare of
shifted capability words, say). So the easy part is tried first: conditions of ``again`` that are
large or shift by a variable are dropped, values that are hard become any word, and what then
decides nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from loopbounds import terms
from loopbounds.interval import interval
from loopbounds.model import Model, Variable
from loopbounds.terms import TRUE, Term, conjuncts, const, sym

__all__ = ["coarsen", "influential", "without_large"]

LARGE = 60  # terms, beyond which a condition or value is hard
JOIN = 15  # terms, beyond which a choice between initial values is any word
HARD = frozenset({"mul", "udiv", "urem"})
SHIFTS = frozenset({"shl", "lshr", "ashr"})


def coarsen(model: Model) -> Model:
    """Every run of ``model`` corresponds to a run of the result with as many executions."""
    model = _cut(model)
    again = TRUE
    for c in conjuncts(model.again):
        if _easy(c):
            again = terms.both(again, c)
    return influential(_with_easy_values(model, again))


def _cut(model: Model) -> Model:
    """Hard values that are the same throughout a run become parameters, wherever they occur."""
    roots = [model.again, *(v.next for v in model.state), *(v.initial for v in model.state)]
    roots += model.constraints
    parameters = list(model.parameters)
    ranges: list[Term] = []
    done: dict[Term, Term] = {p: p for p in parameters}
    for t in terms.walk(roots):
        if t in done:
            continue
        if not all(a in done for a in t.args) or t.op == "sym":
            continue  # depends on the state
        new = terms.rebuild(t, [done[a] for a in t.args])
        if t.width > 1 and (_hard(new) or (new.op == "ite" and len(terms.walk([new])) > JOIN)):
            low, high = interval(new)
            new = sym(f"cut{len(parameters)}", t.width)
            parameters.append(new)
            ranges += [terms.ule(const(low, t.width), new), terms.ule(new, const(high, t.width))]
        done[t] = new

    def replaced(term: Term) -> Term:
        return _replace(term, done)

    return Model(
        tuple(parameters),
        tuple(Variable(v.symbol, replaced(v.initial), replaced(v.next)) for v in model.state),
        model.inputs,
        tuple(c for c in (*map(replaced, model.constraints), *ranges) if c is not TRUE),
        replaced(model.again),
        model.hints,
    )


def _replace(term: Term, known: Mapping[Term, Term]) -> Term:
    """``term`` with everything in ``known`` replaced."""
    done = dict(known)
    for t in terms.walk([term]):
        if t not in done:
            done[t] = terms.rebuild(t, [done[a] for a in t.args])
    return done[term]


def _easy(term: Term) -> bool:
    parts = terms.walk([term])
    return len(parts) <= LARGE and not any(map(_hard, parts))


def _hard(t: Term) -> bool:
    if t.op in SHIFTS:
        return t.args[0].constant is None and t.args[1].constant is None
    return t.op in HARD


def _with_easy_values(model: Model, again: Term) -> Model:
    parameters, inputs, state = list(model.parameters), list(model.inputs), []
    for i, v in enumerate(model.state):
        initial, following = v.initial, v.next
        if not _easy(initial):
            initial = sym(f"some{i}", v.symbol.width)
            parameters.append(initial)
        if not _easy(following):
            following = sym(f"any{i}", v.symbol.width)
            inputs.append(following)
        state.append(Variable(v.symbol, initial, following))
    constraints = tuple(c for c in model.constraints if _easy(c))
    return Model(tuple(parameters), tuple(state), tuple(inputs), constraints, again, model.hints)


def without_large(model: Model) -> Model:
    """The model without constraints that are too large to be worth their cost."""
    small = tuple(c for c in model.constraints if len(terms.walk([c])) <= 2 * LARGE)
    return replace(model, constraints=small)


def influential(model: Model) -> Model:
    """The model without what cannot influence how long its runs are."""
    following = {v.symbol: v.next for v in model.state}
    needed = _closure(terms.symbols([model.again]), following)
    state = tuple(v for v in model.state if v.symbol in needed)
    used = terms.symbols(
        [model.again, *(v.next for v in state), *(v.initial for v in state)]
    )
    constraints = _connected(model.constraints, used)
    used |= terms.symbols(constraints)
    parameters = tuple(p for p in model.parameters if p in used)
    known = used | {v.symbol for v in state}
    hints = tuple(h for h in model.hints if terms.symbols([h]) <= known)
    return Model(
        parameters,
        state,
        tuple(i for i in model.inputs if i in used),
        constraints,
        model.again,
        hints,
    )


def _closure(start: Iterable[Term], following: Mapping[Term, Term]) -> set[Term]:
    needed, todo = set(start), list(start)
    while todo:
        value = following.get(todo.pop())
        for s in terms.symbols([value]) if value is not None else ():
            if s not in needed:
                needed.add(s)
                todo.append(s)
    return needed


def _connected(constraints: tuple[Term, ...], used: set[Term]) -> tuple[Term, ...]:
    """Constraints that share a symbol with ``used``, directly or through one another."""
    used, kept, changed = set(used), set(), True
    while changed:
        changed = False
        for c in constraints:
            symbols = terms.symbols([c])
            if c not in kept and symbols & used:
                kept.add(c)
                changed = changed or not symbols <= used
                used |= symbols
    return tuple(c for c in constraints if c in kept)
