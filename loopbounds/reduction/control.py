"""The control of a loop that a few bits decide, in words that start as constants.

A software division shifts a bit through a word, and collects the quotient and the remainder in
others. Its number of iterations depends on that bit and on few others. So conditions on words
without a constant initial value become Boolean inputs, with either outcome in each iteration, and
words are restricted to their *demanded* bits, which may influence a condition, now or later. Each
run of the model has a run of the result with the same length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from loopbounds.budgets import table
from loopbounds.reduction.simplify import influential, replaced
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, conjuncts, const, mask, operation, sym
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["control_of", "demanded", "demanded_of", "with_demanded_bits"]

JOINING = frozenset({"and", "or", "xor", "not", "ite"})
MOVING = frozenset({"lshr", "ashr"})


def control_of(model: LoopModel) -> LoopModel | None:
    """The control of a model; None where it depends on unknown words or on large values."""
    model = replace(model, constraints=(), exits=(), hints=())
    cut = 0
    while unknown := _unknown_at_first(model) & _decided_by(model):
        inputs = _inputs(model, unknown, cut)
        cut += len(inputs)
        model = influential(_with_inputs(model, inputs))
    model = with_demanded_bits(model)
    values = [model.again, *(v.next for v in model.state)]
    small = all(rewrite.size(value) <= table.HARD_TERMS for value in values)
    return model if model.state and not model.parameters and small else None


def _unknown_at_first(model: LoopModel) -> set[Term]:
    """Parameters, wide inputs, and variables whose demanded bits have no constant initial value."""
    bits = demanded(model)
    found = {*model.parameters, *(i for i in model.inputs if i.width > 1)}
    for v in model.state:
        only = const(bits[v.symbol], v.symbol.width)
        if operation("and", v.initial, only).constant is None:
            found.add(v.symbol)
    return found


def _decided_by(model: LoopModel) -> set[Term]:
    """The symbols in comparisons."""
    roots = [model.again, *(v.next for v in model.state)]
    return rewrite.symbols(t for t in rewrite.walk(roots) if _is_comparison(t))


def _is_comparison(term: Term) -> bool:
    return term.width == 1 and bool(term.args) and term.op not in JOINING


def _inputs(model: LoopModel, unknown: set[Term], numbered: int) -> dict[Term, Term]:
    """The conditions that become inputs, by term; ``numbered`` inputs exist already."""
    cut = _conditions([model.again, *(v.next for v in model.state)], unknown)
    return {t: sym(f"either{numbered + i}", 1) for i, t in enumerate(cut)}


def _with_inputs(model: LoopModel, inputs: Mapping[Term, Term]) -> LoopModel:
    return replace(
        model,
        inputs=(*model.inputs, *inputs.values()),
        state=tuple(replace(v, next=replaced(v.next, inputs)) for v in model.state),
        again=replaced(model.again, inputs),
    )


def _conditions(roots: Iterable[Term], unknown: set[Term]) -> list[Term]:
    """The conditions in ``roots`` that are over unknown words alone, or compare one."""
    found, seen, pending = list[Term](), set[Term](), list(roots)
    while pending:
        t = pending.pop()
        symbols = rewrite.symbols([t])
        if t in seen or not symbols & unknown:
            continue
        seen.add(t)
        if t.width == 1 and (symbols <= unknown or _is_comparison(t)):
            found.append(t)
        else:
            pending += t.args
    return found


def with_demanded_bits(model: LoopModel) -> LoopModel:
    """The model with only the demanded bits of words; its runs have the same lengths."""
    bits = demanded(model)
    state = []
    for v in model.state:
        only = const(bits[v.symbol], v.symbol.width)
        initial, following = operation("and", v.initial, only), operation("and", v.next, only)
        state.append(StateVariable(v.symbol, initial, following))
    return influential(replace(model, state=tuple(state)))


def demanded(model: LoopModel) -> dict[Term, int]:
    """By variable a mask of the bits that may influence whether the loop repeats."""
    following = {v.symbol: v.next for v in model.state}
    bits = dict.fromkeys(following, 0)
    pending: list[tuple[Term, int]] = [(c, 1) for c in conjuncts(model.again)]
    while pending:
        for symbol, wanted in demanded_of(*pending.pop()).items():
            if symbol in bits and wanted & ~bits[symbol]:
                bits[symbol] |= wanted
                pending.append((following[symbol], bits[symbol]))
    return bits


def demanded_of(term: Term, wanted: int) -> dict[Term, int]:
    """The bits of symbols on which the ``wanted`` bits of a term depend."""
    found = {term: wanted}
    for t in reversed(rewrite.walk([term])):
        if found.get(t):
            for part, bits in _of_parts(t, found[t]):
                found[part] = found.get(part, 0) | bits
    return {t: bits for t, bits in found.items() if t.op == "sym"}


def _of_parts(t: Term, wanted: int) -> Iterable[tuple[Term, int]]:
    """The arguments of a term, each with the bits on which the ``wanted`` bits depend."""
    below = mask(wanted.bit_length())  # carries go up only
    if t.op == "ite":
        return [(t.args[0], 1), (t.args[1], wanted), (t.args[2], wanted)]
    if t.op == "and" and t.width > 1 and t.args[1].constant is not None:
        return [(t.args[0], wanted & t.args[1].value)]
    if t.op in JOINING:
        return [(part, wanted) for part in t.args]
    if t.op == "linear":
        return [(part, below) for part in t.args]
    if t.op in MOVING and t.args[1].constant is not None:
        sign = 1 << (t.width - 1) if t.op == "ashr" else 0
        return [(t.args[0], wanted << t.args[1].value & mask(t.width) | sign)]
    if t.op == "zext":
        return [(t.args[0], wanted & mask(t.args[0].width))]
    if t.op == "extract":
        return [(t.args[0], wanted << t.value)]
    return [(part, mask(part.width)) for part in t.args]
