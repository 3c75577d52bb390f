"""The concrete meaning of each pure opcode, as a Python expression over unsigned integers.

One table serves constant folding and the interpreter. In an expression ``a`` and ``b`` are the
inputs, ``A`` is the width of ``a`` in bits, ``S`` its sign bit, ``B`` the width of ``b``, and
``M`` the mask of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from quoll.semantics.ops import OpCode

__all__ = ["EXPRESSIONS", "NAMESPACE", "evaluate", "expression"]

EXPRESSIONS = {
    OpCode.COPY: "a",
    OpCode.INT_EQUAL: "int(a == b)",
    OpCode.INT_NOTEQUAL: "int(a != b)",
    OpCode.INT_LESS: "int(a < b)",
    OpCode.INT_LESSEQUAL: "int(a <= b)",
    OpCode.INT_SLESS: "int((a ^ S) < (b ^ S))",
    OpCode.INT_SLESSEQUAL: "int((a ^ S) <= (b ^ S))",
    OpCode.INT_ZEXT: "a",
    OpCode.INT_SEXT: "((a ^ S) - S) & M",
    OpCode.INT_ADD: "(a + b) & M",
    OpCode.INT_SUB: "(a - b) & M",
    OpCode.INT_CARRY: "(a + b) >> A",
    OpCode.INT_SCARRY: "((a ^ (a + b)) & (b ^ (a + b)) & S) >> (A - 1)",
    OpCode.INT_SBORROW: "((a ^ b) & (a ^ (a - b)) & S) >> (A - 1)",
    OpCode.INT_2COMP: "-a & M",
    OpCode.INT_NEGATE: "a ^ M",
    OpCode.INT_XOR: "a ^ b",
    OpCode.INT_AND: "a & b",
    OpCode.INT_OR: "a | b",
    OpCode.INT_LEFT: "(a << b) & M if b < A else 0",
    OpCode.INT_RIGHT: "a >> b",
    OpCode.INT_SRIGHT: "(((a ^ S) - S) >> b) & M",
    OpCode.INT_MULT: "(a * b) & M",
    OpCode.INT_DIV: "a // b if b else 0",
    OpCode.INT_SDIV: "_quotient(a, b, S) & M",
    OpCode.INT_REM: "a % b if b else a",
    OpCode.INT_SREM: "(((a ^ S) - S) - _quotient(a, b, S) * ((b ^ S) - S)) & M",
    OpCode.BOOL_NEGATE: "a ^ 1",
    OpCode.BOOL_XOR: "a ^ b",
    OpCode.BOOL_AND: "a & b",
    OpCode.BOOL_OR: "a | b",
    OpCode.PIECE: "a << B | b",
    OpCode.SUBPIECE: "a >> 8 * b & M",
    OpCode.POPCOUNT: "a.bit_count()",
    OpCode.LZCOUNT: "A - a.bit_length()",
}


def _quotient(a: int, b: int, sign: int) -> int:
    """Signed division, rounding towards zero; 0 when dividing by 0."""
    x, y = (a ^ sign) - sign, (b ^ sign) - sign
    if y == 0:
        return 0
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


NAMESPACE: dict[str, object] = {"_quotient": _quotient}  # what expressions refer to


def expression(code: OpCode, inputs: list[str], sizes: list[int], out_size: int) -> str:
    """The expression for ``code`` over the texts ``inputs``; sizes are in bytes."""
    names = dict(zip("ab", inputs, strict=False))
    width = 8 * sizes[0]
    names["A"], names["S"] = str(width), f"{1 << width - 1:#x}"
    names["B"] = str(8 * sizes[1]) if len(sizes) > 1 else ""
    names["M"] = f"{(1 << 8 * out_size) - 1:#x}"
    words = _tokens(EXPRESSIONS[code])
    return "(" + "".join(names.get(word, word) for word in words) + ")"


@cache
def _tokens(text: str) -> tuple[str, ...]:
    words, word = [], ""
    for char in text:
        if char.isalnum() or char == "_":
            word += char
            continue
        words += [word, char]
        word = ""
    return (*words, word)


def evaluate(code: OpCode, values: list[int], sizes: list[int], out_size: int) -> int:
    """The value of a pure op on unsigned ``values``."""
    return _compiled(code, tuple(sizes), out_size)(*values)


@cache
def _compiled(code: OpCode, sizes: tuple[int, ...], out_size: int) -> Callable[..., int]:
    names = ["x", "y"][: len(sizes)]
    body = expression(code, names, list(sizes), out_size)
    function: Callable[..., int] = eval(f"lambda {', '.join(names)}: {body}", dict(NAMESPACE))
    return function
