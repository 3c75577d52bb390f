"""Sums and differences, and the flags that instructions make from their operands.

C, V and Z of a comparison are more precise on its operands than on their difference, so this module
finds such pairs among the ops of one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quoll.semantics.ops import Op, OpCode, Space, Var

__all__ = ["DoubleWordRole", "aligns_target", "find_roles", "is_branch"]

Ops = Sequence[Op | None]
ALIGNMENTS = (0xFFFFFFFE, 0xFFFFFFFC)


@dataclass(frozen=True, slots=True)
class DoubleWordRole:
    """The role of an op in sum or difference number ``sum``: "sum", "zero", "flag", "absent"."""

    kind: str
    sum: int
    deferred: tuple[Op, ...] = ()  # flags that the instruction computes before the sum


FLAGS_OF = {
    OpCode.INT_SUB: frozenset([OpCode.INT_SBORROW]),
    OpCode.INT_ADD: frozenset([OpCode.INT_CARRY, OpCode.INT_SCARRY]),
}


def is_branch(op: Op) -> bool:
    """Whether ``op`` moves control inside its instruction."""
    return op.code in (OpCode.BRANCH, OpCode.CBRANCH)


def find_roles(ops: Ops, start: int) -> dict[int, DoubleWordRole]:
    """The roles of sums and differences of words whose operands determine a flag."""
    roles: dict[int, DoubleWordRole] = {}
    for number in range(start, len(ops)):
        op = ops[number]
        if op is None or op.code not in FLAGS_OF or op.out is None or op.out.size != 4:
            continue
        deferred: list[Op] = []
        found: dict[int, DoubleWordRole] = {}
        for other in range(start, len(ops)):
            flag = ops[other]
            if flag is None or other in roles:
                continue
            if flag.code in FLAGS_OF[op.code] and flag.ins == op.ins:
                if other < number and _movable(ops, other, number):
                    deferred.append(flag)
                    found[other] = DoubleWordRole("absent", number)
                elif other > number and not _written(ops, number, other, op.ins):
                    found[other] = DoubleWordRole("flag", number)
            elif (
                other > number
                and op.code is OpCode.INT_SUB
                and _tests_zero(flag, op.out)
                and not _written(ops, number + 1, other, (op.out,))
            ):
                found[other] = DoubleWordRole("zero", number)
        if found:
            roles |= found
            roles[number] = DoubleWordRole("sum", number, tuple(deferred))
    return roles


def _tests_zero(op: Op, value: Var) -> bool:
    return op.code is OpCode.INT_EQUAL and op.ins == (value, Var(Space.CONST, 0, 4))


def _movable(ops: Ops, low: int, high: int) -> bool:
    """Whether the op at ``low`` may be computed right after the op at ``high`` instead."""
    op = ops[low]
    assert op is not None
    assert op.out is not None
    reads = any(other is not None and op.out in other.ins for other in ops[low + 1 : high + 1])
    return not reads and not _written(ops, low + 1, high, (*op.ins, op.out))


def _written(ops: Ops, low: int, high: int, wanted: tuple[Var, ...]) -> bool:
    """Whether an op from ``low`` to before ``high`` writes one of ``wanted``, or control forks."""
    for op in ops[low:high]:
        if op is not None and (is_branch(op) or (op.out is not None and op.out in wanted)):
            return True
    return False


def aligns_target(ops: Sequence[Op | None], number: int) -> bool:
    """Whether the op clears the low bits of the address of a GOTO at the end."""
    op, last = ops[number], ops[-1]
    if op is None or op.code is not OpCode.INT_AND or op.ins[1].offset not in ALIGNMENTS:
        return False
    goes = last is not None and last.code is OpCode.GOTO and last.ins[0] == op.out
    return goes and op.out is not None and not _written(ops, number + 1, len(ops), (op.out,))
