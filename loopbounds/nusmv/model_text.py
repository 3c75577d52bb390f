"""The SMV text of a loop's transition system and of its properties."""

from __future__ import annotations

from collections.abc import Sequence

from loopbounds.nusmv.printing import SmvPrinter, word
from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.transition.model import COUNT, COUNT_WIDTH, RUNNING, LoopModel

__all__ = ["smv_text"]


def smv_text(model: LoopModel, properties: Sequence[tuple[str, Term]]) -> str:
    """The model and, for each property, ``DEFINE name`` and ``INVARSPEC NAME spec_name``.

    A property is over parameters, state, ``COUNT`` and ``RUNNING``. Raises IllTyped and TooLarge.
    """
    variables = [v.symbol for v in model.state]
    order = [*model.parameters, *variables, *model.inputs, COUNT, RUNNING]
    printer = SmvPrinter({s: s.name for s in order})
    again, *following = printer.define([model.again, *(v.next for v in model.state)])
    starts = printer.define([v.initial for v in model.state])
    constraints = printer.define(model.constraints)
    texts = printer.define(p for _, p in properties)
    one, last = word(1, COUNT_WIDTH), word(mask(COUNT_WIDTH), COUNT_WIDTH)
    lines = ["MODULE main"]
    lines += _declarations("FROZENVAR", model.parameters)
    lines += _declarations("VAR", [*variables, COUNT, RUNNING])
    lines += _declarations("IVAR", model.inputs)
    lines += ["DEFINE", *printer.lines, f"  go := running & {again};"]
    lines += [f"  {name} := {text};" for (name, _), text in zip(properties, texts, strict=True)]
    lines += [f"INIT {text};" for text in ("running", f"executions = {one}", *constraints)]
    lines += [
        f"INIT {v.symbol.name} = {start};" for v, start in zip(model.state, starts, strict=True)
    ]
    lines += ["TRANS next(running) = go;"]
    counted = f"(go & executions != {last} ? executions + {one} : executions)"
    lines += [f"TRANS next(executions) = {counted};"]
    lines += [
        f"TRANS next({v.symbol.name}) = (go ? {text} : {v.symbol.name});"
        for v, text in zip(model.state, following, strict=True)
    ]
    lines += [f"INVARSPEC NAME spec_{name} := {name};" for name, _ in properties]
    return "\n".join([*lines, ""])


def _declarations(section: str, variables: Sequence[Term]) -> list[str]:
    if not variables:
        return []
    types = ("boolean" if v.width == 1 else f"unsigned word[{v.width}]" for v in variables)
    return [section, *(f"  {v.name} : {t};" for v, t in zip(variables, types, strict=True))]
