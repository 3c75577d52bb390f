"""The names of operations for the stages after decoding, where more than data flow counts.

They test ``Insn.operation``; mnemonics stay here, but for tables of execution times.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Operation", "operation_of"]


class Operation(Enum):
    """One member for each operation that a later stage tells from others."""

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
    INSTRUCTION_BARRIER = "isb"
    LOAD_WORD = "ldr"  # ldrt too
    MOVE = "mov"  # of a constant, a register or a shifted register
    OR = "orr"
    READ_STATUS = "mrs"
    RETURN_FROM_EXCEPTION = "rfe"
    SET_ENDIANNESS = "setend"
    STOP = "bkpt, udf"  # where control must not get
    STORE_RETURN_STATE = "srs"
    SUBTRACT = "sub"
    SUPERVISOR_CALL = "svc"
    TEST = "cmn, teq, tst"  # comparisons but cmp
    WRITE_STATUS = "msr"
    OTHER = ""


_NAMED = {name: operation for operation in Operation for name in operation.value.split(", ")}


def operation_of(mnemonic: str) -> Operation:
    """The operation of a base mnemonic."""
    return _NAMED.get(mnemonic, Operation.OTHER)
