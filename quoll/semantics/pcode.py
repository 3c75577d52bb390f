"""From bytes to ops through pypcode: Ghidra's SLEIGH specification of ARMv7 and Thumb-2.

The specification keeps context (instruction set, IT block) by address, for as long as its
library lives, and an instruction may set it for all higher addresses. So nothing that sets it is
translated here (``it`` and ``blx`` to an address are lifted in ``semantics.py``), a probe checks
before each translation that no context has leaked, and a leak rebuilds the translator.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pypcode

from quoll.errors import ControlFlowError
from quoll.semantics.ops import GE, C, N, Op, OpCode, Q, Space, V, Var, Z, const, general, temp

__all__ = ["translate"]

LANGUAGE = "ARM:LE:32:v7"  # decodes ARMv4 to ARMv7-A and Thumb-2

REGISTERS = {f"r{n}": general(n) for n in range(13)}
REGISTERS |= {"sp": general(13), "lr": general(14), "NG": N, "ZR": Z, "CY": C, "OV": V, "Q": Q}
REGISTERS |= {f"GE{n + 1}": GE[n] for n in range(4)}

# Registers of the specification that carry values only within one instruction
SCRATCH = frozenset(
    ["ISAModeSwitch", "TB", "mult_addr", "pc", "shift_carry", "tmpCY", "tmpNG", "tmpOV", "tmpZR"]
)

# user-defined operations without effect on registers, flags or memory
NO_EFFECT = frozenset(
    [
        "ClearExclusiveLocal",
        "DataMemoryBarrier",
        "DataSynchronizationBarrier",
        "ExclusiveAccess",
        "HintPreloadData",
        "HintPreloadDataForWrite",
        "HintPreloadInstruction",
        "InstructionSynchronizationBarrier",
        "setISAMode",
    ]
)
LEAVING = frozenset(["BRANCHIND", "CALLIND", "RETURN"])
LARGEST = 8  # bytes of a variable
PAST_END = 1 << 30  # the label of the end of the instruction


class _Translator:
    """A pypcode context for one instruction set, rebuilt when its context has leaked.

    To build one takes 60 ms.
    """

    def __init__(self, thumb: bool) -> None:
        self._thumb = thumb
        self._probe = b"\x00\x20\x00\x20" if thumb else b"\x00\x00\xa0\xe3"
        self._context = self._build()
        self._expected = self._probed(0x1000)

    def _build(self) -> Any:
        context = pypcode.Context(LANGUAGE)
        if self._thumb:
            context.setVariableDefault("TMode", 1)
        return context

    @property
    def registers(self) -> dict[str, Any]:
        """The specification's registers by name."""
        registers: dict[str, Any] = self._context.registers
        return registers

    def _probed(self, addr: int) -> tuple[int, int]:
        ops = self._context.translate(self._probe, addr, max_instructions=1).ops
        return len(ops), ops[0].inputs[0].size

    def __call__(self, raw: bytes, addr: int) -> list[Any]:
        if self._probed(addr) != self._expected:
            self._context = self._build()
        ops: list[Any] = self._context.translate(raw, addr, max_instructions=1).ops
        return ops


@cache
def _translator(thumb: bool) -> _Translator:
    return _Translator(thumb)


@cache
def _register_bytes(thumb: bool) -> dict[int, tuple[Var, int]]:
    """For each byte of the specification's register space, its register and the byte in it."""
    registers = _translator(thumb).registers
    return {
        registers[name].offset + byte: (var, byte)
        for name, var in REGISTERS.items()
        for byte in range(var.size)
    }


@cache
def _scratch_offsets(thumb: bool) -> frozenset[int]:
    registers = _translator(thumb).registers
    return frozenset(registers[name].offset for name in SCRATCH)


def translate(raw: bytes, thumb: bool, addr: int) -> list[Op] | None:
    """The ops of the instruction ``raw`` at ``addr`` outside any IT block.

    None if the specification does not know the encoding. Raises ``ControlFlowError`` if its length
    differs, or if a register or operation has no counterpart here.
    """
    try:
        pcode = _translator(thumb)(raw, addr)
    except (pypcode.BadDataError, pypcode.UnimplError):
        return None
    if pcode[0].inputs[0].size != len(raw):
        raise _unsupported(raw, addr, "semantics of another length")
    return _Translation(raw, thumb, addr).run(pcode)


def _unsupported(raw: bytes, addr: int, what: str) -> ControlFlowError:
    return ControlFlowError(
        f"{what} for the instruction {raw.hex()}",
        where=f"{addr:#x}",
        hint="report the instruction; replacing its function by a bound avoids it",
    )


class _Translation:
    """State of one translation: numbered temporaries, and the start of each p-code op."""

    def __init__(self, raw: bytes, thumb: bool, addr: int) -> None:
        self._raw, self._thumb, self._addr = raw, thumb, addr
        self._next = addr + len(raw) & 0xFFFFFFFF
        self._extents: dict[tuple[str, int], tuple[int, int]] = {}  # by space and byte
        self._temps: dict[tuple[str, int], Var] = {}  # by space and first byte
        self._ops: list[Op] = []
        self._starts: list[int] = []
        self._count = 0
        self._goto_thumb: Var = const(thumb, 1)

    def run(self, pcode: list[Any]) -> list[Op]:
        """The ops of ``pcode``; raises ``ControlFlowError`` as ``translate``."""
        self._find_extents(pcode)
        for number, op in enumerate(pcode):
            self._starts.append(len(self._ops))
            self._one(number, op)
        self._starts.append(len(self._ops))
        return [self._resolved(op) for op in self._ops]

    def _find_extents(self, pcode: list[Any]) -> None:
        """Merge overlapping temporaries: some are written as words and read as halfwords."""
        used: set[tuple[str, int, int]] = set()
        for op in pcode:
            for varnode in (*op.inputs, *([op.output] if op.output else [])):
                if self._is_temporary(varnode):
                    used.add((varnode.space.name, varnode.offset, varnode.size))
        merged: list[tuple[str, int, int]] = []
        for space, start, size in sorted(used):
            if merged and merged[-1][0] == space and start < merged[-1][2]:
                merged[-1] = space, merged[-1][1], max(merged[-1][2], start + size)
            else:
                merged.append((space, start, start + size))
        for space, start, end in merged:
            if end - start > LARGEST and (space, start, end - start) not in used:
                raise _unsupported(self._raw, self._addr, "semantics joining temporaries")
            self._extents |= {(space, byte): (start, end - start) for byte in range(start, end)}

    def _is_temporary(self, varnode: Any) -> bool:
        space = varnode.space.name
        scratch = space == "register" and varnode.offset in _scratch_offsets(self._thumb)
        return space == "unique" or scratch

    def _fresh(self, size: int) -> Var:
        self._count += 1
        return temp(self._count - 1, size)

    def _emit(self, code: OpCode, out: Var | None, *ins: Var) -> None:
        self._ops.append(Op(code, out, ins))

    def _one(self, number: int, op: Any) -> None:
        name = op.opcode.name
        if name == "IMARK":
            return
        if name in ("BRANCH", "CBRANCH", "CALL"):
            self._branch(number, op)
        elif name in LEAVING:
            self._emit(OpCode.GOTO, None, self._read(op.inputs[0]), self._goto_thumb)
        elif name == "CALLOTHER":
            self._user_defined(op)
        elif name == "LOAD":
            self._write(OpCode.LOAD, op.output, self._address(op.inputs[1]))
        elif name == "STORE":
            address, value = self._address(op.inputs[1]), self._read(op.inputs[2])
            self._emit(OpCode.STORE, None, address, value)
        elif name not in OpCode.__members__:
            raise _unsupported(self._raw, self._addr, f"semantics using {name}")
        else:
            self._write(OpCode[name], op.output, *map(self._read, op.inputs))

    def _branch(self, number: int, op: Any) -> None:
        """Emit a branch; labels are negative p-code numbers until ``_resolved`` converts them."""
        target = op.inputs[0]
        condition = [self._read(op.inputs[1])] if op.opcode.name == "CBRANCH" else []
        if target.space.name == "const":
            displacement = (target.offset ^ 1 << 31) - (1 << 31)
            label = Var(Space.CONST, -1 - (number + displacement), 4)
        elif target.offset == self._next and condition:
            label = Var(Space.CONST, -1 - PAST_END, 4)
        else:
            self._leave(target.offset, condition)
            return
        self._emit(OpCode.CBRANCH if condition else OpCode.BRANCH, None, label, *condition)

    def _leave(self, target: int, condition: list[Var]) -> None:
        if condition:
            stay = self._fresh(1)
            self._emit(OpCode.BOOL_NEGATE, stay, *condition)
            past = Var(Space.CONST, -1 - PAST_END, 4)
            self._emit(OpCode.CBRANCH, None, past, stay)
        self._emit(OpCode.GOTO, None, const(target), self._goto_thumb)

    def _resolved(self, op: Op) -> Op:
        if op.code not in (OpCode.BRANCH, OpCode.CBRANCH):
            return op
        number = -1 - op.ins[0].offset
        index = len(self._ops) if number == PAST_END else self._starts[number]
        return Op(op.code, None, (const(index), *op.ins[1:]))

    def _user_defined(self, op: Any) -> None:
        name = pypcode.PcodePrettyPrinter.fmt_op(op).partition("= ")
        called = (name[2] or name[0]).partition("(")[0].strip()
        inputs = [self._read(varnode) for varnode in op.inputs[1:]]
        if op.output is not None:
            self._write(OpCode.UNKNOWN, op.output, *inputs)
        elif called not in NO_EFFECT:
            raise _unsupported(self._raw, self._addr, f"semantics using {called}")

    def _read(self, varnode: Any) -> Var:
        space, offset, size = varnode.space.name, varnode.offset, varnode.size
        if space == "const":
            return const(offset, size)
        if space == "ram":
            loaded = self._fresh(size)
            self._emit(OpCode.LOAD, loaded, const(offset))
            return loaded
        whole, start = self._place(varnode)
        if whole.size == size:
            return whole
        piece = self._fresh(size)
        self._emit(OpCode.SUBPIECE, piece, whole, const(start))
        return piece

    def _address(self, varnode: Any) -> Var:
        """An address operand; no instruction loads an address from memory and then uses it."""
        if varnode.space.name == "ram":
            raise _unsupported(self._raw, self._addr, "semantics loading twice")
        return self._read(varnode)

    def _place(self, varnode: Any, *, overwritten: bool = False) -> tuple[Var, int]:
        """The variable that holds ``varnode``, and the position of ``varnode`` in it in bytes.

        The specification may read a temporary before it sets it: that value is unknown.
        """
        if not self._is_temporary(varnode):
            return self._register(varnode)
        space = varnode.space.name
        start, size = self._extents[space, varnode.offset]
        known = self._temps.get((space, start))
        if known is None:
            known = self._temps[space, start] = self._fresh(size)
            if not overwritten or varnode.size < size:
                self._emit(OpCode.UNKNOWN, known)
        return known, varnode.offset - start

    def _register(self, varnode: Any) -> tuple[Var, int]:
        """The register that holds ``varnode``, and the position of ``varnode`` in it in bytes."""
        found = _register_bytes(self._thumb).get(varnode.offset)
        if found is None or found[1] + varnode.size > found[0].size:
            what = f"semantics using register {varnode.getRegisterName()}"
            raise _unsupported(self._raw, self._addr, what)
        return found

    def _write(self, code: OpCode, varnode: Any, *ins: Var) -> None:
        if varnode.space.name not in ("register", "unique"):
            raise _unsupported(self._raw, self._addr, f"semantics writing {varnode.space.name}")
        whole, start = self._place(varnode, overwritten=True)
        if whole.size == varnode.size:
            self._emit(code, whole, *ins)
        else:
            piece = self._fresh(varnode.size)
            self._emit(code, piece, *ins)
            self._insert(whole, start, piece)
        state = _translator(self._thumb).registers["TB"].offset
        if varnode.space.name == "register" and varnode.offset == state:
            self._goto_thumb = whole

    def _insert(self, whole: Var, start: int, piece: Var) -> None:
        """Replace the bytes of ``whole`` from ``start`` on by ``piece``."""
        rest, wide, shifted = (self._fresh(whole.size) for _ in range(3))
        mask = (1 << 8 * piece.size) - 1 << 8 * start
        self._emit(OpCode.INT_AND, rest, whole, const(~mask, whole.size))
        self._emit(OpCode.INT_ZEXT, wide, piece)
        self._emit(OpCode.INT_LEFT, shifted, wide, const(8 * start))
        self._emit(OpCode.INT_OR, whole, rest, shifted)
