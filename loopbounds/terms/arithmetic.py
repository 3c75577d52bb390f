"""The concrete semantics of each operator of a term, which every back end must match."""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["BOOLEAN", "apply", "bit_count", "leading_zeros", "result_width", "signed"]

BOOLEAN = frozenset({"eq", "ult", "slt", "sborrow", "scarry", "not"})  # result is one bit wide


def signed(value: int, width: int) -> int:
    """The two's complement reading of a word."""
    return value - (1 << width) if value >> (width - 1) else value


def leading_zeros(value: int, width: int) -> int:
    """Zero bits above the highest one; ``width`` for 0."""
    return width - value.bit_length()


def bit_count(value: int, _width: int) -> int:
    """The number of bits that are one."""
    return value.bit_count()


def _shift(value: int, amount: int, width: int) -> int:
    return value << amount if amount < width else 0


def _arithmetic_shift(value: int, amount: int, width: int) -> int:
    return signed(value, width) >> min(amount, width - 1)


def _overflows(exact: int, width: int) -> bool:
    return not -(1 << (width - 1)) <= exact < 1 << (width - 1)


_OPERATORS: dict[str, Callable[[Sequence[int], int], int]] = {
    "and": lambda v, w: v[0] & v[1],
    "or": lambda v, w: v[0] | v[1],
    "xor": lambda v, w: v[0] ^ v[1],
    "not": lambda v, w: ~v[0],
    "mul": lambda v, w: v[0] * v[1],
    "udiv": lambda v, w: v[0] // v[1] if v[1] else 0,
    "urem": lambda v, w: v[0] % v[1] if v[1] else v[0],
    "shl": lambda v, w: _shift(v[0], v[1], w),
    "lshr": lambda v, w: v[0] >> v[1] if v[1] < w else 0,
    "ashr": lambda v, w: _arithmetic_shift(v[0], v[1], w),
    "clz": lambda v, w: leading_zeros(v[0], w),
    "popcount": lambda v, w: bit_count(v[0], w),
    "eq": lambda v, w: v[0] == v[1],
    "ult": lambda v, w: v[0] < v[1],
    "slt": lambda v, w: signed(v[0], w) < signed(v[1], w),
    "sborrow": lambda v, w: _overflows(signed(v[0], w) - signed(v[1], w), w),
    "scarry": lambda v, w: _overflows(signed(v[0], w) + signed(v[1], w), w),
}


def apply(op: str, values: Sequence[int], width: int) -> int:
    """``op`` on words of ``width`` bits; comparisons give 0 or 1. Raises KeyError if unknown."""
    return int(_OPERATORS[op](values, width)) & ((1 << result_width(op, [width])) - 1)


def result_width(op: str, widths: Sequence[int]) -> int:
    """Width of the result of ``op`` on arguments of these widths."""
    return 1 if op in BOOLEAN else widths[0]
