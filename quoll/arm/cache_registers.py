"""Instructions that read the registers which identify caches, or select a cache for them.

``quoll.image.cache_words`` has the words that a platform states.
"""

from __future__ import annotations

from enum import Enum, auto

from quoll.arm.coprocessor import (
    SYSTEM,
    CoprocessorAction,
    CoprocessorRegister,
    coprocessor_operation,
)
from quoll.arm.insn import Insn
from quoll.arm.system_registers import UNRECOGNISED, system_write

__all__ = ["CacheRegister", "may_select", "read_by", "selected_by"]


class CacheRegister(Enum):
    """A register that identifies caches."""

    LEVELS = auto()  # CLIDR
    SIZES = auto()  # CCSIDR


_READ = {
    CoprocessorRegister(1, 0, 0, 1): CacheRegister.LEVELS,
    CoprocessorRegister(1, 0, 0, 0): CacheRegister.SIZES,
}
_CSSELR = CoprocessorRegister(2, 0, 0, 0)


def read_by(insn: Insn) -> CacheRegister | None:
    """The register that ``insn`` reads; None if it reads none of these."""
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor != SYSTEM or found.register is None:
        return None
    return _READ.get(found.register) if found.action is CoprocessorAction.READ else None


def selected_by(insn: Insn) -> int | None:
    """The general register that ``insn`` writes to CSSELR; None for another instruction."""
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor != SYSTEM or found.written != _CSSELR:
        return None
    return insn.encoding >> 12 & 15


def may_select(insn: Insn) -> bool:
    """Whether ``insn`` may write CSSELR."""
    return selected_by(insn) is not None or system_write(insn) is UNRECOGNISED
