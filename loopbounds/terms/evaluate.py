"""Evaluate terms on concrete words: each list of terms is compiled to one Python function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.terms.rewrite import walk

__all__ = ["Loop", "Words", "compile_loop", "compile_terms", "evaluate"]

_CODE = {
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "1 - {0}",
    "eq": "int({0} == {1})",
    "ult": "int({0} < {1})",
    "slt": "int(({0} ^ {sign}) < ({1} ^ {sign}))",
    "ite": "{1} if {0} else {2}",
    "zext": "{0}",
    "mul": "({0} * {1}) & {mask}",
    "udiv": "{0} // {1} if {1} else 0",
    "urem": "{0} % {1} if {1} else {0}",
    "shl": "({0} << {1}) & {mask} if {1} < {width} else 0",
    "lshr": "{0} >> {1}",
    "ashr": "((({0} ^ {sign}) - {sign}) >> {1}) & {mask}",
    "clz": "{width} - ({0}).bit_length()",
    "popcount": "({0}).bit_count()",
    "sborrow": "(({0} ^ {1}) & ({0} ^ ({0} - {1}))) >> {top} & 1",
    "scarry": "(({0} ^ ({0} + {1})) & ({1} ^ ({0} + {1}))) >> {top} & 1",
}

Words = tuple[int, ...]
Loop = Callable[[Sequence[int], Words, int, Callable[[Words], object]], tuple[int, Words]]


def compile_terms(terms: Sequence[Term], order: Sequence[Term]) -> Callable[[Sequence[int]], Words]:
    """A function from the values of the symbols in ``order`` to the values of ``terms``."""
    names = {s: f"v[{i}]" for i, s in enumerate(order)}
    scope: dict[str, Callable[[Sequence[int]], Words]] = {}
    lines = _lines(terms, names)
    _define(["def run(v):", *_indented(lines), f" return {_tuple(terms, names)}"], scope)
    return scope["run"]


def compile_loop(
    again: Term, following: Sequence[Term], parameters: Sequence[Term], state: Sequence[Term]
) -> Loop:
    """A loop without inputs as a function ``run(parameters, words, steps, see)``.

    It iterates from the state ``words`` until the loop exits or after ``steps`` iterations, passes
    each new state to ``see``, and returns the number of iterations and the last state.
    """
    names = {s: f"v[{i}]" for i, s in enumerate(parameters)}
    fixed = _independent([again, *following], set(state))
    before = _lines(fixed, names)
    names |= {s: f"w{i}" for i, s in enumerate(state)}
    test = _lines([again], names)
    step = _lines(following, names)
    words = _tuple(state, names)
    body = [*test, f"if not {names[again]}:", f" return taken, {words}", *step]
    body += [f"{words} = now = {_tuple(following, names)}", "see(now)"]
    scope: dict[str, Loop] = {}
    _define(
        [
            "def run(v, words, steps, see):",
            *_indented([*before, f"{words} = words", "for taken in range(steps):"]),
            *_indented(_indented(body)),
            f" return steps, {words}",
        ],
        scope,
    )
    return scope["run"]


def _independent(roots: Sequence[Term], of: set[Term]) -> list[Term]:
    """The subterms of ``roots`` without any of the symbols ``of``."""
    changing = set(of)
    for term in walk(roots):
        if not changing.isdisjoint(term.args):
            changing.add(term)
    return [term for term in walk(roots) if term not in changing]


def _lines(terms: Sequence[Term], names: dict[Term, str]) -> list[str]:
    """Statements that compute ``terms``; ``names`` gives known terms and is extended."""
    lines = []
    for term in walk(terms):
        if term in names:
            continue
        if term.constant is not None:
            names[term] = str(term.value)
            continue
        if term.op == "sym":
            raise KeyError(f"no value for symbol {term.name}")
        names[term] = f"t{term.serial}"
        lines.append(f"{names[term]} = {_code(term, [names[a] for a in term.args])}")
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f" {line}" for line in lines]


def _tuple(terms: Sequence[Term], names: Mapping[Term, str]) -> str:
    return f"({''.join(f'{names[t]}, ' for t in terms)})"


def _define(lines: Sequence[str], scope: dict[str, Any]) -> None:
    exec("\n".join(lines), {}, scope)


def _code(term: Term, args: list[str]) -> str:
    width = term.args[0].width
    if term.op == "and":
        return " & ".join(args)
    if term.op in _CODE:
        top = width - 1
        return _CODE[term.op].format(*args, width=width, top=top, sign=1 << top, mask=mask(width))
    if term.op == "linear":
        products = [a if c == 1 else f"{c} * {a}" for c, a in zip(term.factors, args, strict=True)]
        return f"({' + '.join([*products, str(term.value)])}) & {mask(term.width)}"
    if term.op == "extract":
        return f"({args[0]} >> {term.value}) & {mask(term.width)}"
    if term.op == "concat":
        return f"{args[0]} << {term.args[1].width} | {args[1]}"
    if term.op == "sext":
        sign = 1 << (width - 1)
        return f"(({args[0]} ^ {sign}) - {sign}) & {mask(term.width)}"
    raise KeyError(f"no code for {term.op}")


def evaluate(term: Term, values: Mapping[Term, int]) -> int:
    """The value of one term."""
    order = list(values)
    return compile_terms([term], order)([values[s] for s in order])[0]
