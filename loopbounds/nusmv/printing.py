"""Print terms as SMV expressions over unsigned words and Booleans.

Every shared term becomes one DEFINE. Each operator has a form for words of any width and one for
Booleans: NuSMV has a separate type for words of one bit. Shifts by a variable are printed as
stages, because NuSMV leaves amounts beyond the width undefined; counts of bits likewise.

NuSMV knows no word of more than ``WIDEST`` bits and no division by a variable. Terms with these can
be printed, as a key for example, but make no query (``is_sayable``). Terms that grow too large when
every DEFINE is expanded make no query either: NuSMV counts their size in 32 bits, and reports an
overflow as a type error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from loopbounds.terms.bit_vectors import Term, mask
from loopbounds.terms.rewrite import walk
from loopbounds.terms.well_typed import IllTyped, check_type

__all__ = ["WIDEST", "SmvPrinter", "TooLarge", "is_sayable", "word"]

WIDEST = 64  # bits of a word in NuSMV
LARGEST = 1 << 24  # names in an expression after all DEFINEs are expanded
NAME = re.compile(r"\bt\d+\b")  # of a DEFINE


class TooLarge(Exception):
    """A term at which NuSMV's count of its size overflows."""


def is_sayable(terms: Iterable[Term]) -> bool:
    """Whether NuSMV can represent all ``terms``, and none is too large for it."""
    terms = list(terms)
    parts = list(walk(terms))
    if any(
        t.width > WIDEST or (t.op in ("udiv", "urem") and t.args[1].constant is None) for t in parts
    ):
        return False
    try:
        SmvPrinter({t: t.name for t in parts if t.op == "sym"}).define(terms)
    except TooLarge:
        return False
    return True


def word(value: int, width: int) -> str:
    """A constant; Booleans are width 1."""
    if width == 1:
        return "TRUE" if value else "FALSE"
    return f"0ud{width}_{value}"


class SmvPrinter:
    """Names terms one by one; ``lines`` are the DEFINEs made so far."""

    def __init__(self, names: Mapping[Term, str]) -> None:
        self._names = dict(names)
        self._sizes: dict[str, int] = {}  # of definitions, written out
        self.lines: list[str] = []

    def define(self, terms: Iterable[Term]) -> list[str]:
        """The names (or constants) that stand for ``terms``. Raises IllTyped and TooLarge."""
        terms = list(terms)
        for term in walk(terms):
            if term not in self._names:
                self._names[term] = self._name(term)
        return [self._names[t] for t in terms]

    def _name(self, term: Term) -> str:
        if term.constant is not None:
            return word(term.value, term.width)
        if term.op == "sym":
            raise IllTyped(f"symbol {term.name} is not part of the model")
        check_type(term)
        args = [self._names[a] for a in term.args]
        return self._line(self._expression(term, args))

    def _line(self, expression: str) -> str:
        name = f"t{len(self.lines)}"
        self._sizes[name] = 1 + sum(self._sizes.get(n, 1) for n in NAME.findall(expression))
        if self._sizes[name] > LARGEST:
            raise TooLarge("a term is too large for NuSMV once all definitions are written out")
        self.lines.append(f"  {name} := {expression};")
        return name

    def _expression(self, term: Term, args: list[str]) -> str:
        op, width = term.op, term.args[0].width
        if op == "linear":
            return _parity(term, args) if width == 1 else self._sum(term, args)
        if op == "and":
            return " & ".join(args)
        if op in _BOOLEAN and width == 1:
            return _BOOLEAN[op].format(*args)
        if op in _INFIX:
            return f"{args[0]} {_INFIX[op]} {args[1]}"
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
            return self._shift_of_bit(term, args) if width == 1 else self._shift(term, args)
        if op in ("udiv", "urem"):
            return self._division(term, args)
        if op == "clz":
            return self._leading_zeros(args[0], width)
        if op == "popcount":
            return self._bit_count(args[0], width)
        if op in ("sborrow", "scarry"):
            return self._overflow(op, args, width)
        raise IllTyped(f"no SMV for operator {op}")

    def _sum(self, term: Term, args: list[str]) -> str:
        width, text = term.width, ""
        for factor, a in zip(term.factors, args, strict=True):
            if factor == 0:
                continue
            negative = factor >= 1 << (width - 1)
            size = (-factor if negative else factor) & mask(width)
            text += f" {'-' if negative else '+'} {_product(a, size, width)}"
        text = text[3:] if text.startswith(" + ") else word(0, width) + text  # no sign of its own
        return f"{text} + {word(term.value, width)}" if term.value else text

    @staticmethod
    def _as_word(term: Term, name: str) -> str:
        return f"word1({name})" if term.width == 1 else name

    @staticmethod
    def _bits(name: str, low: int, width: int) -> str:
        text = f"{name}[{low + width - 1}:{low}]"
        return f"({text} = 0ud1_1)" if width == 1 else text

    @staticmethod
    def _shift_of_bit(term: Term, args: list[str]) -> str:
        """A shifted Boolean: any amount but 0 shifts it out; an arithmetic shift repeats it."""
        if term.op == "ashr":
            return args[0]
        amount = term.args[1]
        stays = f"!{args[1]}" if amount.width == 1 else f"{args[1]} = {word(0, amount.width)}"
        return f"{args[0]} & {stays}"

    def _shift(self, term: Term, args: list[str]) -> str:
        """A shift in stages of 1, 2, 4 ... places; higher bits of the amount shift out all."""
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
            test = amount if amount_width == 1 else self._bits(amount, stage, 1)
            value = self._line(f"{test} ? ({value} {smv} {1 << stage}) : {value}")
        inside = f"unsigned({value})" if op == "ashr" else value
        if amount_width <= stages:
            return inside
        beyond = self._bits(amount, stages, amount_width - stages)
        small = (
            beyond
            if amount_width - stages == 1
            else f"{beyond} != {word(0, amount_width - stages)}"
        )
        return f"({small}) ? {out} : {inside}"

    @staticmethod
    def _division(term: Term, args: list[str]) -> str:
        """A division: by 0 the quotient is 0, the remainder the dividend; NuSMV would fail."""
        if term.args[1].constant == 0:
            return word(0, term.width) if term.op == "udiv" else args[0]
        return f"{args[0]} {'/' if term.op == 'udiv' else 'mod'} {args[1]}"

    def _leading_zeros(self, value: str, width: int) -> str:
        """The count by halving; bit by bit for a width that is no power of two."""
        if width & (width - 1):
            text = word(width, width)
            for bit in range(width):
                zeros = word(width - 1 - bit, width)
                text = self._line(f"{self._bits(value, bit, 1)} ? {zeros} : {text}")
            return text
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
        """Signed overflow: the result has another sign than the signs of the operands imply."""
        result = self._line(f"{args[0]} {'-' if op == 'sborrow' else '+'} {args[1]}")
        a, b, r = (f"{x}[{width - 1}:{width - 1}]" for x in (*args, result))
        return f"{a} {'!=' if op == 'sborrow' else '='} {b} & {r} != {a}"


_INFIX = {"or": "|", "xor": "xor", "eq": "=", "ult": "<", "mul": "*"}
# The same operators on words of one bit; read with sign, 1 is -1.
_BOOLEAN = {
    "or": "{0} | {1}",
    "xor": "{0} xor {1}",
    "not": "!{0}",
    "eq": "{0} <-> {1}",
    "ult": "!{0} & {1}",
    "slt": "{0} & !{1}",
    "mul": "{0} & {1}",
    "udiv": "{0} & {1}",
    "urem": "{0} & !{1}",
    "clz": "!{0}",
    "popcount": "{0}",
    "sborrow": "!{0} & {1}",
    "scarry": "{0} & {1}",
}


def _parity(term: Term, args: list[str]) -> str:
    """A sum modulo 2, as a Boolean."""
    odd = [a for factor, a in zip(term.factors, args, strict=True) if factor & 1]
    return " xor ".join([*odd, *(["TRUE"] if term.value & 1 else [])]) or "FALSE"


def _product(name: str, factor: int, width: int) -> str:
    if factor == 1:
        return name
    if factor & (factor - 1) == 0:
        return f"({name} << {factor.bit_length() - 1})"
    return f"({name} * {word(factor, width)})"
