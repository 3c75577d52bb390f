"""A simpler model with at least the runs of a given one: dropped terms only lengthen runs.

One easy condition bounds most loops, among others that are hard for a solver (a compare of shifted
capability words, say). So the easy conditions are tried alone: conditions of ``again`` that are
large or shift by a variable are dropped, hard values become any word, and everything that no longer
influences the loop is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from loopbounds.budgets import table
from loopbounds.nusmv.printing import WIDEST, is_sayable
from loopbounds.reduction.quotients import with_shorter_words
from loopbounds.reduction.simplify import influential, replaced, simplified
from loopbounds.terms import bit_vectors as terms
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import TRUE, Term, conjuncts, const, sym
from loopbounds.terms.interval import interval
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["coarsen", "easy", "without_large"]

HARD = frozenset({"mul", "udiv", "urem"})
SHIFTS = frozenset({"shl", "lshr", "ashr"})


def coarsen(model: LoopModel) -> LoopModel:
    """Every run of ``model`` corresponds to a run of the result with as many executions."""
    model = simplified(_cut(simplified(with_shorter_words(model))))
    again = TRUE
    for c in conjuncts(model.again):
        if easy(c):
            again = terms.both(again, c)
    return simplified(_with_easy_values(model, again))


def _cut(model: LoopModel) -> LoopModel:
    """Replace hard values that are constant throughout a run by parameters, wherever they occur."""
    cuts = _Cuts(model)
    while cuts.find():
        pass
    ranges = [part for symbol, value in cuts.values.items() for part in _within(symbol, value)]

    def cut(term: Term) -> Term:
        return replaced(term, cuts.done)

    return LoopModel(
        (*model.parameters, *cuts.values),
        tuple(StateVariable(v.symbol, cut(v.initial), cut(v.next)) for v in model.state),
        model.inputs,
        tuple(c for c in (*map(cut, model.constraints), *ranges) if c is not TRUE),
        cut(model.again),
        model.hints,
    )


def _within(symbol: Term, value: Term) -> list[Term]:
    """The range of ``value``, as constraints on the symbol that replaces it."""
    low, high = interval(value)
    return [terms.ule(const(low, value.width), symbol), terms.ule(symbol, const(high, value.width))]


class _Cuts:
    """Large values replaced by symbols. ``values``: by symbol; ``done``: each term's replacement.

    In a large choice (``ite``), symbols replace the alternatives and the condition's words, but the
    choice stays: so the minimum of two words stays at most either, and constraints on these words
    still apply. In a large shifted sum, symbols replace the words in the same way, so that the
    distance of two such sums stays known.
    """

    def __init__(self, model: LoopModel) -> None:
        roots = [model.again, *(v.next for v in model.state), *(v.initial for v in model.state)]
        self._terms = rewrite.walk([*roots, *model.constraints])
        self._parameters = model.parameters
        self._below_choices: set[Term] = set()
        self.values: dict[Term, Term] = {}
        self.done: dict[Term, Term] = {}

    def find(self) -> bool:
        """Replace bottom up; True if words below choices must be replaced, too, in another pass."""
        known = len(self._below_choices)
        self.values, self.done = {}, {p: p for p in self._parameters}
        for t in self._terms:
            if t.op != "sym" and all(a in self.done for a in t.args):  # over parameters only
                self.done[t] = self._cut(t, rewrite.rebuild(t, [self.done[a] for a in t.args]))
        return len(self._below_choices) > known

    def _cut(self, t: Term, new: Term) -> Term:
        if t.width == 1 or new.op in ("sym", "const", "linear"):
            return new  # sums stay: their members may cancel in other terms
        if t in self._below_choices:
            return self._symbol(new)
        if not _worth_cutting(new):
            return new
        opened = self._opened(t) if t.op == "ite" or _is_shifted_sum(t) else None
        return self._symbol(new) if opened is None else opened

    def _opened(self, choice: Term) -> Term | None:
        """The choice with its large words as symbols; None where that would not make it small."""
        inside = choice if choice.op == "ite" else choice.args[0]
        words = {w: self.done[w] for w in _chosen_between(inside)}
        new = [w for w in words if w not in self._below_choices]
        large = [w for w in new if rewrite.size(words[w]) > table.CHOSEN_WORD_TERMS]
        words |= {w: sym(f"word{i}", w.width) for i, w in enumerate(large)}
        small = replaced(choice, words)
        if not large or rewrite.size(small) > table.CHOICE_TERMS:
            return None
        self._below_choices.update(large)
        return small

    def _symbol(self, value: Term) -> Term:
        symbol = sym(f"cut{len(self._parameters) + len(self.values)}", value.width)
        self.values[symbol] = value
        return symbol


def _is_shifted_sum(term: Term) -> bool:
    return term.op in SHIFTS and term.args[0].op == "linear" and term.args[1].constant is not None


def _chosen_between(choice: Term) -> list[Term]:
    """The alternatives of a choice, and the words in its conditions."""
    inside = {choice: None}
    for t in (pending := [choice]):
        if t.op in ("ite", "linear") or t.width == 1:
            new = [a for a in t.args if a not in inside]
            inside |= dict.fromkeys(new)
            pending += new
    return [t for t in inside if t.op not in ("ite", "linear") and t.width > 1]


def _worth_cutting(term: Term) -> bool:
    if term.op in SHIFTS and term.args[1].constant is None:
        return True
    return _hard(term) or rewrite.size(term) > table.CHOICE_TERMS


def easy(term: Term) -> bool:
    """Whether a term is small and without operators that are hard for a solver."""
    parts = rewrite.walk([term])
    return len(parts) <= table.HARD_TERMS and not any(map(_hard, parts))


def _hard(t: Term) -> bool:
    if t.width > WIDEST:
        return True
    if t.op in SHIFTS:
        return t.args[0].constant is None and t.args[1].constant is None
    return t.op in HARD


def _with_easy_values(
    model: LoopModel, again: Term, known: Callable[[Term], bool] = easy
) -> LoopModel:
    """The model with only ``known`` values and constraints; other values become any word."""
    parameters, inputs, state = list(model.parameters), list(model.inputs), []
    for i, v in enumerate(model.state):
        initial, following = v.initial, v.next
        if not known(initial):
            initial = sym(f"some{i}", v.symbol.width)
            parameters.append(initial)
        if not known(following):
            following = sym(f"any{i}", v.symbol.width)
            inputs.append(following)
        state.append(StateVariable(v.symbol, initial, following))
    constraints = tuple(c for c in model.constraints if known(c))
    return LoopModel(
        tuple(parameters), tuple(state), tuple(inputs), constraints, again, model.hints
    )


def without_large(model: LoopModel, most: int = 2 * table.HARD_TERMS) -> LoopModel:
    """The model without constraints of more than ``most`` terms, which cost more than they help.

    A term that NuSMV cannot express becomes any word, as in ``coarsen``.
    """
    small = tuple(c for c in model.constraints if rewrite.size(c) <= most)
    model = replace(model, constraints=small)
    if is_sayable(model.terms()):
        return model
    parts = [c for c in conjuncts(model.again) if _sayable(c)]
    return influential(_with_easy_values(model, reduce(terms.both, parts, TRUE), _sayable))


def _sayable(term: Term) -> bool:
    return is_sayable([term])
