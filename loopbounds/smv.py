"""Print terms as SMV expressions over unsigned words and Booleans.

Every shared term becomes one DEFINE. Shifts by a variable are printed as stages, because NuSMV's
own operators leave amounts beyond the width undefined; counts of bits likewise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loopbounds.rewrite import walk
from loopbounds.terms import Term, mask

__all__ = ["Printer", "word"]


def word(value: int, width: int) -> str:
    """A constant; Booleans are width 1."""
    if width == 1:
        return "TRUE" if value else "FALSE"
    return f"0ud{width}_{value}"


class Printer:
    """Names terms one by one; ``lines`` are the DEFINEs made so far."""

    def __init__(self, names: Mapping[Term, str]) -> None:
        self._names = dict(names)
        self.lines: list[str] = []

    def define(self, terms: Iterable[Term]) -> list[str]:
        """The names (or constants) that stand for ``terms``."""
        terms = list(terms)
        for term in walk(terms):
            if term not in self._names:
                self._names[term] = self._name(term)
        return [self._names[t] for t in terms]

    def _name(self, term: Term) -> str:
        if term.constant is not None:
            return word(term.value, term.width)
        if term.op == "sym":
            raise KeyError(f"symbol {term.name} is not part of the model")
        args = [self._names[a] for a in term.args]
        return self._line(self._expression(term, args))

    def _line(self, expression: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"  {name} := {expression};")
        return name

    def _expression(self, term: Term, args: list[str]) -> str:
        op, width = term.op, term.args[0].width
        if op == "linear":
            return self._sum(term, args)
        if op == "and":
            return " & ".join(args)
        if op in _INFIX:
            return f"{args[0]} {_INFIX[op][width == 1]} {args[1]}"
        if op == "not":
            return f"!{args[0]}"
        if op == "slt":
            return f"signed({args[0]}) < signed({args[1]})"
        if op == "ite":
            return f"{args[0]} ? {args[1]} : {args[2]}"
        if op == "zext":
            if width == 1:
                return f"{args[0]} ? {word(1, term.width)} : {word(0, term.width)}"
            return f"extend({args[0]}, {term.width - width})"
        if op == "sext":
            if width == 1:
                return f"{args[0]} ? {word(mask(term.width), term.width)} : {word(0, term.width)}"
            return f"unsigned(extend(signed({args[0]}), {term.width - width}))"
        if op == "extract":
            return self._bits(args[0], term.value, term.width)
        if op == "concat":
            high, low = (self._as_word(t, a) for t, a in zip(term.args, args, strict=True))
            return f"{high} :: {low}"
        if op in ("shl", "lshr", "ashr"):
            return self._shift(term, args)
        if op == "clz":
            return self._leading_zeros(args[0], width)
        if op == "popcount":
            return self._bit_count(args[0], width)
        if op in ("sborrow", "scarry"):
            return self._overflow(op, args, width)
        raise KeyError(f"no SMV for operator {op}")

    def _sum(self, term: Term, args: list[str]) -> str:
        width, text = term.width, ""
        for factor, a in zip(term.factors, args, strict=True):
            negative = factor >= 1 << (width - 1)
            size = (-factor if negative else factor) & mask(width)
            text += f" {'-' if negative else '+'} {_product(a, size, width)}"
        text = text[3:] if text.startswith(" + ") else word(0, width) + text
        return f"{text} + {word(term.value, width)}" if term.value else text

    @staticmethod
    def _as_word(term: Term, name: str) -> str:
        return f"word1({name})" if term.width == 1 else name

    @staticmethod
    def _bits(name: str, low: int, width: int) -> str:
        text = f"{name}[{low + width - 1}:{low}]"
        return f"({text} = 0ud1_1)" if width == 1 else text

    def _shift(self, term: Term, args: list[str]) -> str:
        """Stages of 1, 2, 4 ... places, and everything shifted out when a higher bit is set."""
        op, width, (value, amount) = term.op, term.width, args
        smv = "<<" if op == "shl" else ">>"
        if op == "ashr":
            value = f"signed({value})"
        constant = term.args[1].constant
        out = word(0, width)
        if op == "ashr":
            sign = self._bits(args[0], width - 1, 1)
            out = f"({sign} ? {word(mask(width), width)} : {out})"
        if constant is not None:
            if constant >= width:
                return out
            shifted = f"({value} {smv} {constant})"
            return f"unsigned({shifted})" if op == "ashr" else shifted
        amount_width = term.args[1].width
        stages = (width - 1).bit_length()
        for stage in range(min(stages, amount_width)):
            test = self._bits(amount, stage, 1)
            value = self._line(f"{test} ? ({value} {smv} {1 << stage}) : {value}")
        inside = f"unsigned({value})" if op == "ashr" else value
        if width != 1 << stages:
            raise KeyError(f"shift of a word of {width} bits by a variable")
        if amount_width <= stages:
            return inside
        beyond = self._bits(amount, stages, amount_width - stages)
        small = (
            beyond
            if amount_width - stages == 1
            else f"{beyond} != {word(0, amount_width - stages)}"
        )
        return f"({small}) ? {out} : {inside}"

    def _leading_zeros(self, value: str, width: int) -> str:
        """Halve the word: is its upper half 0?"""
        if width & (width - 1):
            raise KeyError(f"leading zeros of a word of {width} bits")
        parts, half = [], width // 2
        while half:
            test = f"{self._bits(value, width - half, half)} = {word(0, half)}"
            if half == 1:
                test = f"!{self._bits(value, width - 1, 1)}"
            zero = self._line(test)
            parts.append(f"({zero} ? {word(half, width)} : {word(0, width)})")
            value = self._line(f"{zero} ? ({value} << {half}) : {value}")
            half //= 2
        last = self._bits(value, width - 1, 1)
        parts.append(f"({last} ? {word(0, width)} : {word(1, width)})")
        return " + ".join(parts)

    def _bit_count(self, value: str, width: int) -> str:
        one, zero = word(1, width), word(0, width)
        return " + ".join(f"({self._bits(value, i, 1)} ? {one} : {zero})" for i in range(width))

    def _overflow(self, op: str, args: list[str], width: int) -> str:
        """The exact result, one bit wider, does not fit."""
        a, b = (f"extend(signed({x}), 1)" for x in args)
        wide = f"unsigned({a} {'-' if op == 'sborrow' else '+'} {b})"
        top, next_to_top = f"{wide}[{width}:{width}]", f"{wide}[{width - 1}:{width - 1}]"
        return f"{top} != {next_to_top}"


# (words, Booleans)
_INFIX = {
    "or": ("|", "|"),
    "xor": ("xor", "xor"),
    "eq": ("=", "<->"),
    "ult": ("<", "<"),
    "mul": ("*", "*"),
    "udiv": ("/", "/"),
    "urem": ("mod", "mod"),
}


def _product(name: str, factor: int, width: int) -> str:
    if factor == 1:
        return name
    if factor & (factor - 1) == 0:
        return f"({name} << {factor.bit_length() - 1})"
    return f"({name} * {word(factor, width)})"
