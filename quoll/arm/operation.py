"""Operations by name, for stages after decoding that need more than the data flow.

They test ``Insn.operation``; only this module and the tables of execution times use mnemonics.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Operation", "operation_of"]


class Operation(Enum):
    """One member for each operation that a later stage distinguishes."""

    ADD = "add"
    AND = "and"
    BIT_CLEAR = "bic"
    BRANCH_EXCHANGE = "bx"
    CHANGE_STATE = "cps"  # masks of interrupts, the processor mode
    COMPARE = "cmp"
    COMPARE_AND_BRANCH = "cbz, cbnz"
    COUNT_LEADING_ZEROS = "clz"
    DATA_BARRIER = "dmb, dsb"
    EXCEPTION_CALL = "hvc, smc"
    EXCLUSIVE_OR = "eor"
    HINT = "hint, nop, sev, sevl, yield"
    INSTRUCTION_BARRIER = "isb"
    LOAD_PAIR = "ldrd"
    LOAD_WORD = "ldr"  # ldrt too
    MOVE = "mov"  # of a constant, a register or a shifted register
    OR = "orr"
    READ_STATUS = "mrs"
    RETURN_FROM_EXCEPTION = "rfe"
    SET_ENDIANNESS = "setend"
    STOP = "bkpt, udf"  # control must never get here
    STORE_RETURN_STATE = "srs"
    SUBTRACT = "sub"
    SUPERVISOR_CALL = "svc"
    TEST = "cmn, teq, tst"  # all comparisons except cmp
    WRITE_STATUS = "msr"
    OTHER = ""


_NAMED = {name: operation for operation in Operation for name in operation.value.split(", ")}


def operation_of(mnemonic: str) -> Operation:
    """The operation of a base mnemonic."""
    return _NAMED.get(mnemonic, Operation.OTHER)
