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
from loopbounds.terms import FALSE, TRUE, Term, conjuncts, const, sym

__all__ = ["coarsen", "easy", "influential", "without_determined_inputs", "without_large"]

LARGE = 60  # terms, beyond which a condition or value is hard
JOIN = 15  # terms, beyond which a choice between initial values is any word
ROUNDS = 2  # of using constraints in one another, and of following them to others
NEW = 2  # symbols that a constraint may add
HARD = frozenset({"mul", "udiv", "urem"})
SHIFTS = frozenset({"shl", "lshr", "ashr"})


def coarsen(model: Model) -> Model:
    """Every run of ``model`` corresponds to a run of the result with as many executions."""
    for _ in range(ROUNDS):
        model = _simplified(model)
    model = _simplified(_cut(without_determined_inputs(model)))
    again = TRUE
    for c in conjuncts(model.again):
        if easy(c):
            again = terms.both(again, c)
    return influential(_with_easy_values(model, again))


def without_determined_inputs(model: Model) -> Model:
    """Replace inputs that ``again`` equates with a term: another value ends the run.

    The havoc of a loop inside is such an input, where its exit fixes the value.
    """
    inputs = set(model.inputs)
    for c in conjuncts(model.again):
        solved = _solved(c, inputs)
        if solved is not None:
            model = _substituted(model, dict([solved]))
            inputs.discard(solved[0])
    return model


def _solved(condition: Term, inputs: set[Term]) -> tuple[Term, Term] | None:
    """``(i, t)`` where the condition is ``i = t`` for an input ``i`` that is not in ``t``."""
    if condition.op != "eq":
        return None
    difference = terms.sub(*condition.args)
    parts = difference.args if difference.op == "linear" else (difference,)
    factors = difference.factors if difference.op == "linear" else (1,)
    for atom, factor in zip(parts, factors, strict=True):
        if atom in inputs and factor in (1, terms.mask(atom.width)):
            rest = terms.sub(difference, terms.scale(atom, factor))
            if atom not in terms.symbols([rest]):
                return atom, terms.neg(rest) if factor == 1 else rest
    return None


def _substituted(model: Model, values: Mapping[Term, Term]) -> Model:
    """The step of a model with inputs replaced; next values matter only where it goes on."""
    return replace(
        model,
        inputs=tuple(i for i in model.inputs if i not in values),
        state=tuple(replace(v, next=terms.substitute(v.next, values)) for v in model.state),
        again=terms.substitute(model.again, values),
    )


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


def easy(term: Term) -> bool:
    """Small, and without operators that a solver finds hard."""
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
    small = tuple(c for c in model.constraints if len(terms.walk([c])) <= 2 * LARGE)
    return replace(model, constraints=small)


def influential(model: Model) -> Model:
    """The model without what cannot influence how long its runs are."""
    following = {v.symbol: v.next for v in model.state}
    needed = _closure(terms.symbols([model.again]), following)
    state = tuple(v for v in model.state if v.symbol in needed)
    used = terms.symbols([model.again, *(v.next for v in state), *(v.initial for v in state)])
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
    """Constraints that share a symbol with ``used``, or with one that does, and add few."""
    used, kept = set(used), set()
    for _ in range(ROUNDS):
        reached = set(used)
        for c in constraints:
            symbols = terms.symbols([c])
            if symbols & used and len(symbols - used) <= NEW:
                kept.add(c)
                reached |= symbols
        used = reached
    return tuple(c for c in constraints if c in kept)


def _propagated(constraints: tuple[Term, ...]) -> dict[Term, Term]:
    """What the small constraints decide: terms that are true, or constant, wherever they occur."""
    known: dict[Term, Term] = {}
    for c in constraints:
        if len(terms.walk([c])) <= JOIN:
            known[c] = TRUE
            known[terms.negate(c)] = FALSE
            if c.op == "eq" and c.args[1].constant is not None:
                known[c.args[0]] = c.args[1]
    return known


def _simplified(model: Model) -> Model:
    """Constraints hold throughout a run: use each in the others and in the step."""
    small = tuple(dict.fromkeys(p for c in model.constraints for p in conjuncts(c)))
    known = _propagated(small)
    kept = [c for c in small if known.get(c) is TRUE]
    for c in small:
        if c not in kept:
            kept += conjuncts(_replace(c, known))
    return Model(
        model.parameters,
        tuple(
            Variable(v.symbol, _replace(v.initial, known), _replace(v.next, known))
            for v in model.state
        ),
        model.inputs,
        tuple(dict.fromkeys(kept)),
        _replace(model.again, known),
        model.hints,
    )
