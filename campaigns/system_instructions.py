"""The treatment, by every stage, of instructions that change more than registers, flags and memory.

One row per kind of instruction, and per register of coprocessor 15 in
``quoll.arm.system_registers``; docs/system-effects.md is generated from them. A test decodes the
whole space of encodings: it fails on an instruction that is neither in a row nor pure computation,
and on a row whose treatment names missing code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from quoll.arm.coprocessor import (
    DEBUG,
    SYSTEM,
    VFP,
    CoprocessorRegister,
    coprocessor_operation,
)
from quoll.arm.insn import PC, AccessKind, ControlFlow, Insn
from quoll.arm.operation import Operation
from quoll.arm.status import (
    StatusField,
    fields_written,
    names_banked_register,
    reads_current_status,
    state_change,
    writes_saved_status,
)
from quoll.arm.system_registers import (
    REFUSED_GROUPS,
    SYSTEM_RANGES,
    SYSTEM_WRITES,
    UNRECOGNISED,
    SystemEffect,
    SystemWrite,
    system_write,
)

__all__ = ["ROWS", "Column", "SystemInstruction", "Treatment", "rows"]


class Column(Enum):
    """A column of the table: a stage, or a part of one."""

    CONTROL_FLOW = "control flow"
    VALUES = "values"
    BANKS = "banks"
    TRANSLATIONS = "translations"
    CACHES = "caches"
    PIPELINE = "pipeline"
    MASKS = "masks, segments"
    SLICES = "loop slices"
    MACHINE = "concrete machine"


@dataclass(frozen=True, slots=True)
class Treatment:
    """``text`` describes a stage's treatment, ``code`` names it: ``package.module:name``."""

    text: str
    code: str


@dataclass(frozen=True, slots=True)
class SystemInstruction:
    """A kind of instruction; a stage that is not in ``treatments`` has nothing to do.

    ``example`` is an ARM word of it. ``refused``: no path with it has a bound.
    """

    name: str
    section: str
    applies: Callable[[Insn], bool]
    example: int
    treatments: Mapping[Column, Treatment]
    refused: bool = False


UNKNOWN_OPS = Treatment("results unknown", "quoll.semantics.system:system_ops")
NO_OPS = Treatment("no effect on registers, flags or memory", "quoll.semantics.system:NO_EFFECT")
TIMED = Treatment("cycles of its row", "pipeline.classes:classify_insn")
OPS_TO_SLICES = Treatment("by its ops", "loopbounds.slicing.effects:block_effect")
OPS_TO_MACHINE = Treatment("by its ops", "loopbounds.execution.machine:ConcreteMachine")
EXITS = Treatment(
    "the path ends, or goes on at a known place", "quoll.cfg.discover:FunctionBuilder"
)
UNRESOLVED = Treatment("refused unless a fact says more", "quoll.cfg.discover:FunctionBuilder")
REFUSED_WRITE = Treatment("refused by name", "wcet.analysis.refusals:refuse_control_writes")
STATUS_WORD = Treatment(
    "User mode, bit E and bit T are refused; unknown words are listed",
    "quoll.value_analysis.status_words:check_status_words",
)
SWITCHED = Treatment("r8 to r14 of the mode", "quoll.abstract_domain.banked_registers:switch_mode")
FOLLOWED_MASKS = Treatment("masks are followed", "quoll.preemption.mask_states:regions")


def _by(*operations: Operation) -> Callable[[Insn], bool]:
    return lambda insn: insn.operation in operations


def _named(*names: str) -> Callable[[Insn], bool]:
    return lambda insn: insn.mnemonic in names


def _current_status(insn: Insn) -> bool:
    written = fields_written(insn)
    return bool(written) and not writes_saved_status(insn)


def _flags_only(insn: Insn) -> bool:
    return _current_status(insn) and fields_written(insn) in (StatusField.FLAGS, StatusField.STATUS)


def _user_list(insn: Insn) -> bool:
    memory = insn.memory
    listed = insn.mnemonic in ("ldm", "stm") and memory is not None and memory.user
    return listed and insn.flow is ControlFlow.NEXT


def _unprivileged(insn: Insn) -> bool:
    memory = insn.memory
    return memory is not None and memory.user and insn.mnemonic not in ("ldm", "stm")


def _exclusive(insn: Insn) -> bool:
    return insn.memory is not None and insn.memory.exclusive


def _swaps(insn: Insn) -> bool:
    return insn.memory is not None and insn.memory.access is AccessKind.SWAP


def _preloads(insn: Insn) -> bool:
    accesses = insn.memory is not None and insn.memory.access is AccessKind.PRELOAD
    return accesses or insn.mnemonic in ("pld", "pldw", "pli")


def _of_coprocessor(*numbers: int) -> Callable[[Insn], bool]:
    def applies(insn: Insn) -> bool:
        found = coprocessor_operation(insn)
        return found is not None and found.coprocessor in numbers and system_write(insn) is None

    return applies


def _other_coprocessor(insn: Insn) -> bool:
    found = coprocessor_operation(insn)
    if insn.mnemonic in ("ldc", "stc"):
        return True
    known = (*VFP, DEBUG, SYSTEM)
    return found is not None and found.coprocessor not in known


def _interworks(insn: Insn) -> bool:
    return insn.mnemonic in ("blx", "bx", "bxj")


def _computed_transfer(insn: Insn) -> bool:
    return insn.flow is ControlFlow.INDIRECT and PC in insn.writes and not _interworks(insn)


ROWS: tuple[SystemInstruction, ...] = (
    SystemInstruction(
        "mrs of the CPSR",
        "B9.3.8",
        lambda i: i.operation is Operation.READ_STATUS and reads_current_status(i),
        0xE10F0000,
        {
            Column.VALUES: Treatment(
                "the mode and bit I, as they are followed; other bits unknown",
                "quoll.abstract_domain.banked_registers:read_status",
            ),
            Column.PIPELINE: TIMED,
            Column.MASKS: FOLLOWED_MASKS,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "mrs of an SPSR or a banked register",
        "B9.3.8, B9.3.9",
        lambda i: i.operation is Operation.READ_STATUS and not reads_current_status(i),
        0xE14F0000,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "msr of flags and GE",
        "A8.8.111",
        _flags_only,
        0xE128F000,
        {
            Column.VALUES: Treatment("flags of the word", "quoll.semantics.system:system_ops"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "msr of a register of another mode",
        "B9.3.10",
        names_banked_register,
        0xE120F200,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.BANKS: Treatment(
                "registers of every mode are unknown",
                "quoll.abstract_domain.banked_registers:forget_banks",
            ),
            Column.PIPELINE: Treatment(
                "refused: no core here has it", "wcet.analysis.refusals:refuse_lacking"
            ),
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
        refused=True,
    ),
    SystemInstruction(
        "msr of an SPSR",
        "B9.3.11",
        writes_saved_status,
        0xE16FF000,
        {
            Column.VALUES: STATUS_WORD,
            Column.BANKS: Treatment(
                "the SPSR of the mode", "quoll.abstract_domain.banked_registers:save_status"
            ),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "msr of the control or extension field",
        "B9.3.11",
        _current_status,
        0xE129F000,
        {
            Column.VALUES: STATUS_WORD,
            Column.BANKS: SWITCHED,
            Column.PIPELINE: TIMED,
            Column.MASKS: FOLLOWED_MASKS,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "cps",
        "B9.3.2",
        lambda i: state_change(i) is not None,
        0xF1020013,
        {
            Column.VALUES: STATUS_WORD,
            Column.BANKS: SWITCHED,
            Column.PIPELINE: TIMED,
            Column.MASKS: FOLLOWED_MASKS,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "setend",
        "A8.8.157",
        _by(Operation.SET_ENDIANNESS),
        0xF1010000,
        {
            Column.VALUES: Treatment("setend be is refused", "quoll.semantics.system:system_ops"),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "srs",
        "B9.3.16",
        _by(Operation.STORE_RETURN_STATE),
        0xF96D0513,
        {
            Column.VALUES: Treatment(
                "lr and the SPSR are stored", "quoll.semantics.system:system_ops"
            ),
            Column.BANKS: Treatment(
                "sp of the mode", "quoll.abstract_domain.banked_registers:write_bank"
            ),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "ldm and stm of User registers",
        "B9.3.6, B9.3.17",
        _user_list,
        0xE8D07FFF,
        {
            Column.VALUES: Treatment("r8 to r14 unknown", "quoll.semantics.system:system_ops"),
            Column.BANKS: Treatment(
                "the bank of User and System mode",
                "quoll.abstract_domain.banked_registers:write_user_bank",
            ),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "unprivileged accesses",
        "A8.8.92, A8.8.218",
        _unprivileged,
        0xE4B01004,
        {
            Column.VALUES: Treatment("as the access", "quoll.semantics.lift:lift"),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "exception returns: rfe, movs pc, subs pc, ldm with ^ and pc, eret",
        "B9.3.13, B9.3.20",
        lambda i: i.flow is ControlFlow.EXCEPTION_RETURN,
        0xE1B0F00E,
        {
            Column.CONTROL_FLOW: Treatment(
                "the path ends; a known target with a known masked status is a jump",
                "quoll.abstract_domain.resumption:resumed_code",
            ),
            Column.VALUES: Treatment(
                "targets are checked in contexts; a return to code that may run masked is refused",
                "quoll.value_analysis.exception_returns:refuse_returns_to_code",
            ),
            Column.BANKS: Treatment(
                "the SPSR", "quoll.abstract_domain.banked_registers:read_saved_status"
            ),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.MASKS: Treatment(
                "ends a region; masked where it is followed",
                "quoll.preemption.mask_states:regions",
            ),
        },
    ),
    SystemInstruction(
        "svc",
        "A8.8.229",
        _by(Operation.SUPERVISOR_CALL),
        0xEF000000,
        {Column.CONTROL_FLOW: UNRESOLVED, Column.PIPELINE: TIMED},
        refused=True,
    ),
    SystemInstruction(
        "hvc, smc",
        "B9.3.4, B9.3.14",
        _by(Operation.EXCEPTION_CALL),
        0xE1600070,
        {Column.CONTROL_FLOW: UNRESOLVED, Column.PIPELINE: TIMED},
        refused=True,
    ),
    SystemInstruction(
        "bkpt, udf, hlt",
        "A8.8.24, A8.8.247",
        lambda i: i.flow is ControlFlow.TRAP,
        0xE1200070,
        {Column.CONTROL_FLOW: Treatment("no path goes on", "quoll.inlining.trim:refuse_stops")},
        refused=True,
    ),
    SystemInstruction(
        "wfi, wfe, and CP15 wait for interrupt",
        "A8.8.425, A8.8.424",
        lambda i: i.flow is ControlFlow.WAIT,
        0xE320F003,
        {Column.CONTROL_FLOW: UNRESOLVED},
        refused=True,
    ),
    SystemInstruction(
        "hints: nop, yield, sev, dbg and unallocated hints",
        "A8.8.119",
        _named("csdb", "dbg", "hint", "nop", "sev", "sevl", "yield"),
        0xE320F000,
        {Column.VALUES: NO_OPS, Column.PIPELINE: TIMED},
    ),
    SystemInstruction(
        "it",
        "A8.8.54",
        _named("it"),
        0,
        {
            Column.CONTROL_FLOW: Treatment("conditions", "quoll.arm.decode:it_conditions"),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "dmb, dsb",
        "A8.8.43",
        _by(Operation.DATA_BARRIER),
        0xF57FF05F,
        {
            Column.VALUES: NO_OPS,
            Column.PIPELINE: TIMED,
            Column.MACHINE: Treatment(
                "drains the write buffer", "pipeline.pipeline_simulator:PipelineMachine"
            ),
        },
    ),
    SystemInstruction(
        "isb",
        "A8.8.53",
        _by(Operation.INSTRUCTION_BARRIER),
        0xF57FF06F,
        {
            Column.VALUES: NO_OPS,
            Column.CACHES: Treatment("fetched again", "cache.maintenance:cache_operation"),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "pld, pldw, pli",
        "A8.8.126",
        _preloads,
        0xF5D0F000,
        {
            Column.VALUES: NO_OPS,
            Column.CACHES: Treatment(
                "the line may be filled or not (rule 6)", "cache.data_cache:DataClassifier"
            ),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "ldrex, strex and their sizes, clrex",
        "A8.8.75, A8.8.212, A8.8.32",
        lambda i: _exclusive(i) or i.mnemonic == "clrex",
        0xE1901F9F,
        {
            Column.VALUES: Treatment(
                "loads; strex stores or not: both are followed", "quoll.semantics.lift:lift"
            ),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "swp, swpb",
        "A8.8.229",
        _swaps,
        0xE1021093,
        {
            Column.VALUES: Treatment("loads, then stores", "quoll.semantics.lift:lift"),
            Column.CACHES: Treatment("data accesses", "cache.data_accesses:DataAccessModel"),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "bx, blx, bxj",
        "A8.8.25 to A8.8.28",
        _interworks,
        0xE12FFF1E,
        {
            Column.CONTROL_FLOW: Treatment(
                "bit 0 chooses the instruction set", "quoll.cfg.transfers:callee_at"
            ),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "other computed transfers",
        "A2.3.1",
        _computed_transfer,
        0xE1A0F00E,
        {
            Column.CONTROL_FLOW: Treatment(
                "data processing interworks from ARMv7 on", "quoll.arm.architecture:on_version"
            ),
            Column.PIPELINE: TIMED,
        },
    ),
    SystemInstruction(
        "vmrs, vmsr",
        "B9.3.21, B9.3.22",
        _named("vmrs", "vmsr"),
        0xEEF10A10,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "reads of coprocessor 15",
        "A8.8.107, A8.8.108",
        _of_coprocessor(SYSTEM),
        0xEE100F10,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.CACHES: Treatment(
                "of CRn 7 and 9: nothing known", "cache.maintenance:cache_operation"
            ),
            Column.PIPELINE: TIMED,
            Column.SLICES: OPS_TO_SLICES,
            Column.MACHINE: OPS_TO_MACHINE,
        },
    ),
    SystemInstruction(
        "coprocessor 14: debug, trace, ThumbEE",
        "C6",
        _of_coprocessor(DEBUG),
        0xEE100E10,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.PIPELINE: Treatment(
                "writes of debug registers have no time", "pipeline.classes:classify_insn"
            ),
        },
    ),
    SystemInstruction(
        "other coprocessors, ldc, stc",
        "A8.8.28, A8.8.55, A8.8.198",
        _other_coprocessor,
        0xEE000510,
        {
            Column.VALUES: UNKNOWN_OPS,
            Column.CACHES: Treatment("nothing known", "cache.maintenance:cache_operation"),
            Column.PIPELINE: Treatment(
                "no core here has one: refused", "pipeline.classes:classify_insn"
            ),
        },
        refused=True,
    ),
)

_OF_EFFECT: Mapping[SystemEffect, tuple[Column, ...]] = {
    SystemEffect.CHANGES_TRANSLATION: (
        Column.VALUES,
        Column.TRANSLATIONS,
        Column.SLICES,
    ),
    SystemEffect.DROPS_TRANSLATIONS: (Column.TRANSLATIONS,),
    SystemEffect.DISCARDS_LINE: (Column.VALUES, Column.SLICES, Column.MACHINE),
    SystemEffect.DISCARDS_ALL_LINES: (Column.VALUES, Column.SLICES, Column.MACHINE),
}
_STAGES_OF_REGISTERS: Mapping[Column, Treatment] = {
    Column.VALUES: Treatment(
        "memory that may be other memory, or lose its stores, is unknown",
        "quoll.abstract_domain.abstract_memory:AbstractMemory",
    ),
    Column.TRANSLATIONS: Treatment(
        "code and stacks without a fixed translation are refused",
        "quoll.cfg.translation_changes:refuse_moved_code",
    ),
    Column.CACHES: Treatment("its effects", "cache.maintenance:cache_operation"),
    Column.PIPELINE: TIMED,
    Column.SLICES: Treatment("by its ops", "loopbounds.slicing.effects:block_effect"),
    Column.MACHINE: Treatment("by its ops", "loopbounds.execution.memory:ConcreteMemory"),
}


OLD_WAIT = CoprocessorRegister(0, 7, 0, 4)


def _of_register(register: SystemWrite, example: int) -> SystemInstruction:
    stages = {Column.CACHES, Column.PIPELINE}
    for effect in register.effects:
        stages.update(_OF_EFFECT.get(effect, ()))
    treatments = {stage: _STAGES_OF_REGISTERS[stage] for stage in Column if stage in stages}
    if register.refused is not None:
        treatments = {
            Column.VALUES: REFUSED_WRITE,
            Column.CACHES: _STAGES_OF_REGISTERS[Column.CACHES],
        }
    return SystemInstruction(
        f"write of {register.name}",
        register.source,
        lambda insn: system_write(insn) is register,
        example,
        treatments,
        refused=register.refused is not None,
    )


def _mcr(opc1: int, crn: int, crm: int, opc2: int) -> int:
    return 0xEE000F10 | opc1 << 21 | crn << 16 | opc2 << 5 | crm


def _rows_of_registers() -> Iterator[SystemInstruction]:
    for register, row in SYSTEM_WRITES.items():
        if register != OLD_WAIT:  # it is with wfi
            yield _of_register(row, _mcr(*register))
    for (opc1, crn, crm), row in REFUSED_GROUPS.items():
        yield _of_register(row, _mcr(opc1, crn, 3 if crm is None else crm, 7))
    for (opc1, crm), row in SYSTEM_RANGES.items():
        yield _of_register(row, 0xEC410F00 | opc1 << 4 | crm)
    yield _of_register(UNRECOGNISED, _mcr(7, 15, 15, 7))


REGISTERS: tuple[SystemInstruction, ...] = tuple(_rows_of_registers())


def rows() -> tuple[SystemInstruction, ...]:
    """All rows: kinds of instructions, then registers of coprocessor 15."""
    return (*ROWS, *REGISTERS)
