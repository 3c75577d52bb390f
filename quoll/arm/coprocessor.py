"""Transfers to and from coprocessors. Number 15 holds the registers of caches and translation.

Encodings: ARM Architecture Reference Manual, A8.8.28 (CDP), A8.8.98 (MCR), A8.8.99 (MCRR),
A8.8.107 (MRC) and A8.8.108 (MRRC). ldc and stc are data accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from quoll.arm.insn import Insn

__all__ = [
    "DEBUG",
    "SYSTEM",
    "VFP",
    "CoprocessorAction",
    "CoprocessorOperation",
    "CoprocessorRegister",
    "coprocessor_operation",
]

DEBUG, SYSTEM = 14, 15  # numbers of coprocessors
VFP = frozenset([10, 11])


class CoprocessorAction(Enum):
    """The kind of transfer, by mnemonic; mcr2 and similar forms count as mcr."""

    OPERATE = "cdp"
    READ = "mrc"
    READ_PAIR = "mrrc"
    WRITE = "mcr"
    WRITE_PAIR = "mcrr"


class CoprocessorRegister(NamedTuple):
    """A register of a coprocessor, in the order of the assembler."""

    opc1: int
    crn: int
    crm: int
    opc2: int


@dataclass(frozen=True, slots=True)
class CoprocessorOperation:
    """A coprocessor access; ``register`` is the one that mcr or mrc transfers, else None."""

    coprocessor: int
    action: CoprocessorAction
    register: CoprocessorRegister | None

    @property
    def written(self) -> CoprocessorRegister | None:
        """The register that mcr writes; None for the others."""
        return self.register if self.action is CoprocessorAction.WRITE else None


_ACTIONS = {action.value: action for action in CoprocessorAction}
_WITH_REGISTER = (CoprocessorAction.READ, CoprocessorAction.WRITE)


def coprocessor_operation(insn: Insn) -> CoprocessorOperation | None:
    """The coprocessor operation of ``insn``; None for other instructions, ldc and stc."""
    action = _ACTIONS.get(insn.mnemonic)
    if action is None:
        return None
    word = insn.encoding
    register = None
    if action in _WITH_REGISTER:
        register = CoprocessorRegister(word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7)
    return CoprocessorOperation(word >> 8 & 15, action, register)
