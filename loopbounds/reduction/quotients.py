"""Quotients by a constant, which are hard for a solver, become any word that is small enough.

A compiler divides by the high word of a product: ``x / 10 = (0xcccccccd * x >> 32) >> 3``. The
product by c is at most ``c * x``, so that for ``c * 2**j <= 2**(32 + s)`` the quotient
``(c * x >> 32) >> s`` is at most ``x >> j``. A word that is divided in each iteration has as few
bits left after each as one that is shifted by j.
"""

from __future__ import annotations

from dataclasses import replace

from loopbounds.reduction.simplify import replaced
from loopbounds.terms import rewrite
from loopbounds.terms.bit_vectors import Term, const, ite, operation, sym, ule
from loopbounds.transition.model import LoopModel, StateVariable

__all__ = ["with_shorter_words"]


def with_shorter_words(model: LoopModel) -> LoopModel:
    """``model``, with each quotient of a state variable as any word up to a shifted one.

    Every run of ``model`` is a run of the result.
    """
    state = {v.symbol for v in model.state}
    inputs: list[Term] = []
    shorter: dict[Term, Term] = {}
    for term in rewrite.walk([model.again, *(v.next for v in model.state)]):
        most = _most(term)
        if most is not None and rewrite.symbols([term]) <= state:
            number = len(model.inputs) + len(inputs)  # a coarse model may be coarsened again
            word = sym(f"quotient{number}", term.width)
            inputs.append(word)
            shorter[term] = ite(ule(word, most), word, most)
    if not shorter:
        return model
    return replace(
        model,
        state=tuple(
            StateVariable(v.symbol, v.initial, replaced(v.next, shorter)) for v in model.state
        ),
        inputs=(*model.inputs, *inputs),
        again=replaced(model.again, shorter),
    )


def _most(term: Term) -> Term | None:
    """The shifted word that a quotient by a constant does not exceed; None for other terms."""
    shift = term.args[1].constant if term.op == "lshr" else 0
    high = term.args[0] if term.op == "lshr" else term
    if shift is None or shift >= term.width or high.op != "extract" or high.value != high.width:
        return None
    product = high.args[0]
    if product.op != "linear" or product.value or len(product.args) != 1:
        return None
    [wide], [factor] = product.args, product.factors
    if wide.op != "zext" or wide.args[0].width != term.width or product.width != 2 * term.width:
        return None
    if factor >> term.width:
        return None  # the product may wrap
    divided = (1 << term.width + shift) // factor
    bits = min(divided.bit_length(), term.width) - 1
    return operation("lshr", wide.args[0], const(bits, term.width)) if bits else None
