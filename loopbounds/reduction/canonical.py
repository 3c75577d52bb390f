"""A canonical form of models, so that models with other names or another order share one proof.

The shape of a term is a hash of its structure, in which a symbol is identified by its role in the
model. The terms of the model are traversed in the order of their shapes, and their symbols are
numbered on the way. The order is only a heuristic: the result is always the model with its symbols
renamed one to one. Where two terms have the same shape, two models may break the tie differently,
which costs one more proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from zlib import crc32

from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, sym
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["canonical"]

UNORDERED = frozenset({"linear", "and", "or", "xor", "eq", "mul"})

Shapes = Mapping[Term, int]


def canonical(model: LoopModel) -> LoopModel:
    """The same model with canonical names of symbols and a canonical order of constraints."""
    shapes = _shapes(model)
    state = sorted(model.state, key=lambda v: shapes[v.symbol])
    roots = [model.again, *(t for v in state for t in (v.next, v.initial))]
    constraints = sorted(model.constraints, key=shapes.__getitem__)
    names = _numbered(model, [*roots, *constraints], shapes)

    named = rewrite.Substitution(names)
    variables = (StateVariable(names[v.symbol], named(v.initial), named(v.next)) for v in state)
    return LoopModel(
        _in_order(names[p] for p in model.parameters),
        tuple(sorted(variables, key=lambda v: _number(v.symbol))),
        _in_order(names[i] for i in model.inputs),
        tuple(map(named, constraints)),
        named(model.again),
        tuple(named(h) for h in sorted(model.hints, key=shapes.__getitem__)),
        tuple(named(e) for e in sorted(model.exits, key=shapes.__getitem__)),
    )


def _shapes(model: LoopModel) -> Shapes:
    """The shapes of all terms; initial and next values distinguish state variables."""
    parts = (("p", model.parameters), ("x", [v.symbol for v in model.state]), ("i", model.inputs))
    colors = {s: hash((crc32(kind.encode()), s.width)) for kind, own in parts for s in own}
    moving = [t for v in model.state for t in (v.initial, v.next)]
    first = _of_terms(moving, colors)
    colors |= {v.symbol: hash((first[v.initial], first[v.next])) for v in model.state}
    roots = [*moving, model.again, *model.constraints, *model.hints, *model.exits]
    return _of_terms([*roots, *colors], colors)


def _of_terms(roots: Iterable[Term], colors: Mapping[Term, int]) -> dict[Term, int]:
    """A hash of the structure of each term, the same in every process."""
    shapes: dict[Term, int] = {}
    for t in rewrite.walk(roots):
        known = colors.get(t)
        if known is None:
            parts = [hash((f, shapes[a])) for f, a in _weighted(t)]
            if t.op in UNORDERED:
                parts.sort()
            known = hash((crc32(t.op.encode()), t.width, t.value, *parts))
        shapes[t] = known
    return shapes


def _weighted(t: Term) -> Iterator[tuple[int, Term]]:
    """The arguments, each with its factor in a sum, or 0."""
    return zip(t.factors or (0,) * len(t.args), t.args, strict=True)


def _numbered(model: LoopModel, roots: Iterable[Term], shapes: Shapes) -> dict[Term, Term]:
    """A new name for every symbol, numbered in the order of traversal from ``roots``."""
    prefix = dict.fromkeys(model.parameters, "p") | dict.fromkeys(model.inputs, "i")
    prefix |= dict.fromkeys((v.symbol for v in model.state), "x")
    names: dict[Term, Term] = {}
    used = dict.fromkeys("pxi", 0)
    for symbol in [*_met(roots, shapes), *prefix]:
        if symbol not in names:
            kind = prefix[symbol]
            names[symbol] = sym(f"{kind}{used[kind]}", symbol.width)
            used[kind] += 1
    return names


def _met(roots: Iterable[Term], shapes: Shapes) -> Iterator[Term]:
    """The symbols below ``roots``, depth first."""
    seen: set[Term] = set()
    stack = list(roots)[::-1]
    while stack:
        t = stack.pop()
        if t in seen:
            continue
        seen.add(t)
        if t.op == "sym":
            yield t
        parts = list(_weighted(t))
        if t.op in UNORDERED:
            parts.sort(key=lambda part: (part[0], shapes[part[1]]))
        stack += [a for _, a in reversed(parts)]


def _number(symbol: Term) -> int:
    return int(symbol.name[1:])


def _in_order(symbols: Iterable[Term]) -> tuple[Term, ...]:
    return tuple(sorted(symbols, key=_number))
