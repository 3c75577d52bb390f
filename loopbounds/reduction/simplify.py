"""A simpler model with the same lengths of runs: constraints and step simplify each other.

Each function here preserves the lengths of all runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, reduce

from loopbounds.budgets import table
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import FALSE, TRUE, Term, conjuncts, const
from loopbounds.transition.model import LoopModel, StateVariable
from quoll.graph.closure import closure

__all__ = ["influential", "replaced", "simplified"]


@lru_cache(1 << 12)
def simplified(model: LoopModel) -> LoopModel:
    """The model after all simplifications, in an order in which each helps the next."""
    model = _with_fixed_low_bits(_without_determined_inputs(model))
    for _ in range(table.SUBSTITUTIONS):
        model = _with_constraints_used(model)
    return influential(_rebased(_with_going_on_used(_without_inner_exits(model))))


def _without_inner_exits(model: LoopModel) -> LoopModel:
    """Drop the exit condition of an inner loop whose final values are not read.

    A loop that terminates satisfies its exit condition, after any number of iterations.
    """
    for group in _sharing_inputs(model):
        conditions = [c for part in group for c in conjuncts(part)]
        own = rewrite.symbols(conditions) & set(model.inputs)
        rest = [c for c in conjuncts(model.again) if c not in conditions]
        used = rewrite.symbols([*rest, *(v.next for v in model.state)])
        if own and not own & used:
            model = replace(model, again=reduce(terms.both, rest, TRUE))
    return model


def _sharing_inputs(model: LoopModel) -> list[list[Term]]:
    """The exits in groups without a common input: each group belongs to one or more inner loops."""
    groups: list[list[Term]] = []
    for part in model.exits:
        own = rewrite.symbols([part]) & set(model.inputs)
        joined = [g for g in groups if own & rewrite.symbols(g)]
        groups = [g for g in groups if g not in joined]
        groups.append([*(p for g in joined for p in g), part])
    return groups


def _without_determined_inputs(model: LoopModel) -> LoopModel:
    """Replace inputs that ``again`` equates with a term: another value ends the run.

    The havoc of an inner loop is such an input, if its exit fixes the value.
    """
    while solved := next(_determined(model), None):
        model = _substituted(model, dict([solved]))
    return model


def _determined(model: LoopModel) -> Iterator[tuple[Term, Term]]:
    """Pairs (input, term), found in the model as given; the term may contain another input.

    So substitute each pair before the next one is computed: an old pair would bring back a replaced
    input.
    """
    inputs = set(model.inputs)
    return filter(None, (_solved(c, inputs) for c in conjuncts(model.again)))


def _solved(condition: Term, inputs: set[Term]) -> tuple[Term, Term] | None:
    """``(i, t)`` for a condition ``i = t`` with an input ``i`` that is not in ``t``; else None."""
    if condition.op != "eq":
        return None
    difference = terms.sub(*condition.args)
    parts = difference.args if difference.op == "linear" else (difference,)
    factors = difference.factors if difference.op == "linear" else (1,)
    for atom, factor in zip(parts, factors, strict=True):
        if atom in inputs and factor in (1, terms.mask(atom.width)):
            rest = terms.sub(difference, terms.scale(atom, factor))
            if atom not in rewrite.symbols([rest]):
                return atom, terms.neg(rest) if factor == 1 else rest
    return None


def _substituted(model: LoopModel, values: Mapping[Term, Term]) -> LoopModel:
    """The model with inputs of its step replaced; next values count only where the loop repeats."""
    replaced = rewrite.Substitution(values)
    return replace(
        model,
        inputs=tuple(i for i in model.inputs if i not in values),
        state=tuple(replace(v, next=replaced(v.next)) for v in model.state),
        again=replaced(model.again),
        exits=tuple(map(replaced, model.exits)),
    )


def _with_fixed_low_bits(model: LoopModel) -> LoopModel:
    """Use that a variable with steps that are multiples of 2**j never changes its low j bits."""
    fixed: dict[Term, Term] = {}
    for v in model.state:
        step = terms.sub(v.next, v.symbol).constant
        if step:
            same = (step & -step) - 1
            for t in rewrite.walk([model.again, *(w.next for w in model.state)]):
                if t.op == "and" and t.width > 1:
                    start = _at_start(t, v, same)
                    fixed |= {} if start is None else {t: start}
    if not fixed:
        return model
    return replace(
        model,
        state=tuple(replace(v, next=replaced(v.next, fixed)) for v in model.state),
        again=replaced(model.again, fixed),
        exits=tuple(replaced(e, fixed) for e in model.exits),
    )


def _at_start(masked: Term, variable: StateVariable, same: int) -> Term | None:
    """The bits ``same`` of a sum with the variable, computed from its initial value.

    None for any other term. Other members of the sum stay, as their low bits may change even if
    they depend on the variable.
    """
    whole, ones = masked.args
    x = variable.symbol
    if ones.constant is None or ones.constant > same:
        return None
    if whole is x:
        return terms.operation("and", variable.initial, ones)
    if whole.op != "linear" or x not in whole.args:
        return None
    factor = whole.factors[whole.args.index(x)]
    moved = terms.scale(terms.sub(variable.initial, x), factor)
    return terms.operation("and", terms.add(whole, moved), ones)


def _with_constraints_used(model: LoopModel) -> LoopModel:
    """Simplify the step and each constraint by the other constraints, which always hold."""
    small = tuple(dict.fromkeys(p for c in model.constraints for p in conjuncts(c)))
    known = _decided(small)
    retained = [c for c in small if known.get(c) is TRUE]
    for c in small:
        if c not in retained:
            retained += conjuncts(replaced(c, known))
    return LoopModel(
        model.parameters,
        tuple(
            StateVariable(v.symbol, replaced(v.initial, known), replaced(v.next, known))
            for v in model.state
        ),
        model.inputs,
        tuple(dict.fromkeys(retained)),
        replaced(model.again, known),
        model.hints,
        tuple(replaced(e, known) for e in model.exits),
    )


def _decided(constraints: tuple[Term, ...]) -> dict[Term, Term]:
    """The values of terms that small constraints make true or constant."""
    known: dict[Term, Term] = {}
    for c in constraints:
        if c.constant is None and rewrite.size(c) <= table.SMALL_CONSTRAINT:
            known[c] = TRUE
            known[terms.negate(c)] = FALSE
            if c.op == "eq" and c.args[1].constant is not None:
                known[c.args[0]] = c.args[1]
    return known


def _with_going_on_used(model: LoopModel) -> LoopModel:
    """Simplify larger conditions and next values by each condition to repeat."""
    known: dict[Term, Term] = {}
    again = TRUE
    for c in sorted(conjuncts(model.again), key=rewrite.size):
        for part in conjuncts(replaced(c, known)):
            again = terms.both(again, part)
            known |= {part: TRUE, terms.negate(part): FALSE}
    following = (replace(v, next=replaced(v.next, known)) for v in model.state)
    return replace(model, again=again, state=tuple(following))


def _rebased(model: LoopModel) -> LoopModel:
    """Count a variable from its initial value, where that makes the model smaller.

    For a pointer between two unknown addresses only the distance counts.
    """
    for v in model.state:
        if v.initial.constant is not None or v.symbol not in rewrite.symbols([v.next]):
            continue
        moved = _moved(model, v)
        if _size(moved) < _size(model):
            model = moved
    return model


def _moved(model: LoopModel, variable: StateVariable) -> LoopModel:
    """The model in which the variable's symbol is the distance from its initial value."""
    symbol, start = variable.symbol, variable.initial
    replaced = rewrite.Substitution({symbol: terms.add(start, symbol)})

    def moved(v: StateVariable) -> StateVariable:
        following = replaced(v.next)
        if v.symbol is not symbol:
            return replace(v, next=following)
        return StateVariable(symbol, const(0, symbol.width), terms.sub(following, start))

    return replace(
        model,
        state=tuple(map(moved, model.state)),
        again=replaced(model.again),
        exits=tuple(map(replaced, model.exits)),
        hints=tuple(map(replaced, model.hints)),
    )


def _size(model: LoopModel) -> int:
    """The number of terms in the step and in the initial values."""
    step = [v.next for v in model.state] + [v.initial for v in model.state]
    return sum(t.op != "const" for t in rewrite.walk([model.again, *step]))


def influential(model: LoopModel) -> LoopModel:
    """The model without symbols that cannot influence the lengths of runs."""
    following = {v.symbol: v.next for v in model.state}
    needed = closure(
        rewrite.symbols([model.again]),
        lambda s: rewrite.symbols([following[s]]) if s in following else (),
    )
    state = tuple(v for v in model.state if v.symbol in needed)
    used = rewrite.symbols([model.again, *(v.next for v in state), *(v.initial for v in state)])
    constraints = _connected(model.constraints, used)
    used |= rewrite.symbols(constraints)
    parameters = tuple(p for p in model.parameters if p in used)
    known = used | {v.symbol for v in state}
    hints = tuple(h for h in model.hints if rewrite.symbols([h]) <= known)
    return LoopModel(
        parameters,
        state,
        tuple(i for i in model.inputs if i in used),
        constraints,
        model.again,
        hints,
    )


def _connected(constraints: tuple[Term, ...], used: set[Term]) -> tuple[Term, ...]:
    """Constraints that share a symbol with ``used``, also through others, and add few symbols."""
    used, retained = set(used), set()
    for _ in range(table.SUBSTITUTIONS):
        reached = set(used)
        for c in constraints:
            symbols = rewrite.symbols([c])
            if symbols & used and len(symbols - used) <= table.NEW_SYMBOLS:
                retained.add(c)
                reached |= symbols
        used = reached
    return tuple(c for c in constraints if c in retained)


def replaced(term: Term, known: Mapping[Term, Term]) -> Term:
    """``term`` with each term in ``known`` replaced."""
    done = dict(known)
    for t in rewrite.walk([term]):
        if t not in done:
            done[t] = rewrite.rebuild(t, [done[a] for a in t.args])
    return done[term]
