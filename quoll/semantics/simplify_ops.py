"""Shorter ops for the same effect: constants folded, dead temporaries removed.

SLEIGH computes a shifter carry and all four flags for instructions that set none; without this,
two thirds of the ops would be dead weight in every analysis. Registers, memory, the order of
accesses and control stay as they are.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate

from quoll.semantics.operations import OPERATIONS, evaluate
from quoll.semantics.ops import Op, OpCode, Space, Var, const

__all__ = ["simplify"]

BRANCHES = (OpCode.BRANCH, OpCode.CBRANCH)
CONTROL_OPS = (OpCode.BRANCH, OpCode.GOTO, OpCode.TRAP)


def simplify(ops: list[Op]) -> tuple[Op, ...]:
    """Ops with the effect of ``ops``; branch targets are renumbered."""
    return tuple(_without_dead(_merged(_folded(ops))))


def _labels(ops: list[Op]) -> set[int]:
    return {op.ins[0].offset for op in ops if op.code in BRANCHES}


def _folded(ops: list[Op]) -> list[Op]:
    """Replace temporaries of known value by constants, up to the next label."""
    labels = _labels(ops)
    known: dict[Var, Var] = {}
    folded: list[Op] = []
    for index, op in enumerate(ops):
        if index in labels:
            known.clear()
        if op.code not in BRANCHES:
            op = Op(op.code, op.out, tuple(known.get(var, var) for var in op.ins))
        elif op.code is OpCode.CBRANCH:
            op = Op(op.code, None, (op.ins[0], known.get(op.ins[1], op.ins[1])))
        out = op.out
        if out is not None:
            known.pop(out, None)
            op = _evaluated(op, out)
            if op.code is OpCode.COPY and _constant(op) and out.space is Space.TEMP:
                known[out] = op.ins[0]
        folded.append(op)
    return folded


def _constant(op: Op) -> bool:
    return all(var.space is Space.CONST for var in op.ins)


def _evaluated(op: Op, out: Var) -> Op:
    """A copy of the result, if ``op`` is pure and yields a constant or its first input."""
    if op.code not in OPERATIONS:
        return op
    if _constant(op):
        values, sizes = [var.offset for var in op.ins], [var.size for var in op.ins]
        return Op(OpCode.COPY, out, (const(evaluate(op.code, values, sizes, out.size), out.size),))
    if op.code in (OpCode.INT_ADD, OpCode.INT_SUB, OpCode.INT_OR) and op.ins[1] == const(0):
        return Op(OpCode.COPY, out, op.ins[:1])
    return op


def _merged(ops: list[Op]) -> list[Op]:
    """Let an op write a variable itself, if its temporary is only copied there later.

    Holds if nothing between the two touches the variable or transfers control.
    """
    uses: dict[Var, int] = {}
    for op in ops:
        for var in {*op.ins, *([op.out] if op.out else [])}:
            uses[var] = uses.get(var, 0) + 1
    labels = _labels(ops)
    merged = list(ops)
    for index, op in enumerate(ops):
        if op.code is not OpCode.COPY or op.out is None or op.ins[0].space is not Space.TEMP:
            continue
        source = op.ins[0]
        start = _definition(merged, index, source, op.out, labels)
        if uses[source] == 2 and start is not None:
            merged[start] = Op(merged[start].code, op.out, merged[start].ins)
            merged[index] = Op(OpCode.COPY, source, (op.out,))  # dead now
    return merged


def _definition(
    ops: list[Op], index: int, source: Var, target: Var, labels: set[int]
) -> int | None:
    """The index where ``source`` is set, if ``target`` can be set there instead of at ``index``."""
    for at in range(index - 1, -1, -1):
        op = ops[at]
        if at + 1 in labels or op.code in BRANCHES or op.code in CONTROL_OPS:
            return None
        if op.out == source:
            return at
        if op.out == target or target in op.ins:
            return None
    return None


def _without_dead(ops: list[Op]) -> list[Op]:
    """Drop ops whose temporary is never read, and self-copies, until none is left."""
    while True:
        uses = Counter(var for op in ops for var in op.ins)
        live = [True] * len(ops)
        for index in range(len(ops) - 1, -1, -1):  # backwards: uses follow definitions
            if _dead(ops[index], uses):
                live[index] = False
                uses.subtract(ops[index].ins)
        if all(live):
            return ops
        moved = [0, *accumulate(live)]
        ops = [_moved(op, moved) for op, is_live in zip(ops, live, strict=True) if is_live]


def _dead(op: Op, uses: Counter[Var]) -> bool:
    if op.out is None or op.code is OpCode.LOAD:
        return False  # a load is an access, read or not
    if op.out.space is Space.TEMP:
        return not uses[op.out]
    return op.code is OpCode.COPY and op.ins[0] == op.out


def _moved(op: Op, moved: list[int]) -> Op:
    if op.code not in BRANCHES:
        return op
    return Op(op.code, None, (const(moved[op.ins[0].offset]), *op.ins[1:]))
