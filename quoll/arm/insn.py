"""A decoded ARM or Thumb instruction: the input of every later stage.

Registers are numbered 0 to 15 (13 = sp, 14 = lr, 15 = pc). ``decode.py`` makes these values;
``quoll/semantics`` defines their effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from quoll.arm.operation import Operation, operation_of

__all__ = [
    "LR",
    "PC",
    "SP",
    "AccessKind",
    "Condition",
    "ControlFlow",
    "Insn",
    "MemoryAccess",
    "ShiftKind",
]

SP, LR, PC = 13, 14, 15


class Condition(IntEnum):
    """Condition field, with its encoding (ARM ARM A8.3)."""

    EQ = 0
    NE = 1
    CS = 2
    CC = 3
    MI = 4
    PL = 5
    VS = 6
    VC = 7
    HI = 8
    LS = 9
    GE = 10
    LT = 11
    GT = 12
    LE = 13
    AL = 14


class ControlFlow(Enum):
    """The effect of an instruction on the program counter, by its encoding.

    ``quoll.cfg.cfg`` decides from the written value whether an INDIRECT transfer is a return, a
    call or a jump.
    """

    NEXT = "next"
    JUMP = "jump"  # b, cbz: direct target
    CALL = "call"  # bl, blx imm: direct target, lr = next
    INDIRECT = "indirect"  # pc written from a register, memory or arithmetic
    INDIRECT_CALL = "indirect call"  # blx reg
    EXCEPTION_RETURN = "exception return"  # movs pc / subs pc / ldm ..^ with pc / rfe / eret
    TRAP = "trap"  # svc, bkpt, udf, hvc, smc
    WAIT = "wait"  # wfi, wfe, mcr p15, 0, rX, c7, c0, 4: continues on an interrupt or event
    UNDEFINED = "undefined"  # bytes that no encoding covers


class ShiftKind(Enum):
    """The shift of the last register operand, or the scaling of a memory index."""

    NONE = "none"
    IMMEDIATE = "immediate"  # lsl/lsr/asr/ror #n, rrx
    REGISTER = "register"


class AccessKind(Enum):
    """Direction of a data access."""

    LOAD = "load"
    STORE = "store"
    PRELOAD = "preload"  # pld: a hint, no result
    SWAP = "swap"  # swp, swpb: load then store


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """The data access of an instruction: ``count`` transfers of ``size`` bytes each.

    The first address is ``base + offset`` (``offset`` = ``displacement`` or the scaled index,
    subtracted if ``subtract``); post-indexed forms access ``base`` itself. For ldm/stm the
    ``displacement`` leads to the lowest address transferred (0, 4, -4*n, -4*n+4).
    """

    access: AccessKind
    size: int  # bytes per transfer: 1, 2 or 4 (ldrd/strd: count 2, size 4)
    count: int  # transfers at consecutive addresses
    base: int | None  # register number; PC for literals; None for coprocessor-defined
    index: int | None
    displacement: int
    subtract: bool  # the index register is subtracted
    scale_shift: int  # lsl amount of the index, 0 if none; see ``shift``
    shift: ShiftKind
    lsl: bool  # the index shift, if any, is a left shift
    pre_indexed: bool  # False: post-indexed
    writeback: bool
    exclusive: bool  # ldrex/strex
    user: bool  # ldrt/strt, or ldm/stm ^ of user-bank registers


class Remainder(NamedTuple):
    """The word in register ``dividend`` modulo ``divisor``; ``signed``: rounded towards zero."""

    dividend: int
    divisor: int
    signed: bool


class Insn(NamedTuple):
    """One instruction. ``target`` is the direct target of JUMP and CALL, with bit 0 clear.

    ``reads`` and ``writes`` hold the pc only where it is an operand or the destination of a
    computed transfer, not for the increment of every instruction, nor for direct branches. A change
    of processor mode (cps, msr, exception returns) exchanges r8 to r14 for the registers of another
    bank; the ops show that, ``writes`` does not. Flags are N, Z, C, V and GE. ``sources`` follows
    the assembler's order, repeats included:

    - data processing: Rn, Rm, Rs (Rs gives a register-specified shift its amount);
    - multiplication: the two factors, then the accumulator (RdLo, RdHi when it is long);
    - bfi, bfc, movt: the destination comes last;
    - memory: base, index, then the stored registers, in the order of ``transfers``.

    ``mov`` stands for lsl, lsr, asr, ror and rrx too, ``ldm``/``stm`` for push and pop of a list
    and all four directions, ``mcr`` for mcr2 and so on. For swp, ``transfers`` is the register
    loaded, then the register stored.

    A named tuple, because there are millions, and a frozen dataclass takes eight times as long to
    make.

    ``remainder``: the instructions before it in its block make this its result
    (``quoll.semantics.remainders``).
    """

    addr: int
    raw: bytes
    thumb: bool
    mnemonic: str  # base mnemonic, lower case, without condition, 's' or width: ldr, add, mov, b
    text: str  # text from the disassembler
    cond: Condition  # AL when unconditional; IT-block conditions are folded in
    flow: ControlFlow
    target: int | None
    target_thumb: bool  # instruction set at ``target``
    sets_flags: bool
    reads_flags: bool  # beyond ``cond``: adc, sbc, rrx, mrs ...
    reads: frozenset[int]
    writes: frozenset[int]
    shift: ShiftKind
    memory: MemoryAccess | None
    transfers: tuple[int, ...]  # registers moved by the memory access, lowest address first
    sources: tuple[int, ...] = ()  # registers read, in operand order; see the class docstring
    interworks: bool = True  # bit 0 of a computed target chooses the instruction set (A2.3.1)
    remainder: Remainder | None = None

    @property
    def size(self) -> int:
        """Length in bytes: 2 or 4."""
        return len(self.raw)

    @property
    def next(self) -> int:
        """Address of the following instruction."""
        return self.addr + len(self.raw)

    @property
    def encoding(self) -> int:
        """The encoding as the manual prints it; the first Thumb halfword is the upper half."""
        if not self.thumb or self.size == 2:
            return int.from_bytes(self.raw, "little")
        return int.from_bytes(self.raw[:2], "little") << 16 | int.from_bytes(self.raw[2:], "little")

    @property
    def operation(self) -> Operation:
        """Its operation for later stages; OTHER if none distinguishes it."""
        return operation_of(self.mnemonic)

    @property
    def pc_operand(self) -> int:
        """The value of the pc as an operand: two instructions later, in Thumb aligned for literals
        (A2.3)."""
        return self.addr + 4 & ~3 if self.thumb else self.addr + 8

    @property
    def may_be_folded(self) -> bool:
        """Whether some core executes it without issuing it: branches, and IT in Thumb code."""
        return self.flow is not ControlFlow.NEXT or self.mnemonic == "it"

    @property
    def conditional(self) -> bool:
        """Whether the condition field can make it a no-op."""
        return self.cond is not Condition.AL
