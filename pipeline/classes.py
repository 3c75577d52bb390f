"""The core-description rows of an instruction, and the roles of its registers.

The classes follow the ARM11 cycle-timing tables (ARM1136JF-S TRM, DDI 0211, and
ARM1176JZF-S TRM, DDI 0301, chapter 16). This module contains no figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cache.maintenance import UNKNOWN, cache_operation
from pipeline.vector_classes import vector_row
from quoll.arm.coprocessor import (
    DEBUG,
    SYSTEM,
    CoprocessorAction,
    CoprocessorOperation,
    coprocessor_operation,
)
from quoll.arm.insn import PC, SP, AccessKind, ControlFlow, Insn, MemoryAccess, ShiftKind
from quoll.arm.operands import long_product
from quoll.arm.operation import Operation
from quoll.arm.status import StatusField, state_change, status_written, writes_saved_status
from quoll.errors import TimingError

__all__ = ["InsnClass", "classify_insn", "is_branch"]

NOT_SHIFTED = frozenset(
    ["adc", "add", "and", "bic", "cmn", "cmp", "eor", "mov", "mvn", "orr", "rsb", "rsc", "sbc",
     "orn", "sub", "teq", "tst"]
)  # fmt: skip
SATURATING = {"qadd": "QADD_QSUB", "qsub": "QADD_QSUB", "qdadd": "QDADD_QDSUB",
              "qdsub": "QDADD_QDSUB"}  # fmt: skip
PARALLEL = ("add16", "add8", "addsubx", "asx", "sax", "sub16", "sub8", "subaddx")
PLAIN = {
    "bfc": "BITFIELD", "bfi": "BITFIELD", "sbfx": "BITFIELD", "ubfx": "BITFIELD", "movt": "MOVT",
    "rbit": "REV", "it": "IT", "dsb": "DSB", "dmb": "DMB", "isb": "ISB_PREFETCH_FLUSH",
    "wfe": "WFI",
    "wfi": "WFI", "clrex": "CLREX", "clz": "CLZ", "nop": "NOP", "sev": "NOP", "yield": "NOP",
    "dbg": "NOP", "csdb": "NOP", "sevl": "NOP", "hint": "NOP",  # no effect on these cores
    "sel": "SEL", "setend": "SETEND", "usad8": "USAD8", "usada8": "USADA8",
    "ssat": "SSAT_USAT", "usat": "SSAT_USAT", "ssat16": "SSAT_USAT",
    "usat16": "SSAT_USAT", "rev": "REV", "rev16": "REV", "revsh": "REV", "pkhbt": "PKH",
    "pkhtb": "PKH", "sxtb": "EXTEND", "sxth": "EXTEND", "sxtb16": "EXTEND", "uxtb": "EXTEND",
    "uxth": "EXTEND", "uxtb16": "EXTEND", "sxtab": "EXTEND_ADD", "sxtah": "EXTEND_ADD",
    "sxtab16": "EXTEND_ADD", "uxtab": "EXTEND_ADD", "uxtah": "EXTEND_ADD",
    "uxtab16": "EXTEND_ADD",
}  # fmt: skip
FLAG_SETTING_MULTIPLIES = frozenset(["mla", "mul", "smlal", "smull", "umlal", "umull"])
HALVES = ("bb", "bt", "tb", "tt")
MULTIPLIES = {
    **{name: name.upper() for name in [*FLAG_SETTING_MULTIPLIES, "umaal", "smmul", "smmla"]},
    "mls": "MLS", "smmls": "SMMLS", "smmulr": "SMMUL", "smmlar": "SMMLA", "smmlsr": "SMMLS",
    **{f"smul{h}": "SMULXY" for h in HALVES},
    **{f"smla{h}": "SMLAXY" for h in HALVES},
    **{f"smlal{h}": "SMLALXY" for h in HALVES},
    **{f"smulw{h}": "SMULWY" for h in "bt"},
    **{f"smlaw{h}": "SMLAWY" for h in "bt"},
    **{f"{name}{x}": name.upper() for x in ("", "x")
       for name in ("smuad", "smusd", "smlad", "smlsd", "smlald", "smlsld")},
}  # fmt: skip
BRANCHES = frozenset(["b", "bl", "blx", "bx", "bxj", "cbnz", "cbz"])
WORD = 4
QUICK_SHIFT = 2


@dataclass(frozen=True, slots=True)
class InsnClass:
    """Rows of an instruction: for fall-through, and for a taken transfer.

    ``row`` holds the figures without the transfer of control; ``taken`` and ``not_taken`` are set
    for instructions that may write the pc. ``results`` are the written registers, in the order of
    the row's latencies; ``held`` are the registers that a store reads late. ``roles`` names
    operands as the early and late columns do. The instruction waits for its ``address`` registers
    even if its condition fails. ``updates`` is the base that is written back: ``updates_last`` with
    the address of the last issue cycle, else of the first.
    """

    row: tuple[str, str]
    taken: tuple[str, str] | None = None
    not_taken: tuple[str, str] | None = None
    flag_rule: bool = False  # the target also waits for the flag setter (row FLAGS_TO_TARGET)
    results: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    roles: Mapping[str, int] = field(default_factory=dict)
    address: frozenset[int] = frozenset()
    updates: int | None = None
    updates_last: bool = False


def classify_insn(insn: Insn, *, aligned: bool, aligned8: bool) -> InsnClass:
    """The class of ``insn``; raises TimingError if it has none.

    ``aligned``: data accesses are aligned to their size; ``aligned8``: the first address of
    this access is a multiple of 8.
    """
    if insn.memory is not None:
        found = _memory(insn, insn.memory, aligned, aligned8)
    elif PC in insn.writes or is_branch(insn):
        found = _transfer(insn)
    else:
        found = _plain(insn)
    if found is None:
        raise TimingError(
            "no timing class is known for this instruction",
            where=f"{insn.addr:#x}: {insn.text}",
            hint="known are ARMv6, ARMv7-A, VFP and NEON; if the path does not get here: "
            "ignore PLACE, or path must end at PLACE before it",
        )
    return found


def is_branch(insn: Insn) -> bool:
    """Whether ``insn`` takes the rows of a branch."""
    return insn.mnemonic in BRANCHES


def _results(insn: Insn) -> tuple[int, ...]:
    return tuple(sorted(insn.writes - {PC}))


def _shifted_roles(insn: Insn) -> dict[str, int]:
    """The registers Rn, Rm, Rs of data processing, from the end of the operand list."""
    names = ("Rs", "Rm", "Rn") if insn.shift is ShiftKind.REGISTER else ("Rm", "Rn")
    return dict(zip(names, reversed(insn.sources), strict=False))


def _data_processing(insn: Insn) -> tuple[str, str]:
    form = "REG" if insn.sources else "IMM"
    if insn.shift is not ShiftKind.NONE:
        form = "SHIFT_REG" if insn.shift is ShiftKind.REGISTER else "SHIFT_IMM"
    if insn.mnemonic in ("mov", "mvn"):
        return f"MOV_{form}", "conditional" if insn.conditional else "always"
    return f"DP_{form}", "any"


def _plain(insn: Insn) -> InsnClass | None:
    name = insn.mnemonic
    if name in NOT_SHIFTED:
        return InsnClass(_data_processing(insn), results=_results(insn), roles=_shifted_roles(insn))
    if name in PLAIN:
        roles = dict(zip(("Rm", "Rn"), reversed(insn.sources), strict=False))
        if name in ("usad8", "usada8"):
            roles = dict(zip(("Rm", "Rs", "Rn"), insn.sources, strict=False))
        return InsnClass((PLAIN[name], "any"), results=_results(insn), roles=roles)
    if name in SATURATING:
        roles = dict(zip(("Rm", "Rn"), insn.sources, strict=True))
        return InsnClass((SATURATING[name], "any"), results=_results(insn), roles=roles)
    if name in MULTIPLIES:
        return _multiply(insn)
    if name[:1] in ("q", "s", "u") and name[1:] in PARALLEL:
        row = "PAR_ADDSUB" if name[0] != "q" else "PAR_SAT_HALVE"
        return InsnClass((row, "any"), results=_results(insn), roles=_shifted_roles(insn))
    if name[:2] in ("sh", "uh", "uq") and name[2:] in PARALLEL:
        roles = _shifted_roles(insn)
        return InsnClass(("PAR_SAT_HALVE", "any"), results=_results(insn), roles=roles)
    return _system(insn)


def _multiply(insn: Insn) -> InsnClass:
    setting = insn.sets_flags and insn.mnemonic in FLAG_SETTING_MULTIPLIES
    row = MULTIPLIES[insn.mnemonic] + ("S" if setting else "")
    names = ("Rm", "Rs", "RdLo", "RdHi") if len(insn.sources) == 4 else ("Rm", "Rs", "Rn")
    roles = dict(zip(names, insn.sources, strict=False))
    results = _results(insn)
    if len(results) == 2:
        results = long_product(insn)
    return InsnClass((row, "any"), results=results, roles=roles)


def _system(insn: Insn) -> InsnClass | None:
    vector = vector_row(insn)
    if vector is not None:
        return InsnClass(vector, results=_results(insn))
    row: str | None = None
    coprocessor, change = coprocessor_operation(insn), state_change(insn)
    if insn.operation is Operation.READ_STATUS:
        row = "MRS"
    elif insn.operation is Operation.WRITE_STATUS:
        flags_only = status_written(insn) == StatusField.FLAGS
        saved = writes_saved_status(insn)
        row = "MSR_SPSR" if saved else "MSR_CPSR_F" if flags_only else "MSR_CPSR"
    elif change is not None:
        row = "CPS_IFLAGS" if change.mode is None else "CPS_MODE"
    elif coprocessor is not None:
        row = _coprocessor(insn, coprocessor)
    elif insn.flow is ControlFlow.TRAP:
        row = "EXCEPTION_ENTRY"
    return None if row is None else InsnClass((row, "any"), results=_results(insn))


CP15_ROWS = {(5, 4): "ISB_PREFETCH_FLUSH", (10, 4): "DSB", (10, 5): "DMB", (0, 4): "WFI"}
CP15_READS = {CoprocessorAction.READ: "MRC", CoprocessorAction.READ_PAIR: "MRRC"}
THUMB_EE, JAZELLE = 6, 7  # opc1 of their registers in CP14; the others belong to debug and trace
CP15_WHOLE = frozenset([(10, 0), (14, 0)])  # clean, clean and invalidate: line by line


def _coprocessor(insn: Insn, found: CoprocessorOperation) -> str | None:
    """Row of a register transfer to or from CP14 or CP15; None for other coprocessors."""
    if found.coprocessor not in (DEBUG, SYSTEM):
        return None
    if found.written is None:
        return CP15_READS.get(found.action)
    if found.coprocessor == DEBUG:
        return "MCR" if found.written.opc1 in (THUMB_EE, JAZELLE) else None
    register, operation = found.written.crn, (found.written.crm, found.written.opc2)
    if register == 7:
        if cache_operation(insn) is UNKNOWN:
            return None
        whole = "CP15_CACHE_ALL" if operation in CP15_WHOLE else "CP15_CACHE_LINE"
        return CP15_ROWS.get(operation, whole)
    return "CP15_TLB" if register == 8 else "MCR"


def _transfer(insn: Insn) -> InsnClass | None:
    """The class of branches and of data processing that writes the pc."""
    results, name = _results(insn), insn.mnemonic
    if is_branch(insn):
        row = "B" if insn.target is not None else "BX"
        return InsnClass(
            (row, "not_taken"), (row, "taken"), (row, "not_taken"), True, results=results
        )
    if name not in NOT_SHIFTED:
        return None
    row = "DP_PC"
    if insn.flow is ControlFlow.EXCEPTION_RETURN or insn.sets_flags:
        row = "DP_PC_S"
    elif name == "mov":
        row = "MOV_PC" if insn.shift is ShiftKind.NONE else "MOV_PC_SHIFT"
    return InsnClass(
        _data_processing(insn),
        (row, "taken"),
        ("DP_PC", "not_taken"),
        flag_rule=True,
        roles=_shifted_roles(insn),
    )


def _memory(insn: Insn, memory: MemoryAccess, aligned: bool, aligned8: bool) -> InsnClass | None:
    address = frozenset(r for r in (memory.base, memory.index) if r is not None)
    named = zip(("Rn", "Rm"), (memory.base, memory.index), strict=True)
    roles = {name: r for name, r in named if r is not None}
    updates = memory.base if memory.writeback else None
    results = tuple(r for r in insn.transfers if r != PC) if _loads(memory) else ()
    held = insn.transfers if memory.access is AccessKind.STORE else ()
    roles.update(zip(("Rd", "Rd2"), held if len(held) <= 2 else (), strict=False))
    mode = _mode(memory)
    row: tuple[str, str] | None
    taken = not_taken = None
    name = insn.mnemonic
    if name.startswith(("rfe", "srs")):
        row = (name[:3].upper(), "any")
        taken = row if name.startswith("rfe") else None
        results = held = ()
    elif memory.access is AccessKind.PRELOAD:
        row = ("PLD", mode)
    elif memory.access is AccessKind.SWAP:
        row, results = ("SWP", "any"), insn.transfers[:1]
    elif memory.exclusive:
        loads = memory.access is AccessKind.LOAD
        sized = "" if memory.size * memory.count == WORD else "_SIZED"
        row = (f"{'LDREX' if loads else 'STREX'}{sized}", "any")
        held = ()
        results = results if loads else tuple(sorted(insn.writes))
    elif name.startswith(("ldrd", "strd")):
        row = (name[:4].upper(), f"{mode} {'aligned8' if aligned8 else 'unaligned8'}")
    elif name.startswith(("ldm", "stm", "pop", "push")):
        row, taken, not_taken = _list(insn, memory, aligned8)
    elif name.startswith(("ldr", "str")) and PC in insn.transfers and _loads(memory):
        row = ("LDR", f"{mode} {_alignment(memory, aligned)}")
        taken, not_taken = ("LDR_PC", f"{mode} taken"), ("LDR_PC", "not_taken")
    elif name in ("tbb", "tbh"):
        even = aligned or memory.base == PC or memory.size == 1  # the table behind it is aligned
        row = _single(memory, mode, even, signed=False)
        taken, results = ("LDR_PC", f"{mode} taken" if even else f"{mode} unaligned taken"), ()
    elif name.startswith(("ldr", "str")):
        row = _single(memory, mode, aligned, signed=name.startswith("ldrs"))
    elif (vector := vector_row(insn)) is not None:
        row = vector
    else:
        return None
    updates_last = name.startswith(("ldr", "str"))
    return InsnClass(
        row, taken, not_taken, False, results, held, roles, address, updates, updates_last
    )


def _loads(memory: MemoryAccess) -> bool:
    return memory.access in (AccessKind.LOAD, AccessKind.SWAP)


def _mode(memory: MemoryAccess) -> str:
    """The address form, by its cycles.

    One: a constant offset, or an index that is added, unshifted or by ``lsl #2``. Two: an index
    that is subtracted, or shifted in any other way (ARM1176 TRM, DDI 0301, 16.10; Cortex-A8 TRM,
    DDI 0344, 16.2 and 16.8).
    """
    if memory.index is None:
        return "mode1"
    quick = memory.shift is ShiftKind.NONE or (memory.lsl and memory.scale_shift == QUICK_SHIFT)
    return "mode1" if quick and not memory.subtract else "mode2"


def _alignment(memory: MemoryAccess, aligned: bool) -> str:
    """The alignment condition: base and offset must each be aligned, not just their sum."""
    if memory.size == 1:
        return "aligned"
    if not aligned:
        return "unaligned"
    if memory.index is None:
        return "aligned" if memory.displacement % memory.size == 0 else "maybe_unaligned"
    scaled = memory.lsl and 1 << memory.scale_shift >= memory.size
    return "aligned" if scaled else "maybe_unaligned"


def _single(memory: MemoryAccess, mode: str, aligned: bool, *, signed: bool) -> tuple[str, str]:
    alignment = _alignment(memory, aligned)
    if memory.access is AccessKind.STORE:
        return ("STR", f"{mode} {alignment}")
    narrow = memory.size < WORD or signed
    return ("LDRB_LDRH_SIGNED" if narrow else "LDR", f"{mode} {alignment}")


def _list(
    insn: Insn, memory: MemoryAccess, aligned8: bool
) -> tuple[tuple[str, str], tuple[str, str] | None, tuple[str, str] | None]:
    """Rows of ldm and stm: n registers without the pc, and the pc in addition."""
    alignment = "aligned8" if aligned8 else "unaligned8"
    kind = "LDM" if memory.access is AccessKind.LOAD else "STM"
    if kind == "STM" or PC not in insn.transfers:
        return (f"{kind}_{memory.count}", alignment), None, None
    # A list of the pc alone takes the time of a list of one.
    without = (f"LDM_{max(memory.count - 1, 1)}", alignment)
    row = ("LDM_PC", "sp taken" if memory.base == SP else "other taken")
    if insn.flow is ControlFlow.EXCEPTION_RETURN:
        row = ("LDM_PC_S", "taken")
    return without, row, ("LDM_PC", "not_taken")
