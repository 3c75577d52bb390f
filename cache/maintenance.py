"""What coprocessor instructions do to the caches (rule 12).

Source: ARM1136JF-S TRM (DDI 0211), chapter 3, registers c7 to c9; encodings of the ARM
Architecture Reference Manual, A8.8.98 (MCR). An operation that is not recognised leaves nothing
known about any cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.insn import Insn

__all__ = ["NOTHING", "UNKNOWN", "CacheOperation", "cache_operation"]


@dataclass(frozen=True, slots=True)
class CacheOperation:
    """Effects on what the caches are known to hold; ``lines`` may be written back by it.

    ``forget_i`` and ``forget_d`` drop all knowledge of L1; if it ``empties`` these caches, no line
    is in them afterwards. ``drop_i`` drops one instruction line at most, it is not known which.
    ``retranslates``: addresses outside memory of fixed translation may mean other memory
    afterwards. ``refetch``: what was fetched ahead is thrown away and fetched
    again. ``lines`` is None for every line of the data cache.
    """

    forget_i: bool = False
    forget_d: bool = False
    empties: bool = False
    drop_i: bool = False
    refetch: bool = False
    lines: int | None = 0
    retranslates: bool = False
    recognised: bool = True

    @property
    def touches_data(self) -> bool:
        """Whether the data cache changes, writes lines back, or is addressed in another way."""
        return self.forget_d or self.retranslates or self.lines != 0


NOTHING = CacheOperation()
RETRANSLATE = CacheOperation(retranslates=True)
UNKNOWN = CacheOperation(
    forget_i=True, forget_d=True, refetch=True, lines=None, retranslates=True, recognised=False
)

# mcr p15, opc1 = 0: (CRn, CRm, opc2). Registers without an entry fall to UNKNOWN.
OPERATIONS = {
    (7, 0, 4): NOTHING,  # wait for interrupt
    (7, 5, 0): CacheOperation(forget_i=True, empties=True),  # invalidate the instruction cache
    (7, 5, 1): CacheOperation(drop_i=True),  # ... one line, by address
    (7, 5, 2): CacheOperation(drop_i=True),  # ... one line, by set and way
    (7, 5, 4): CacheOperation(refetch=True),  # flush the prefetch buffer
    (7, 5, 6): NOTHING,  # flush the branch target cache
    (7, 5, 7): NOTHING,
    (7, 6, 0): CacheOperation(forget_d=True, empties=True),  # invalidate the data cache
    (7, 6, 1): CacheOperation(forget_d=True),
    (7, 6, 2): CacheOperation(forget_d=True),
    (7, 7, 0): CacheOperation(forget_i=True, forget_d=True, empties=True),  # invalidate both
    (7, 10, 0): CacheOperation(lines=None),  # clean the data cache; lines stay
    (7, 10, 1): CacheOperation(lines=1),
    (7, 10, 2): CacheOperation(lines=1),
    (7, 10, 4): NOTHING,  # data synchronisation barrier
    (7, 10, 5): NOTHING,  # data memory barrier
    (7, 11, 1): CacheOperation(lines=1),  # ARMv7: clean to the point of unification
    (7, 13, 1): CacheOperation(forget_i=True),  # prefetch an instruction line
    (7, 14, 0): CacheOperation(forget_d=True, empties=True, lines=None),  # clean and invalidate
    (7, 14, 1): CacheOperation(forget_d=True, lines=1),
    (7, 14, 2): CacheOperation(forget_d=True, lines=1),
}
# Whole registers whose writes leave the caches alone. Table base and context numbers are among
# them because only lines of fixed translation are ever known to be resident.
HARMLESS_WRITES = frozenset([2, 3, 5, 6, 8, 10, 13])
TRANSLATION = frozenset([2, 3, 8, 10, 13])  # tables, domains, TLBs, remapping, address space
DEBUG, SYSTEM = 14, 15
VFP = frozenset([10, 11])


def cache_operation(insn: Insn) -> CacheOperation:
    """The effect of ``insn`` on the caches; NOTHING for everything that is no coprocessor access.

    Loads and stores (ldc, stc) are data accesses and have no effect here.
    """
    if insn.mnemonic == "isb":
        return OPERATIONS[7, 5, 4]
    if insn.memory is not None or insn.mnemonic not in COPROCESSOR:
        return NOTHING
    word = insn.encoding
    coprocessor = word >> 8 & 15
    if coprocessor in VFP or coprocessor == DEBUG:
        return NOTHING
    if coprocessor != SYSTEM or insn.mnemonic in ("cdp", "mcrr"):
        return UNKNOWN
    if insn.mnemonic == "mrrc":
        return NOTHING
    opc1, crn, crm, opc2 = word >> 21 & 7, word >> 16 & 15, word & 15, word >> 5 & 7
    if insn.mnemonic == "mrc":
        return NOTHING if crn not in (7, 9) else UNKNOWN
    if crn == SYSTEM and crm == PERFORMANCE_MONITOR:
        return NOTHING
    if opc1 == 0 and crn in HARMLESS_WRITES:
        return RETRANSLATE if crn in TRANSLATION else NOTHING
    return OPERATIONS.get((crn, crm, opc2), UNKNOWN) if opc1 == 0 else UNKNOWN


COPROCESSOR = frozenset(["cdp", "mcr", "mcrr", "mrc", "mrrc"])
PERFORMANCE_MONITOR = 12  # c15,c12 of the ARM1136
