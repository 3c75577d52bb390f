"""Run terms on concrete words: compiled to one Python function per list of terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from loopbounds.terms import arithmetic
from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.terms.rewrite import walk

__all__ = ["compile_terms", "evaluate"]

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
}


def compile_terms(
    terms: Sequence[Term], order: Sequence[Term]
) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """A function from the values of the symbols in ``order`` to the values of ``terms``."""
    names: dict[Term, str] = {s: f"v[{i}]" for i, s in enumerate(order)}
    lines = ["def run(v):"]
    for term in walk(terms):
        if term in names:
            continue
        if term.constant is not None:
            names[term] = str(term.value)
            continue
        if term.op == "sym":
            raise KeyError(f"no value for symbol {term.name}")
        names[term] = f"t{term.serial}"
        lines.append(f"    {names[term]} = {_code(term, [names[a] for a in term.args])}")
    results = "".join(f"{names[t]}, " for t in terms)
    lines.append(f"    return ({results})")
    scope: dict[str, Callable[[Sequence[int]], tuple[int, ...]]] = {}
    exec("\n".join(lines), {"apply": arithmetic.apply}, scope)
    return scope["run"]


def _code(term: Term, args: list[str]) -> str:
    width = term.args[0].width
    if term.op == "and":
        return " & ".join(args)
    if term.op in _CODE:
        return _CODE[term.op].format(*args, sign=1 << (width - 1), mask=mask(width))
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
    return f"apply({term.op!r}, ({', '.join(args)},), {width})"


def evaluate(term: Term, values: Mapping[Term, int]) -> int:
    """The value of one term."""
    order = list(values)
    return compile_terms([term], order)([values[s] for s in order])[0]
