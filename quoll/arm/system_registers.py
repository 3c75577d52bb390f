"""Effects of writes to the registers of coprocessor 15: one row a register, for every stage.

``SYSTEM_WRITES`` has the encodings of single registers and of ranges, ``REFUSED_GROUPS`` the
encodings of groups that no stage models. ``system_write`` finds the row of an instruction; any
other register is ``UNRECOGNISED``, which may do anything. The effects of a row determine the cache
model (``cache.maintenance``), the semantics (``quoll.semantics.system``) and the refusals.

Sources: ARM Architecture Reference Manual (DDI 0406C), ARM1136JF-S TRM (DDI 0211), Cortex-A8 TRM
(DDI 0344). Encodings: DDI 0406C, A8.8.98 (MCR) and A8.8.99 (MCRR).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from quoll.arm.coprocessor import (
    DEBUG,
    SYSTEM,
    VFP,
    CoprocessorAction,
    CoprocessorRegister,
    coprocessor_operation,
)
from quoll.arm.insn import Insn

__all__ = [
    "DISCARDED",
    "LINE",
    "REFUSED_GROUPS",
    "SYSTEM_RANGES",
    "SYSTEM_WRITES",
    "UNRECOGNISED",
    "SystemEffect",
    "SystemWrite",
    "changes_translation",
    "discards_any_line",
    "discards_line",
    "system_write",
]

LINE = 64  # bytes of the largest line of a data cache of any core (a power of two)
DISCARDED = 2 * LINE - 1  # bytes around an address of unknown position in its line


class SystemEffect(Enum):
    """One effect of a write on the machine besides changing a register."""

    CHANGES_TRANSLATION = "addresses without a fixed translation may name other memory afterwards"
    DROPS_TRANSLATIONS = "translations of every address space may leave the TLBs"
    DISCARDS_LINE = "the data line at the address is invalidated: stores that are only there vanish"
    DISCARDS_ALL_LINES = "every data line may be invalidated without being written back"
    DROPS_DATA_LINE = "one data line leaves the cache"
    DROPS_ALL_DATA = "no line is in the data cache afterwards"
    CLEANS_LINE = "one dirty line is written back"
    CLEANS_ALL = "every dirty line is written back"
    DROPS_INSTRUCTION_LINE = "one instruction line leaves the cache"
    DROPS_INSTRUCTION_ADDRESS = "the instruction line at the address leaves the cache"
    DROPS_ALL_INSTRUCTIONS = "no line is in the instruction cache afterwards"
    FETCHES_INSTRUCTION_LINE = "one line is filled into the instruction cache"
    REFETCHES = "prefetched instructions are discarded and fetched again"

    __hash__ = object.__hash__  # in C


@dataclass(frozen=True, slots=True)
class SystemWrite:
    """A write to a register. ``refused``: the state that it may change, if no stage models it."""

    name: str
    source: str  # manual and section
    effects: frozenset[SystemEffect] = frozenset()
    refused: str | None = None

    @property
    def recognised(self) -> bool:
        """Whether the effect of the write is known."""
        return bool(self.effects) or self.refused is None


_CACHES = "DDI 0406C B4.2.1; DDI 0211 3.3.17"
_TLBS = "DDI 0406C B4.2.2"
_REGISTERS = "DDI 0406C B3.17.2"
_ARM1136 = "DDI 0211 3.3.17"
_LOST = "which loses dirty lines: clean the lines first, or by address"
_E = SystemEffect
_DISCARDS = frozenset((_E.DISCARDS_LINE, _E.DROPS_DATA_LINE))
_CLEANS_AND_DROPS = frozenset((_E.CLEANS_LINE, _E.DROPS_DATA_LINE))
_MOVES = frozenset((_E.CHANGES_TRANSLATION,))
_MOVES_ALL = frozenset((_E.CHANGES_TRANSLATION, _E.DROPS_TRANSLATIONS))


def _at(opc1: int, crn: int, crm: int, opc2: int) -> CoprocessorRegister:
    return CoprocessorRegister(opc1, crn, crm, opc2)


def _one(effect: SystemEffect) -> frozenset[SystemEffect]:
    return frozenset((effect,))


SYSTEM_WRITES: Mapping[CoprocessorRegister, SystemWrite] = {
    _at(0, 7, 0, 4): SystemWrite("wait for interrupt", _ARM1136),
    _at(0, 7, 5, 0): SystemWrite("ICIALLU", _CACHES, _one(_E.DROPS_ALL_INSTRUCTIONS)),
    _at(0, 7, 5, 1): SystemWrite("ICIMVAU", _CACHES, _one(_E.DROPS_INSTRUCTION_ADDRESS)),
    _at(0, 7, 5, 2): SystemWrite(
        "instruction line by set and way", _ARM1136, _one(_E.DROPS_INSTRUCTION_LINE)
    ),
    _at(0, 7, 5, 4): SystemWrite("flush of the prefetch buffer", _CACHES, _one(_E.REFETCHES)),
    _at(0, 7, 5, 6): SystemWrite("BPIALL", _CACHES),
    _at(0, 7, 5, 7): SystemWrite("BPIMVA", _CACHES),
    _at(0, 7, 6, 0): SystemWrite(
        "invalidation of the data cache",
        _ARM1136,
        frozenset((_E.DISCARDS_ALL_LINES, _E.DROPS_ALL_DATA)),
        f"the invalidation of the whole data cache, {_LOST}",
    ),
    _at(0, 7, 6, 1): SystemWrite("DCIMVAC", _CACHES, _DISCARDS),
    _at(0, 7, 6, 2): SystemWrite(
        "DCISW",
        _CACHES,
        frozenset((_E.DISCARDS_ALL_LINES, _E.DROPS_DATA_LINE)),
        f"the invalidation of a data line by set and way, {_LOST}",
    ),
    _at(0, 7, 7, 0): SystemWrite(
        "invalidation of both caches",
        _ARM1136,
        frozenset((_E.DISCARDS_ALL_LINES, _E.DROPS_ALL_DATA, _E.DROPS_ALL_INSTRUCTIONS)),
        f"the invalidation of both caches, {_LOST}",
    ),
    _at(0, 7, 10, 0): SystemWrite("clean of the data cache", _ARM1136, _one(_E.CLEANS_ALL)),
    _at(0, 7, 10, 1): SystemWrite("DCCMVAC", _CACHES, _one(_E.CLEANS_LINE)),
    _at(0, 7, 10, 2): SystemWrite("DCCSW", _CACHES, _one(_E.CLEANS_LINE)),
    _at(0, 7, 10, 4): SystemWrite("data synchronisation barrier", _CACHES),
    _at(0, 7, 10, 5): SystemWrite("data memory barrier", _CACHES),
    _at(0, 7, 11, 1): SystemWrite("DCCMVAU", _CACHES, _one(_E.CLEANS_LINE)),
    _at(0, 7, 13, 1): SystemWrite(
        "prefetch of an instruction line", _ARM1136, _one(_E.FETCHES_INSTRUCTION_LINE)
    ),
    _at(0, 7, 14, 0): SystemWrite(
        "clean and invalidation of the data cache",
        _ARM1136,
        frozenset((_E.CLEANS_ALL, _E.DROPS_ALL_DATA)),
    ),
    _at(0, 7, 14, 1): SystemWrite("DCCIMVAC", _CACHES, _CLEANS_AND_DROPS),
    _at(0, 7, 14, 2): SystemWrite("DCCISW", _CACHES, _CLEANS_AND_DROPS),
    _at(0, 1, 0, 0): SystemWrite(
        "SCTLR",
        _REGISTERS,
        refused="SCTLR, which switches caches, MMU and branch prediction",
    ),
    _at(0, 1, 0, 1): SystemWrite(
        "ACTLR", _REGISTERS, refused="ACTLR, which switches features of the core"
    ),
    _at(0, 1, 0, 2): SystemWrite("CPACR", _REGISTERS),
    _at(0, 2, 0, 0): SystemWrite("TTBR0", _REGISTERS, _MOVES),
    _at(0, 2, 0, 1): SystemWrite(
        "TTBR1", _REGISTERS, refused="TTBR1, which may translate the kernel itself"
    ),
    _at(0, 2, 0, 2): SystemWrite(
        "TTBCR",
        _REGISTERS,
        refused="TTBCR, which chooses the table that translates the kernel itself",
    ),
    _at(0, 3, 0, 0): SystemWrite("DACR", _REGISTERS, _MOVES),
    _at(0, 5, 0, 0): SystemWrite("DFSR", _REGISTERS),
    _at(0, 5, 0, 1): SystemWrite("IFSR", _REGISTERS),
    _at(0, 6, 0, 0): SystemWrite("DFAR", _REGISTERS),
    _at(0, 6, 0, 1): SystemWrite("watchpoint fault address", "DDI 0211 3.2"),
    _at(0, 6, 0, 2): SystemWrite("IFAR", _REGISTERS),
    **{
        _at(0, 8, crm, op): SystemWrite(
            f"invalidation of {whose} {tlb}", _TLBS, _MOVES if op == 2 else _MOVES_ALL
        )
        for crm, tlb in ((5, "instruction TLB"), (6, "data TLB"), (7, "unified TLB"))
        for op, whose in enumerate(
            ("all of the", "one page of the", "one address space of the", "one page, any space,")
        )
    },
    **{
        _at(0, 9, crm, op): SystemWrite("performance monitors", "DDI 0406C B3.18.10")
        for crm in (12, 13, 14)
        for op in range(8)
    },
    _at(0, 13, 0, 0): SystemWrite(
        "FCSEIDR", _REGISTERS, refused="the FCSE process number, which moves addresses"
    ),
    _at(0, 13, 0, 1): SystemWrite("CONTEXTIDR", _REGISTERS, _MOVES),
    _at(0, 13, 0, 2): SystemWrite("TPIDRURW", _REGISTERS),
    _at(0, 13, 0, 3): SystemWrite("TPIDRURO", _REGISTERS),
    _at(0, 13, 0, 4): SystemWrite("TPIDRPRW", _REGISTERS),
    **{_at(0, 15, 12, op): SystemWrite("counters", "DDI 0211 3.2") for op in range(4)},
    _at(1, 9, 0, 0): SystemWrite(
        "L2 lockdown", "DDI 0344 3.2", refused="the lockdown register of the level-2 cache"
    ),
    _at(1, 9, 0, 2): SystemWrite(
        "L2 control", "DDI 0344 3.2", refused="the control register of the level-2 cache"
    ),
    _at(2, 0, 0, 0): SystemWrite("CSSELR", _REGISTERS),
}
"""By register, as mcr writes it."""

# Other registers are refused by one of these: opc1, CRn and CRm; None means any CRm.
REFUSED_GROUPS: Mapping[tuple[int, int, int | None], SystemWrite] = {
    key: SystemWrite(text, _REGISTERS, refused=text)
    for key, text in (
        ((0, 1, 1), "a register of the security extensions"),
        ((0, 9, 0), "a cache lockdown register"),
        ((0, 9, 1), "a region register of tightly coupled memory"),
        ((0, 9, 2), "a selection register of tightly coupled memory"),
        ((0, 10, 2), "a memory remap register, which gives addresses other memory types"),
        ((0, 10, None), "a TLB lockdown register"),
        (
            (0, 11, None),
            "a register of DMA or preloading, which fill memory and caches in the background",
        ),
        ((0, 12, 0), "a vector base register"),
        (
            (0, 15, None),
            "a register of the implementation (remapping, cache and TLB debugging)",
        ),
    )
}

_RANGE = "which takes time by the length of the range, in the background: do it line by line"
SYSTEM_RANGES: Mapping[tuple[int, int], SystemWrite] = {
    (opc1, crm): SystemWrite(name, _ARM1136, refused=f"{text}, {_RANGE}")
    for opc1, crm, name, text in (
        (0, 5, "IIMCRR", "the invalidation of a range of instructions"),
        (0, 6, "DIMCRR", "the invalidation of a range of data"),
        (0, 12, "DCMCRR", "the clean of a range of data"),
        (0, 14, "DCIMCRR", "the clean and invalidation of a range of data"),
        (1, 12, "IPMCRR", "the prefetch of a range of instructions"),
        (2, 12, "DPMCRR", "the prefetch of a range of data"),
    )
}
"""By opc1 and CRm, as mcrr writes it."""

UNRECOGNISED = SystemWrite(
    "another register",
    "none",
    frozenset(SystemEffect),
    "a register whose effect on caches and translation is not known",
)


def system_write(insn: Insn) -> SystemWrite | None:
    """The row of ``insn``; None if it writes no system register.

    Reads, accesses to the coprocessors of debug and VFP, and data accesses (ldc, stc) write none.
    """
    found = coprocessor_operation(insn)
    if found is None or found.coprocessor in VFP or found.coprocessor == DEBUG:
        return None
    if found.action in (CoprocessorAction.READ, CoprocessorAction.READ_PAIR):
        return None
    if found.coprocessor != SYSTEM:
        return UNRECOGNISED
    if found.action is CoprocessorAction.WRITE_PAIR:
        word = insn.encoding
        return SYSTEM_RANGES.get((word >> 4 & 15, word & 15), UNRECOGNISED)
    if found.written is None:
        return UNRECOGNISED
    opc1, crn, crm, _ = found.written
    for row in (
        SYSTEM_WRITES.get(found.written),
        REFUSED_GROUPS.get((opc1, crn, crm)),
        REFUSED_GROUPS.get((opc1, crn, None)),
    ):
        if row is not None:
            return row
    return UNRECOGNISED


def changes_translation(insn: Insn) -> bool:
    """Whether addresses without a fixed translation may name other memory after ``insn``.

    Every refused write may do so.
    """
    row = system_write(insn)
    if row is None:
        return False
    return row.refused is not None or SystemEffect.CHANGES_TRANSLATION in row.effects


def discards_line(insn: Insn) -> bool:
    """Whether ``insn`` invalidates the data line at an address without writing it back."""
    return _does(insn, SystemEffect.DISCARDS_LINE)


def discards_any_line(insn: Insn) -> bool:
    """Whether ``insn`` may invalidate any data line without writing it back."""
    return _does(insn, SystemEffect.DISCARDS_ALL_LINES)


def _does(insn: Insn, effect: SystemEffect) -> bool:
    row = system_write(insn)
    return row is not None and effect in row.effects
