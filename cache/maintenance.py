"""Effects of coprocessor instructions on the caches (rules 12 and 37).

The table of ``quoll.arm.system_registers`` states the effects of each register. A write has a
modelled effect, or no effect under the assumptions of the analysis, or is ``refused``: it may
switch a cache off, lock it, change the memory type of addresses, or lose stores that cannot be
named. An unrecognised write is refused too, and leaves nothing known in the abstract caches.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.coprocessor import DEBUG, SYSTEM, VFP, CoprocessorAction, coprocessor_operation
from quoll.arm.insn import Insn
from quoll.arm.operation import Operation
from quoll.arm.system_registers import UNRECOGNISED, SystemEffect, SystemWrite, system_write

__all__ = [
    "NOTHING",
    "UNKNOWN",
    "CacheOperation",
    "cache_operation",
    "invalidates_global",
    "refused",
]


@dataclass(frozen=True, slots=True)
class CacheOperation:
    """Effects of one operation on the abstract caches.

    ``forget_i`` and ``forget_d`` drop all knowledge of L1; if the operation ``empties`` these
    caches, they hold no line afterwards. ``drop_i`` drops at most one instruction line, any line,
    or (``by_address``) the line at the address in its register.
    ``retranslates``: addresses outside memory of fixed translation may mean other memory
    afterwards. ``refetch``: prefetched instructions are discarded and fetched again. ``lines``:
    number of lines that it may write back; None: every line of the data cache.
    """

    forget_i: bool = False
    forget_d: bool = False
    empties: bool = False
    drop_i: bool = False
    by_address: bool = False
    refetch: bool = False
    lines: int | None = 0
    retranslates: bool = False
    recognised: bool = True

    @property
    def touches_data(self) -> bool:
        """Whether the data cache changes, writes lines back, or gets another translation."""
        return self.forget_d or self.retranslates or self.lines != 0


NOTHING = CacheOperation()
UNKNOWN = CacheOperation(
    forget_i=True, forget_d=True, refetch=True, lines=None, retranslates=True, recognised=False
)
FLUSH = CacheOperation(refetch=True)  # the prefetch buffer

_FORGETS_INSTRUCTIONS = {
    SystemEffect.DROPS_ALL_INSTRUCTIONS,
    SystemEffect.FETCHES_INSTRUCTION_LINE,
}
_DROPS_INSTRUCTION = {
    SystemEffect.DROPS_INSTRUCTION_LINE,
    SystemEffect.DROPS_INSTRUCTION_ADDRESS,
}
_FORGETS_DATA = {SystemEffect.DROPS_ALL_DATA, SystemEffect.DROPS_DATA_LINE}
_EMPTIES = {SystemEffect.DROPS_ALL_INSTRUCTIONS, SystemEffect.DROPS_ALL_DATA}


def _of_row(row: SystemWrite) -> CacheOperation:
    """The effects of a write on the caches.

    Table base and context numbers leave the caches alone, because only lines of fixed translation
    are ever known to be resident.
    """
    effects = row.effects
    if row is UNRECOGNISED or not row.recognised:
        return UNKNOWN
    lines: int | None = 1 if SystemEffect.CLEANS_LINE in effects else 0
    return CacheOperation(
        forget_i=not effects.isdisjoint(_FORGETS_INSTRUCTIONS),
        forget_d=not effects.isdisjoint(_FORGETS_DATA),
        empties=not effects.isdisjoint(_EMPTIES),
        drop_i=not effects.isdisjoint(_DROPS_INSTRUCTION),
        by_address=SystemEffect.DROPS_INSTRUCTION_ADDRESS in effects,
        refetch=SystemEffect.REFETCHES in effects,
        lines=None if SystemEffect.CLEANS_ALL in effects else lines,
        retranslates=SystemEffect.CHANGES_TRANSLATION in effects,
    )


def cache_operation(insn: Insn) -> CacheOperation:
    """The effect of ``insn`` on the caches; NOTHING for any other than a coprocessor access."""
    if insn.operation is Operation.INSTRUCTION_BARRIER:
        return FLUSH
    row = system_write(insn)
    if row is not None:
        return _of_row(row)
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor in VFP or found.coprocessor == DEBUG:
        return NOTHING
    if found.coprocessor != SYSTEM:
        return UNKNOWN
    if found.action is CoprocessorAction.READ_PAIR or found.register is None:
        return NOTHING
    return NOTHING if found.register.crn not in (7, 9) else UNKNOWN


def refused(insn: Insn) -> str | None:
    """The name of the register that ``insn`` writes, if the write may violate an assumption."""
    row = system_write(insn)
    return None if row is None else row.refused


def invalidates_global(insn: Insn) -> bool:
    """Whether ``insn`` may drop global translations, not only one address space by its number."""
    row = system_write(insn)
    return row is not None and SystemEffect.DROPS_TRANSLATIONS in row.effects
