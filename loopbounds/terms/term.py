"""Terms: operators on terms, interned.

Terms of equal structure are the same object, so they are compared with ``is``. Width 1 is Boolean.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FALSE", "TRUE", "Term", "const", "make", "mask", "sym"]


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """``op`` on ``args``. ``value``: a constant, the constant of a sum, or the low bit of a slice.

    ``linear`` terms are ``value + sum(c * a for c, a in zip(factors, args))``.
    """

    op: str
    width: int
    args: tuple[Term, ...]
    value: int
    factors: tuple[int, ...]
    name: str
    serial: int  # order of creation: arguments come before their users

    def __repr__(self) -> str:
        if self.op == "const":
            return f"{self.value:#x}"
        if self.op == "sym":
            return self.name
        if self.op == "linear":
            parts = [f"{c:#x}*{a!r}" for c, a in zip(self.factors, self.args, strict=True)]
            return f"({' + '.join([*parts, hex(self.value)])})"
        return f"{self.op}({', '.join(map(repr, self.args))})"

    @property
    def constant(self) -> int | None:
        """The value of a constant term; None for any other term."""
        return self.value if self.op == "const" else None


_Key = tuple[str, int, tuple[Term, ...], int, tuple[int, ...], str]
_TABLE: dict[_Key, Term] = {}


def make(
    op: str,
    width: int,
    args: tuple[Term, ...] = (),
    value: int = 0,
    factors: tuple[int, ...] = (),
    name: str = "",
) -> Term:
    """The interned term with this structure, without simplification."""
    key = (op, width, args, value, factors, name)
    term = _TABLE.get(key)
    if term is None:
        term = _TABLE[key] = Term(op, width, args, value, factors, name, len(_TABLE))
    return term


def mask(width: int) -> int:
    """The largest word of ``width`` bits."""
    return (1 << width) - 1


def const(value: int, width: int) -> Term:
    """A constant, reduced modulo 2**width."""
    return make("const", width, value=value & mask(width))


def sym(name: str, width: int) -> Term:
    """A symbol: any word of ``width`` bits."""
    return make("sym", width, name=name)


TRUE = const(1, 1)
FALSE = const(0, 1)
