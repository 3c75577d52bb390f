"""What coprocessor instructions do to the caches (rules 12 and 37).

Source: ARM1136JF-S TRM (DDI 0211), chapter 3; Cortex-A8 TRM (DDI 0344), chapter 3; encodings of the
ARM Architecture Reference Manual, A8.8.98 (MCR). Every write is one of three: its effect is
modelled, or it has none on what the analysis presupposes, or it is ``refused``: it may switch a
cache off, lock it, or give addresses another memory type. A write that is not recognised is
refused too; to the abstract caches it leaves nothing known.
"""

from __future__ import annotations

from dataclasses import dataclass

from quoll.arm.coprocessor import DEBUG, SYSTEM, VFP, CoprocessorAction, coprocessor_operation
from quoll.arm.insn import Insn
from quoll.arm.operation import Operation

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


TLB = 8  # CRn
BY_NUMBER = 2  # opc2 of the invalidation of one address space

NOTHING = CacheOperation()
RETRANSLATE = CacheOperation(retranslates=True)
UNKNOWN = CacheOperation(
    forget_i=True, forget_d=True, refetch=True, lines=None, retranslates=True, recognised=False
)
FLUSH = CacheOperation(refetch=True)  # of the prefetch buffer

# Writes of registers of coprocessor 15 (opc1, CRn, CRm, opc2) that are understood; others fall to
# UNKNOWN. Table base and context numbers leave the caches alone, because only lines of fixed
# translation are ever known to be resident.
WRITES = {
    (0, 7, 0, 4): NOTHING,  # wait for interrupt
    (0, 7, 5, 0): CacheOperation(forget_i=True, empties=True),  # invalidate the instruction cache
    (0, 7, 5, 1): CacheOperation(drop_i=True),  # ... one line, by address
    (0, 7, 5, 2): CacheOperation(drop_i=True),  # ... one line, by set and way
    (0, 7, 5, 4): FLUSH,
    (0, 7, 5, 6): NOTHING,  # flush the branch target cache
    (0, 7, 5, 7): NOTHING,
    (0, 7, 6, 0): CacheOperation(forget_d=True, empties=True),  # invalidate the data cache
    (0, 7, 6, 1): CacheOperation(forget_d=True),
    (0, 7, 6, 2): CacheOperation(forget_d=True),
    (0, 7, 7, 0): CacheOperation(forget_i=True, forget_d=True, empties=True),  # invalidate both
    (0, 7, 10, 0): CacheOperation(lines=None),  # clean the data cache; lines stay
    (0, 7, 10, 1): CacheOperation(lines=1),
    (0, 7, 10, 2): CacheOperation(lines=1),
    (0, 7, 10, 4): NOTHING,  # data synchronisation barrier
    (0, 7, 10, 5): NOTHING,  # data memory barrier
    (0, 7, 11, 1): CacheOperation(lines=1),  # ARMv7: clean to the point of unification
    (0, 7, 13, 1): CacheOperation(forget_i=True),  # prefetch an instruction line
    (0, 7, 14, 0): CacheOperation(forget_d=True, empties=True, lines=None),  # clean and invalidate
    (0, 7, 14, 1): CacheOperation(forget_d=True, lines=1),
    (0, 7, 14, 2): CacheOperation(forget_d=True, lines=1),
    (0, 1, 0, 2): NOTHING,  # CPACR: which coprocessors may be used
    (0, 2, 0, 0): RETRANSLATE,  # TTBR0
    (0, 3, 0, 0): RETRANSLATE,  # DACR: permissions of domains
    **{(0, 5, 0, op): NOTHING for op in (0, 1)},  # fault status
    **{(0, 6, 0, op): NOTHING for op in (0, 1, 2)},  # fault address
    **{(0, 8, crm, op): RETRANSLATE for crm in (5, 6, 7) for op in (0, 1, 2, 3)},  # TLBs
    **{(0, 9, crm, op): NOTHING for crm in (12, 13, 14) for op in range(8)},  # ARMv7 counters
    (0, 13, 0, 1): RETRANSLATE,  # CONTEXTIDR
    **{(0, 13, 0, op): NOTHING for op in (2, 3, 4)},  # thread registers
    **{(0, 15, 12, op): NOTHING for op in range(4)},  # counters of the ARM1136
    (2, 0, 0, 0): NOTHING,  # CSSELR: which cache CCSIDR describes
}
# What writes that are refused may do; None stands for any number.
REFUSED: dict[tuple[int, int, int | None, int | None], str] = {
    (0, 1, 0, 0): "SCTLR, which switches caches, MMU and branch prediction",
    (0, 1, 0, 1): "ACTLR, which switches features of the core",
    (0, 1, 1, None): "a register of the security extensions",
    (0, 2, 0, 1): "TTBR1, which may translate the kernel itself",
    (0, 2, 0, 2): "TTBCR, which chooses the table that translates the kernel itself",
    (0, 9, 0, None): "a cache lockdown register",
    (0, 9, 1, None): "a region register of tightly coupled memory",
    (0, 9, 2, None): "a selection register of tightly coupled memory",
    (1, 9, 0, 0): "the lockdown register of the level-2 cache",
    (1, 9, 0, 2): "the control register of the level-2 cache",
    (0, 10, 2, None): "a memory remap register, which gives addresses other memory types",
    (0, 10, None, None): "a TLB lockdown register",
    (0, 11, None, None): "a register of DMA or preloading, which fill memory and caches meanwhile",
    (0, 12, 0, None): "a vector base register",
    (0, 13, 0, 0): "the FCSE process number, which moves addresses",
    (0, 15, None, None): "a register of the implementation (remapping, cache and TLB debugging)",
}


def cache_operation(insn: Insn) -> CacheOperation:
    """The effect of ``insn`` on the caches; NOTHING for everything that is no coprocessor access.

    Loads and stores (ldc, stc) are data accesses and have no effect here.
    """
    if insn.operation is Operation.INSTRUCTION_BARRIER:
        return FLUSH
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor in VFP or found.coprocessor == DEBUG:
        return NOTHING
    if found.coprocessor != SYSTEM:
        return UNKNOWN
    match found.action:
        case CoprocessorAction.READ_PAIR:
            return NOTHING
        case CoprocessorAction.READ if found.register is not None:
            return NOTHING if found.register.crn not in (7, 9) else UNKNOWN
        case CoprocessorAction.WRITE if found.register is not None:
            return WRITES.get(found.register, UNKNOWN)
    return UNKNOWN


def refused(insn: Insn) -> str | None:
    """What ``insn`` writes, if that may change what the analysis presupposes of the machine."""
    found = coprocessor_operation(insn)
    if found is None or found.action is CoprocessorAction.READ:
        return None
    if cache_operation(insn) is not UNKNOWN:
        return None
    if found.coprocessor == SYSTEM and found.written is not None:
        opc1, crn, crm, opc2 = found.written
        for key in ((opc1, crn, crm, opc2), (opc1, crn, crm, None), (opc1, crn, None, None)):
            if key in REFUSED:
                return REFUSED[key]
    return "a register whose effect on caches and translation is not known"


def invalidates_global(insn: Insn) -> bool:
    """Whether ``insn`` may drop translations of all address spaces: not one by its number."""
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor != SYSTEM or found.written is None:
        return False
    return found.written.crn == TLB and found.written.opc2 != BY_NUMBER
